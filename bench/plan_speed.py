#!/usr/bin/env python3
"""What `plan` says of speed beside what is then measured: in memory and streamed, with each type of KV cache.

    bench/plan_speed.py [--model F.gguf | --shape tinyllama-1.1b --type Q4_K_M] [--memory 300M] [--kv f16,q8_0,q8_0/q4_0,q4_0]

For each residency and KV type the device is measured anew, into a cache folder of its own (a machine that is shared changes from
minute to minute), then: answering behind the prompt that the plan speaks of and reading it (`bench`, medians), and the time to the first token of a program that starts with the
file cold (`run`, median; its prompt has as many tokens within a few, which are reckoned off). Prints planned, measured and
measured / planned for each.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from programs import GIB, SLUICE, drop_from_page_cache, kv_flags, model_file, parse_size

LONGEST_PROMPT = 2000  # that plan speaks of
WORDS = "the sea and the ships that sail on it "


class Speeds:
    def __init__(self, args, path, cache):
        self.args, self.path = args, path
        self.environment = {**os.environ, "XDG_CACHE_HOME": cache}
        self.prompt = min(LONGEST_PROMPT, args.context)
        # An answer needs room behind it.
        self.depth = min(self.prompt, args.context - args.tokens - 1)

    def json(self, action, flags, stdin=""):
        command = [self.args.sluice, action, self.path, "-t", str(self.args.threads), *flags, "--json"]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=self.environment, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def first_token(self, flags):
        def start(words):
            drop_from_page_cache(self.path)
            return self.json("run", [*flags, "--raw", "-n", "1", "--ignore-eos"], stdin=WORDS * words)

        # How many tokens the words are, a first start shows.
        words = self.depth * 8 // start(8)["prompt_tokens"]
        starts = [start(words) for _ in range(self.args.repetitions)]
        return statistics.median(s["ttft_ms"] / 1000 * self.prompt / s["prompt_tokens"] for s in starts)

    def compare(self, mode, kv):
        memory = os.path.getsize(self.path) + 2 * GIB if mode == "resident" else self.args.memory
        flags = ["--residency", mode, "--memory", str(memory), "-c", str(self.args.context), *kv_flags(kv)]
        planned = self.json("plan", ["--measure", *flags])["speed"]
        drop_from_page_cache(self.path)
        bench = self.json("bench", [*flags, "--no-roof", "-p", str(self.prompt), "-n", str(self.args.tokens), "-d",
                                    str(self.depth), "--repetitions", str(self.args.repetitions)])
        measured = {**bench, "first_token_seconds": self.first_token(flags)}
        line = f"{mode:>9} {kv:>10}"
        for figure in ("decode_tokens_per_second", "prefill_tokens_per_second", "first_token_seconds"):
            line += f"  {planned[figure]:9.2f} {measured[figure]:9.2f} {measured[figure] / planned[figure]:6.2f}"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; else one is made")
    parser.add_argument("--shape", default="tinyllama-1.1b")
    parser.add_argument("--type", default="Q4_K_M")
    parser.add_argument("--memory", type=parse_size, help="the budget of what is streamed; half of the file unless told")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--kv", default="f16,q8_0,q8_0/q4_0,q4_0")
    parser.add_argument("--modes", default="resident,pin,lru")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sluice", default=SLUICE)
    args = parser.parse_args()
    with model_file(args.sluice, args.model, args.shape, args.type) as path, tempfile.TemporaryDirectory() as cache:
        args.memory = args.memory or os.path.getsize(path) // 2
        speeds = Speeds(args, path, cache)
        print(f"{'':>20}  {'answering, tok/s':>26}  {'the prompt, tok/s':>26}  {'first token, s':>26}")
        print(f"{'weights':>9} {'KV':>10}" + f"  {'plan':>9} {'measured':>9} {'ratio':>6}" * 3)
        for kv in args.kv.split(","):
            for mode in args.modes.split(","):
                speeds.compare(mode, kv)


if __name__ == "__main__":
    sys.exit(main())
