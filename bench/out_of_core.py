#!/usr/bin/env python3
"""A model larger than its memory: every residency of Sluice, and llama.cpp, side by side.

    bench/out_of_core.py [--model F.gguf | --shape qwen2.5-32b --type Q4_K_M] [--memory 8G] [--llama-bench PROGRAM]

Each program runs in a memory control group of its own, of the size of the budget, with the file cold. Beside them
stands what storage gives: direct reads into huge pages, the best of several block sizes and numbers of readers, measured
before and after. Prints for each: tokens per second, bytes read for each token, peak memory, how often the group's limit
was hit, and the ratio to the bound 1 / max(resident compute time, streamed bytes / storage bandwidth).

Small by default: a 1.1B shape in half of its size. Needs root for control groups.
"""
import argparse
import ctypes
import json
import mmap
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from memory_cgroup import MemoryCgroup, Unavailable, drop_from_page_cache  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
MADV_HUGEPAGE = 14


def parse_size(text):
    unit = {"K": 1 << 10, "M": MIB, "G": GIB}.get(text[-1].upper())
    return int(float(text[:-1]) * unit) if unit else int(text)


def gib(size):
    return "–" if size is None else f"{size / GIB:.2f} GiB"


def huge_buffer(size):
    buffer = mmap.mmap(-1, size + 2 * MIB)
    buffer.madvise(MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    begin = -address % (2 * MIB)
    return buffer, memoryview(buffer)[begin:begin + size]


def read_rate(path, block, readers, total):
    """Bytes per second of direct reads of `total` bytes, in order, by so many threads."""
    size = os.path.getsize(path) // block * block
    start = random.randrange(0, size // block) * block
    offsets = iter([(start + i * block) % size for i in range(max(readers, total // block))])
    lock = threading.Lock()
    read_bytes = [0] * readers

    def work(index):
        keep, buffer = huge_buffer(block)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        while True:
            with lock:
                offset = next(offsets, None)
            if offset is None:
                break
            read_bytes[index] += os.preadv(descriptor, [buffer], offset)
        os.close(descriptor)
        buffer.release()
        del keep

    threads = [threading.Thread(target=work, args=(i,)) for i in range(readers)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(read_bytes) / (time.monotonic() - begun)


def storage_bandwidth(path, total):
    best = (0, "")
    for block in (256 << 10, MIB, 4 * MIB):
        for readers in (1, 4, 16):
            rate = read_rate(path, block, readers, total)
            best = max(best, (rate, f"{block >> 10} KiB × {readers}"))
    return best


def sluice_bench(arguments, limit, path):
    """(report as parsed JSON, peak, hits) or (message, peak, hits)."""
    drop_from_page_cache(path)
    with MemoryCgroup(limit) as group:
        code, out, err = group.run(arguments, timeout=900)
        peak, hits = group.peak_bytes(), group.limit_was_hit()
    if code == 0:
        return json.loads(out), peak, hits
    if code is None:
        return "not finished in 15 minutes", peak, hits
    return (err.strip().splitlines() or [f"exit {code}"])[-1][:90] if code > 0 else f"killed by signal {-code}", peak, hits


def llama_bench(program, limit, path, tokens, threads):
    drop_from_page_cache(path)
    command = [program, "-m", path, "-p", "0", "-n", str(tokens), "-t", str(threads), "-r", "1", "-o", "json"]
    with MemoryCgroup(limit) as group:
        code, out, err = group.run(command, timeout=900)
        peak, hits = group.peak_bytes(), group.limit_was_hit()
    if code == 0:
        return float(json.loads(out)[0]["avg_ts"]), peak, hits
    return "not finished in 15 minutes" if code is None else f"exit {code}", peak, hits


def pinnable(report, budget):
    """Bytes of weights that the bound takes as pinned, whatever really was."""
    accounts = report["ledger"]
    return budget - accounts["kv"] - accounts["activations"] - accounts["tokenizer"] - 128 * MIB


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; else one is made")
    parser.add_argument("--shape", default="tinyllama-1.1b")
    parser.add_argument("--type", default="Q8_0")
    parser.add_argument("--memory", type=parse_size, help="the budget; half of the file unless told")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--modes", default="pin,lru,mmap,resident")
    parser.add_argument("--sluice", default=str(ROOT / "build/release/apps/sluice/sluice"))
    parser.add_argument("--llama-bench", help="llama.cpp's llama-bench, to run beside")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    folder = None
    path = args.model
    if path is None:
        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "model.gguf")
        subprocess.run([args.sluice, "synth", args.shape, path, args.type], check=True, stderr=subprocess.DEVNULL)
    path = os.path.realpath(path)
    size = os.path.getsize(path)
    budget = args.memory or size // 2
    probe_bytes = min(4 * GIB, max(GIB, size))

    def bench(residency, memory, limit):
        return sluice_bench([args.sluice, "bench", path, "-p", "0", "-n", str(args.tokens), "--repetitions",
                             str(args.repetitions), "-t", str(args.threads), "-c", str(args.context), "--kv", "f16",
                             "--no-roof", "--residency", residency, "--memory", str(memory), "--json"], limit, path)

    rows = []
    try:
        before, how = storage_bandwidth(path, probe_bytes)
        # Computing alone: the whole model in memory, where the machine has it.
        free, _, _ = bench("resident", size + 2 * GIB, size + 4 * GIB)
        compute = free["decode_tokens_per_second"] if isinstance(free, dict) else None
        for mode in args.modes.split(","):
            report, peak, hits = bench(mode, budget, budget)
            rows.append([f"sluice {mode}", report, peak, hits])
        if args.llama_bench:
            rate, peak, hits = llama_bench(args.llama_bench, budget, path, args.tokens, args.threads)
            rows.append(["llama.cpp, mmap", {"decode_tokens_per_second": rate} if isinstance(rate, float) else rate, peak, hits])
        after, how_after = storage_bandwidth(path, probe_bytes)
    except Unavailable as reason:
        sys.exit(str(reason))

    storage = max(before, after)
    print(f"file {gib(size)}, budget {gib(budget)}; storage {before / 1e9:.2f} GB/s before ({how}), "
          f"{after / 1e9:.2f} after ({how_after}); in memory " + (f"{compute:.2f} tok/s" if compute else "not measured"))
    print(f"{'':18} {'tok/s':>8} {'GB/token':>9} {'peak':>10} {'limit hit':>10} {'of bound':>9}")
    for name, report, peak, hits in rows:
        if not isinstance(report, dict):
            print(f"{name:18} {report}; peak {gib(peak)}")
            continue
        rate = report["decode_tokens_per_second"]
        read = report.get("bytes_read_per_token")
        ratio = ""
        if name == "sluice pin" and compute:
            streamed = max(0, report["weight_bytes_per_token"] - pinnable(report, budget))
            bound = 1 / max(1 / compute, streamed / storage)
            ratio = f"{rate / bound:.2f}"
        read = "–" if read is None else f"{read / 1e9:.2f}"
        print(f"{name:18} {rate:8.3f} {read:>9} {gib(peak):>10} {hits:>10} {ratio:>9}")
    if args.json:
        print(json.dumps([{"name": n, "report": r, "peak_bytes": p, "limit_hit": h} for n, r, p, h in rows]))


if __name__ == "__main__":
    main()
