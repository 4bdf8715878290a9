"""Checks that the exported files say the same.

    check_export.py MODEL.gguf HF_FOLDER VOCABULARY.model TEXT

1. The Hugging Face folder, run with rotary pairs (i, i + head_dim / 2) as that family does, gives the logits of the GGUF.
2. Merging by the scores in the GGUF, and the tokenizer.json where the `tokenizers` package is there, give SentencePiece's ids.
"""
import heapq
import json
import os
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

import evaluate
import gguf
import tokenizer


def Safetensors(path):
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        header, body = json.loads(f.read(n)), f.read()
    header.pop("__metadata__", None)
    return {k: torch.from_numpy(np.frombuffer(body[slice(*v["data_offsets"])], np.float16).reshape(v["shape"]).astype(np.float32))
            for k, v in header.items()}


def HalfSplitLogits(folder, ids):
    """A second, separate forward pass. ids: [time]."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        c = json.load(f)
    w = Safetensors(os.path.join(folder, "model.safetensors"))
    heads, kv, hd = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    t = len(ids)
    inverse = c["rope_theta"] ** (-torch.arange(0, hd, 2).float() / hd)
    angle = torch.cat([torch.arange(t).float()[:, None] * inverse] * 2, -1)

    def Rotated(x):
        a, b = x.chunk(2, -1)
        return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()

    def Norm(x, weight):
        return x / (x.pow(2).mean(-1, keepdim=True) + c["rms_norm_eps"]).sqrt() * weight

    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        y = Norm(x, w[p + "input_layernorm.weight"])
        q, k, v = (F.linear(y, w[f"{p}self_attn.{n}_proj.weight"]).view(t, -1, hd).transpose(0, 1) for n in "qkv")
        k, v = (z.repeat_interleave(heads // kv, 0) for z in (k, v))
        s = Rotated(q) @ Rotated(k).transpose(1, 2) / hd ** 0.5
        s = s.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf")).softmax(-1) @ v
        x = x + F.linear(s.transpose(0, 1).reshape(t, -1), w[p + "self_attn.o_proj.weight"])
        y = Norm(x, w[p + "post_attention_layernorm.weight"])
        x = x + F.linear(F.silu(F.linear(y, w[p + "mlp.gate_proj.weight"])) * F.linear(y, w[p + "mlp.up_proj.weight"]),
                         w[p + "mlp.down_proj.weight"])
    return F.linear(Norm(x, w["model.norm.weight"]), w["model.embed_tokens.weight"])


def MergeByScore(text, ids_of, scores):
    """SentencePiece BPE from the arrays of the GGUF: always the pair with the highest score, the leftmost first."""
    parts = list(text.replace(" ", "\u2581"))
    after = list(range(1, len(parts) + 1))
    before = list(range(-1, len(parts) - 1))
    heap = []

    def Offer(i):
        if i >= 0 and after[i] < len(parts):
            token = ids_of.get(parts[i] + parts[after[i]])
            if token is not None:
                heapq.heappush(heap, (-scores[token], i, parts[i], parts[after[i]]))

    for i in range(len(parts) - 1):
        Offer(i)
    while heap:
        _, i, a, b = heapq.heappop(heap)
        j = after[i] if parts[i] == a else len(parts)
        if j >= len(parts) or parts[j] != b:
            continue
        parts[i], parts[j], after[i] = a + b, None, after[j]
        if after[j] < len(parts):
            before[after[j]] = i
        Offer(before[i])
        Offer(i)
    out = []
    for p in parts:
        if p is not None:
            out += [ids_of[p]] if p in ids_of else [ids_of[f"<0x{x:02X}>"] for x in p.encode("utf-8")]
    return out


def Main(model_path, folder, vocabulary, text_path):
    tok = tokenizer.Tokenizer(vocabulary)
    with open(text_path, encoding="utf-8") as f:
        text = f.read()
    net = evaluate.Load(model_path)
    ids = torch.tensor([tokenizer.BOS] + tok.Encode(text)[:600])
    with torch.no_grad():
        ours, theirs = net(ids[None])[0], HalfSplitLogits(folder, ids)
    error = (ours - theirs).abs().max().item()
    print(f"largest difference of logits: {error:.2e} of {ours.abs().max().item():.1f}")
    assert error < 2e-3

    meta, _ = gguf.Read(model_path)
    pieces, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    assert sorted(i for i, t in enumerate(types) if t == 3) == [tokenizer.BOS, tokenizer.EOS, tokenizer.PAD, tokenizer.START, tokenizer.END]
    ids_of = {p: i for i, p in enumerate(pieces) if types[i] in (1, 6)}
    samples = text.split("\n\n") + ["", " ", "  two  spaces ", "na\u00efve \u4f60\u597d \U0001f600\n\ttab", "<|im_end|> is text", "12345 a1b2", "'''", "x" * 300]
    for s in samples:
        assert MergeByScore(s, ids_of, meta["tokenizer.ggml.scores"]) == tok.Encode(s), s
        assert tok.Decode(tok.Encode(s)) == s, s
    print(f"{len(samples)} texts have SentencePiece's ids by the scores of the GGUF")
    try:
        import tokenizers
    except ImportError:
        print("tokenizer.json not checked: there is no package tokenizers")
        return
    fast = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    for s in samples:
        if "<|" not in s:  # there, control tokens are parsed out of text
            assert fast.encode(s, add_special_tokens=False).ids == tok.Encode(s), s
    print("tokenizer.json gives the same ids")


if __name__ == "__main__":
    Main(*sys.argv[1:])
