#!/usr/bin/env python3
"""A chat on a model three times its budget that crosses its window: memory over time, and how even the answers are.

    bench/long_chat.py [--model F.gguf | --shape tinyllama-1.1b --type Q4_K_M] [--memory 200M] [--context 256] [--messages 24]

Runs `sluice chat --overflow window` in a memory control group of exactly the budget and prints what the process has in
memory (after the second answer, after the last, and the most), how often the limit was hit, and how long tokens took: those of
the answers, from the beginning of a pass to that of the next, as the trace has them. Needs root.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from programs import KIB, SLUICE, MemoryCgroup, Unavailable, drop_from_page_cache, mib, model_file, parse_size


def rss_bytes(process):
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return None
    return next((int(line.split()[1]) * KIB for line in status.splitlines() if line.startswith("VmRSS:")), None)


FIGURES = re.compile(rb"tokens at [0-9.]+ tok/s")


def token_seconds(trace):
    """Of each token of the answers but the first ones: from the beginning of its pass to that of the next."""
    passes = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "pass"]
    return [(after["ts"] - before["ts"]) / 1e6 for before, after in zip(passes, passes[1:])
            if before["args"]["tokens"] == after["args"]["tokens"] == 1]


def spread(values):
    """The 5th percentile, the median, the 95th."""
    ordered = sorted(values)
    return [ordered[round(share * (len(ordered) - 1))] for share in (0.05, 0.5, 0.95)]


class Talk:
    """Sends the messages one by one, each when the answer before it has come to its end."""

    def __init__(self, program, messages):
        self.program, self.messages = program, messages
        self.rss, self.said = [], []  # after each answer; remarks
        self.answered = threading.Semaphore(0)

    def run(self):
        readers = [threading.Thread(target=self.read_answers), threading.Thread(target=self.read_remarks)]
        for reader in readers:
            reader.start()
        for message in self.messages:
            self.program.stdin.write(message.encode() + b"\n")
            self.program.stdin.flush()
            self.answered.acquire()
            self.rss.append(rss_bytes(self.program.pid))
        self.program.stdin.close()
        for reader in readers:
            reader.join()
        self.program.wait()

    def read_answers(self):
        while os.read(self.program.stdout.fileno(), 4096):
            pass

    def read_remarks(self):
        for line in self.program.stderr:
            self.said.append(line.decode(errors="replace").rstrip())
            if FIGURES.search(line):  # an answer's last line
                self.answered.release()
        self.answered.release(1000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; else one is made")
    parser.add_argument("--shape", default="tinyllama-1.1b")
    parser.add_argument("--type", default="Q4_K_M")
    parser.add_argument("--memory", type=parse_size, help="the budget; a third of the file unless told")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--messages", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=24, help="of each answer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sluice", default=SLUICE)
    args = parser.parse_args()
    try:
        with model_file(args.sluice, args.model, args.shape, args.type) as path:
            budget = args.memory or os.path.getsize(path) // 3
            command = [args.sluice, "chat", path, "--memory", str(budget), "--residency", "pin", "-c", str(args.context),
                       "--overflow", "window", "-n", str(args.tokens), "--ignore-eos", "--seed", "1", "--no-save", "-t",
                       str(args.threads)]
            drop_from_page_cache(path)
            with tempfile.TemporaryDirectory() as folder, MemoryCgroup(budget) as group:
                trace = pathlib.Path(folder, "trace.json")
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
                with group.start([*command, "--trace", str(trace)], **pipes) as program:
                    talk = Talk(program, [f"message {i} of a talk that goes on" for i in range(args.messages)])
                    talk.run()
                peak, hits = group.peak_bytes(), group.limit_was_hit()
                seconds = token_seconds(trace) if program.returncode == 0 else []
    except Unavailable as reason:
        sys.exit(str(reason))
    if len(seconds) < 2:
        sys.exit(f"exit code {program.returncode}: " + " / ".join(talk.said[-3:]))
    crossed = [line for line in talk.said if "is full" in line]
    rss = [size for size in talk.rss if size]
    print(f"budget {mib(budget)} MiB, peak of the group {mib(peak)}, limit hit {hits} times")
    print(f"in memory after the second answer {mib(rss[1])} MiB, after the last {mib(rss[-1])}, at most {mib(max(rss))}")
    low, median, high = spread(seconds)
    print(f"{len(seconds)} tokens: 5th percentile {low * 1e3:.0f} ms, median {median * 1e3:.0f}, 95th {high * 1e3:.0f}: "
          f"p95/p5 {high / low:.2f}")
    print("the context overflowed" if crossed else "the context was not filled: send more messages")


if __name__ == "__main__":
    main()
