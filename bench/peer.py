#!/usr/bin/env python3
"""Speed beside llama.cpp's, or a fork's, on the same files in the same minutes.

    bench/peer.py --llama-bench PROGRAM [--model F.gguf … | --shape tinyllama-1.1b --types Q4_K_M,Q8_0] [--prompts 128,512]
                  [--depths 0,4096] [--kv q8_0] [--tokens 32] [--pairs 7] [--threads 2] [--peer-flags "-rtr 1"] [--json]

For each file: reading prompts of each length, and decoding at each depth. The two programs take turns, pair after pair,
each with the file in memory, so that what else the machine does meets both. Prints for each measure the medians of both in
tokens per second, the median of the pairs' ratios and the range that half of the ratios lie in. Both run with flash
attention, the same number of threads and the same types of keys and values.

PROGRAM is a llama-bench that you built for this machine (a release build; one that prints "asserts enabled" is none).
"""
import argparse
import json
import shlex
import statistics
import subprocess
import sys

from programs import SLUICE, model_file


class Failed(Exception):
    """A program did not run to its end: its last words."""


def report_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise Failed(f"{command[0]}: exit {done.returncode}: {last[:100]}")
    return json.loads(done.stdout)


def sluice_rate(args, path, prompt, tokens, depth):
    report = report_of([args.sluice, "bench", path, "-p", str(prompt), "-n", str(tokens), "-d", str(depth), "-r", "1",
                        "-t", str(args.threads), "--kv", args.kv, "--residency", "resident", "--no-roof", "--json"])
    return report["prefill_tokens_per_second" if prompt else "decode_tokens_per_second"]


def peer_rate(args, path, prompt, tokens, depth):
    at_depth = ["-d", str(depth)] if depth > 0 else []  # not every fork has it
    report = report_of([args.llama_bench, "-m", path, "-p", str(prompt), "-n", str(tokens), *at_depth, "-r", "1",
                        "-t", str(args.threads), "-fa", "1", "-ctk", args.kv, "-ctv", args.kv, "-o", "json",
                        *shlex.split(args.peer_flags)])
    return float(report[0]["avg_ts"])


def paired(args, path, prompt, tokens, depth):
    """The rates of both, pair after pair: [(ours, theirs)]."""
    return [(sluice_rate(args, path, prompt, tokens, depth), peer_rate(args, path, prompt, tokens, depth))
            for _ in range(args.pairs)]


def summary(pairs):
    ratios = [ours / theirs for ours, theirs in pairs]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return {"ours": statistics.median(ours for ours, _ in pairs), "theirs": statistics.median(theirs for _, theirs in pairs),
            "ratio": statistics.median(ratios), "ratio_quartiles": [low, high]}


def measures(args):
    """What is measured of each file: its name, prompt tokens, decoded tokens, depth."""
    for prompt in args.prompts:
        yield f"prefill {prompt}", prompt, 0, 0
    for depth in args.depths:
        yield f"decode at {depth}", 0, args.tokens, depth


def compare(args, name, path):
    rows = []
    for what, prompt, tokens, depth in measures(args):
        row = {"file": name, "measure": what}
        try:
            row |= summary(paired(args, path, prompt, tokens, depth))
            low, high = row["ratio_quartiles"]
            figures = f"{row['ours']:9.2f} {row['theirs']:10.2f} {row['ratio']:7.2f}   {low:.2f} to {high:.2f}"
        except Failed as failure:
            row["error"] = figures = str(failure)
        rows.append(row)
        if not args.json:
            print(f"{name:14} {what:16} {figures}", flush=True)
    return rows


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-bench", required=True, help="the other program")
    parser.add_argument("--model", action="append", default=[], help="a GGUF file (again for more); else files are made")
    parser.add_argument("--shape", default="tinyllama-1.1b")
    parser.add_argument("--types", default="Q4_K_M,Q8_0", help="weight types of the files that are made")
    parser.add_argument("--prompts", type=numbers, default=[128, 512])
    parser.add_argument("--depths", type=numbers, default=[0, 4096])
    parser.add_argument("--kv", default="f16", help="type of keys and values")
    parser.add_argument("--tokens", type=int, default=32, help="decoded in each run")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--peer-flags", default="",
                        help='more flags for the other program, e.g. "-rtr 1" (ik_llama.cpp repacks)')
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sluice", default=SLUICE)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    if not args.json:
        print(f"{'file':14} {'measure':16} {'sluice':>9} {'peer':>10} {'ratio':>7}   half of the pairs")
    rows = []
    for model in args.model:
        rows += compare(args, model.rsplit("/", 1)[-1], model)
    for weight_type in [] if args.model else args.types.split(","):
        with model_file(args.sluice, None, args.shape, weight_type) as path:
            rows += compare(args, weight_type, path)
    if args.json:
        print(json.dumps(rows, indent=2))
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
