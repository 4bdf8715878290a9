#!/usr/bin/env python3
"""The budget, in real memory control groups: models several times larger, contexts, KV types, residencies.

    bench/budget_proof.py [--model F.gguf | --shape tinyllama-1.1b --type Q4_K_M] [--ratios 1.5,2,3,5] [--modes pin,lru]

Each combination runs twice, with the file cold:
  (a) in a group of three times the budget: the peak of what it is charged must stay under the budget, and what `plan` says
      in all must be no less than that peak and at most 5 % more
  (b) in a group of exactly the budget: the limit must never be hit, and nothing be swapped
and must say the same as with all weights in memory. Exit code 1 when one of these does not hold. `buffered` is `pin`
without direct reads. A budget that is too small is refused, which is no failure. Needs root for control groups.
"""
import argparse
import json
import os
import subprocess
import sys

from programs import GIB, SLUICE, Unavailable, kv_flags, mib, model_file, parse_size, run_in_group

PROMPT = "Tell me of the sea, and of the ships that sail on it."
MODES = {
    "pin": ["--residency", "pin"],
    "lru": ["--residency", "lru"],
    "buffered": ["--residency", "pin", "--io", "buffered"],
    "pread": ["--residency", "pin", "--io", "pread"],
    "resident": ["--residency", "resident"],
}


class Proof:
    def __init__(self, args, path):
        self.args, self.path = args, path
        self.said = {}  # by KV types
        self.failures = 0

    def command(self, action, budget, context, kv, mode):
        return [self.args.sluice, action, self.path, "--memory", str(budget), "-c", str(context), "-t",
                str(self.args.threads), *kv_flags(kv), *MODES[mode], "--json"]

    def run(self, limit, budget, context, kv, mode):
        ask = ["-p", PROMPT, "-n", str(self.args.tokens), "--temp", "1", "--seed", "7", "--ignore-eos"]
        return run_in_group([*self.command("run", budget, context, kv, mode), *ask], limit, self.path)

    def plan(self, *what):
        done = subprocess.run(self.command("plan", *what), capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def expected(self, kv):
        """What the model says with all weights in memory."""
        if kv not in self.said:
            size = os.path.getsize(self.path)
            outcome = self.run(size + 4 * GIB, size + 2 * GIB, 512, kv, "resident")
            self.said[kv] = outcome.report["text_base64"]
        return self.said[kv]

    def check(self, name, budget, context, kv, mode):
        if budget is None:  # what the model needs to fit
            budget = self.plan(os.path.getsize(self.path) + 4 * GIB, context, kv, mode)["total_bytes"]
        what = (budget, context, kv, mode)
        label = f"{name:>8} {budget >> 20:>7} {context:>7} {kv:>9} {mode:>9}"
        plan = self.plan(*what)
        if plan is None:
            print(f"{label}   refused: too small", flush=True)
            return
        total = plan["total_bytes"]
        free, tight = self.run(3 * budget, *what), self.run(budget, *what)
        if not free.ok or not tight.ok:
            self.failures += 1
            print(f"{label}   {free.error or tight.error}", flush=True)
            return
        same = free.report["text_base64"] == tight.report["text_base64"] == self.expected(kv)
        unaccounted = free.peak_bytes - (total - plan["unaccounted_bytes"])
        # An lru takes what its blocks take, and a resident model what it is, however large the budget.
        holds = (free.peak_bytes <= total <= budget and total <= 1.05 * free.peak_bytes and
                 tight.limit_hit == 0 and free.swap_bytes == tight.swap_bytes == 0 and same)
        self.failures += not holds
        print(f"{label} {mib(total):>8} {mib(free.peak_bytes):>8} {total / free.peak_bytes:6.3f} {mib(unaccounted):>7} "
              f"{tight.limit_hit:>9} {free.swap_bytes + tight.swap_bytes:>6} {'same' if same else 'OTHER':>6}"
              f"{'' if holds else '   DOES NOT HOLD'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; else one is made")
    parser.add_argument("--shape", default="tinyllama-1.1b")
    parser.add_argument("--type", default="Q4_K_M")
    parser.add_argument("--ratios", default="1.5,2,3,5", help="how many times the budget the file is")
    parser.add_argument("--contexts", default="512,2048,8192")
    parser.add_argument("--kv", default="f16,q8_0/q8_0,q8_0/q4_0")
    parser.add_argument("--modes", default="pin,lru,buffered", help=", ".join(MODES))
    parser.add_argument("--memory", type=parse_size, help="one budget instead of those by --ratios")
    parser.add_argument("--tokens", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sluice", default=SLUICE)
    args = parser.parse_args()

    try:
        with model_file(args.sluice, args.model, args.shape, args.type) as path:
            size = os.path.getsize(path)
            proof = Proof(args, path)
            print(f"file of {mib(size)} MiB; all sizes in MiB")
            print(f"{'file is':>8} {'budget':>7} {'context':>7} {'KV':>9} {'mode':>9} {'plan':>8} {'peak (a)':>8} {'ratio':>6} "
                  f"{'unacc.':>7} {'hits (b)':>9} {'swap':>6} {'tokens':>6}")
            budgets = [(f"{r} ×", int(size / float(r))) for r in args.ratios.split(",")]
            if args.memory:
                budgets = [("", args.memory)]
            for context in map(int, args.contexts.split(",")):
                for kv in args.kv.split(","):
                    for mode in args.modes.split(","):
                        for name, budget in budgets:
                            proof.check(name, budget, context, kv, mode)
            if not args.memory:
                for context in map(int, args.contexts.split(",")):
                    for kv in args.kv.split(","):
                        proof.check("fits", None, context, kv, "resident")
    except Unavailable as reason:
        sys.exit(str(reason))
    sys.exit(1 if proof.failures else 0)


if __name__ == "__main__":
    main()
