"""Writes and reads GGUF version 3 files, as far as the bundled models need it.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""
import struct

import numpy as np

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
PACK = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q"}
TENSOR_F32, TENSOR_F16 = 0, 1
ALIGNMENT = 32


def Text(s):
    raw = s.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def Value(kind, v):
    return Text(v) if kind == STRING else struct.pack(PACK[kind], v)


class Writer:
    def __init__(self):
        self.pairs, self.tensors = [], []

    def Put(self, key, kind, value):
        self.pairs.append(Text(key) + struct.pack("<I", kind) + Value(kind, value))

    def PutArray(self, key, kind, values):
        self.pairs.append(Text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + b"".join(Value(kind, v) for v in values))

    def Tensor(self, name, array):
        """array: float16 or float32, rows first: [out, in]."""
        self.tensors.append((name, np.ascontiguousarray(array)))

    def Write(self, path):
        head = struct.pack("<4sIQQ", b"GGUF", 3, len(self.tensors), len(self.pairs)) + b"".join(self.pairs)
        offset = 0
        for name, a in self.tensors:
            kind = {np.dtype(np.float32): TENSOR_F32, np.dtype(np.float16): TENSOR_F16}[a.dtype]
            head += Text(name) + struct.pack("<I", a.ndim) + b"".join(struct.pack("<Q", n) for n in reversed(a.shape))
            head += struct.pack("<IQ", kind, offset)
            offset += -(-a.nbytes // ALIGNMENT) * ALIGNMENT
        with open(path, "wb") as f:
            f.write(head + b"\0" * (-len(head) % ALIGNMENT))
            for _, a in self.tensors:
                f.write(a.tobytes() + b"\0" * (-a.nbytes % ALIGNMENT))


def Read(path):
    """(metadata, tensors): the tensors as numpy arrays, rows first."""
    with open(path, "rb") as f:
        raw = f.read()
    at = 0

    def Take(form):
        nonlocal at
        v = struct.unpack_from(form, raw, at)
        at += struct.calcsize(form)
        return v

    def TakeText():
        nonlocal at
        n, = Take("<Q")
        at += n
        return raw[at - n:at].decode("utf-8")

    def TakeValue(kind):
        if kind == STRING:
            return TakeText()
        if kind == ARRAY:
            inner, n = Take("<IQ")
            return [TakeValue(inner) for _ in range(n)]
        return Take(PACK[kind])[0]

    magic, version, n_tensors, n_pairs = Take("<4sIQQ")
    assert magic == b"GGUF" and version == 3
    metadata = {}
    for _ in range(n_pairs):
        key = TakeText()
        metadata[key] = TakeValue(Take("<I")[0])
    infos = []
    for _ in range(n_tensors):
        name = TakeText()
        shape = [Take("<Q")[0] for _ in range(Take("<I")[0])][::-1]
        infos.append((name, shape, *Take("<IQ")))
    start = -(-at // ALIGNMENT) * ALIGNMENT
    tensors = {}
    for name, shape, kind, offset in infos:
        dtype = {TENSOR_F32: np.float32, TENSOR_F16: np.float16}[kind]
        tensors[name] = np.frombuffer(raw, dtype, int(np.prod(shape)), start + offset).reshape(shape)
    return metadata, tensors
