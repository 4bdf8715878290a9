#!/usr/bin/env python3
"""A model larger than its memory: every residency of Sluice, and llama.cpp, side by side.

    bench/out_of_core.py [--model F.gguf | --shape qwen2.5-32b --type Q4_K_M] [--memory 8G] [--llama-bench PROGRAM]

Each program runs in a memory control group of its own, of the size of the budget, with the file cold. Beside them
stands what storage gives by Sluice's own reads of the same file (`sluice plan --storage`): the best of blocks of 256 KiB
to 4 MiB, 1 to 16 reads under way, io_uring and pread, into huge pages, measured before and after. Prints for each:
tokens per second, bytes read for each token, peak memory, how often the group's limit was hit; and of `pin` the ratio to the bound
1 / max(resident compute time, streamed bytes / storage bandwidth), with the storage of the same minute.

Small by default: a 1.1B shape in half of its size. Needs root for control groups.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from programs import GIB, MIB, SLUICE, MemoryCgroup, Unavailable, drop_from_page_cache, gib, model_file, parse_size, run_in_group


def storage_bandwidth(sluice, path, read_bytes):
    """The fastest way to read the file, as `sluice plan --storage` measured it: bytes_per_second, block_bytes, depth, backend."""
    drop_from_page_cache(path)
    command = [sluice, "plan", path, "--storage", str(read_bytes), "--memory", "1T", "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return report["storage"]["best"]


def storage_text(rate):
    return f"{rate['bytes_per_second'] / 1e9:.2f} GB/s ({rate['block_bytes'] >> 10} KiB × {rate['depth']}, {rate['backend']})"


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
    parser.add_argument("--rounds", type=int, default=1, help="of all modes, each with storage measured before and after")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--modes", default="pin,lru,mmap,resident")
    parser.add_argument("--storage", type=parse_size, default=4 * GIB, help="read so much of the file for its bandwidth")
    parser.add_argument("--sluice", default=SLUICE)
    parser.add_argument("--llama-bench", action="append", default=[],
                        help="llama.cpp's llama-bench, to run beside; again for another build")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        with model_file(args.sluice, args.model, args.shape, args.type) as path:
            compare(args, path)
    except Unavailable as reason:
        sys.exit(str(reason))


def compare(args, path):
    size = os.path.getsize(path)
    budget = args.memory or size // 2

    def bench(residency, memory, limit):
        return run_in_group([args.sluice, "bench", path, "-p", "0", "-n", str(args.tokens), "--repetitions",
                             str(args.repetitions), "-t", str(args.threads), "-c", str(args.context), "--kv", "f16",
                             "--no-roof", "--residency", residency, "--memory", str(memory), "--json"], limit, path)

    storage = [storage_bandwidth(args.sluice, path, args.storage)]
    # Computing alone: the whole model in memory, where the machine has it.
    free = bench("resident", size + 2 * GIB, size + 4 * GIB)
    compute = free.report["decode_tokens_per_second"] if free.ok else None
    rows, ratios = [], []
    for _ in range(args.rounds):
        outcomes = {mode: bench(mode, budget, budget) for mode in args.modes.split(",")}
        rows += [[f"sluice {mode}", o.report or o.error, o.peak_bytes, o.limit_hit] for mode, o in outcomes.items()]
        storage.append(storage_bandwidth(args.sluice, path, args.storage))
        if compute and "pin" in outcomes and outcomes["pin"].ok:
            fastest = max(rate["bytes_per_second"] for rate in storage[-2:])
            ratios.append(share_of_bound(outcomes["pin"].report, budget, compute, fastest))
    for number, program in enumerate(args.llama_bench, 1):
        rate, peak, hits = llama_bench(program, budget, path, args.tokens, args.threads)
        name = "llama.cpp, mmap" + (f", {number}" if len(args.llama_bench) > 1 else "")
        rows.append([name, {"decode_tokens_per_second": rate} if isinstance(rate, float) else rate, peak, hits])

    print(f"file {gib(size)}, budget {gib(budget)}; in memory " + (f"{compute:.2f} tok/s" if compute else "not measured"))
    print("storage before, after each round: " + ", ".join(storage_text(rate) for rate in storage))
    print(f"{'':18} {'tok/s':>8} {'GB/token':>9} {'peak':>10} {'limit hit':>10}")
    for name, report, peak, hits in rows:
        if not isinstance(report, dict):
            print(f"{name:18} {report}; peak {gib(peak)}")
            continue
        read = report.get("bytes_read_per_token")
        read = "–" if read is None else f"{read / 1e9:.2f}"
        print(f"{name:18} {report['decode_tokens_per_second']:8.3f} {read:>9} {gib(peak):>10} {hits:>10}")
    if ratios:
        print(f"pin, of its bound: {', '.join(f'{r:.2f}' for r in ratios)}; median {statistics.median(ratios):.2f}")
    if args.json:
        print(json.dumps({"storage": storage, "ratios": ratios,
                          "rows": [{"name": n, "report": r, "peak_bytes": p, "limit_hit": h} for n, r, p, h in rows]}))


def share_of_bound(report, budget, compute, storage):
    """What pin reached of 1 / max(resident compute time, streamed bytes / storage bandwidth)."""
    streamed = max(0, report["weight_bytes_per_token"] - pinnable(report, budget))
    return report["decode_tokens_per_second"] * max(1 / compute, streamed / storage)


if __name__ == "__main__":
    main()
