#!/usr/bin/env python3
"""How long Ctrl-C takes while weights are streamed: in the middle of an answer, and of reading a prompt.

    bench/stop_latency.py [--model F.gguf | --shape tinyllama-1.1b --type Q4_K_M] [--memory 200M] [--repetitions 10]

Starts `sluice run` with the file cold, interrupts it at some moment of a pass, and prints the seconds until the process
is gone. It must end with exit code 130. Exit code 1 when it does not, or took longer than half a second.
"""
import argparse
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import time

from programs import SLUICE, drop_from_page_cache, model_file, parse_size


def stop(program, begun, delay, timeout=300):
    """Interrupts `delay` seconds after begun(program) is true; (seconds until it is gone, exit code)."""
    end = time.monotonic() + timeout
    while not begun(program):
        if program.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"it ended before it was stopped: {program.returncode}")
    time.sleep(delay)
    program.send_signal(signal.SIGINT)
    start = time.monotonic()
    code = program.wait()
    return time.monotonic() - start, code


def answers(program):
    return bool(select.select([program.stdout], [], [], 0.01)[0])


def has_read(size):
    """True when the process has read that much from storage: well into the prompt, whose weights come by pass after pass."""
    def begun(program):
        time.sleep(0.01)
        try:
            with open(f"/proc/{program.pid}/io") as file:
                return int(dict(line.split(": ") for line in file)["read_bytes"]) > size
        except OSError:
            return False
    return begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; else one is made")
    parser.add_argument("--shape", default="tinyllama-1.1b")
    parser.add_argument("--type", default="Q4_K_M")
    parser.add_argument("--memory", type=parse_size, help="the budget; a third of the file unless told")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sluice", default=SLUICE)
    args = parser.parse_args()
    generator = random.Random(1)
    failed = False
    with model_file(args.sluice, args.model, args.shape, args.type) as path:
        size = os.path.getsize(path)
        budget = args.memory or size // 3
        words = "the sea and the ships that sail on it " * 30
        for name, prompt, begun in (("in an answer", "hello", answers), ("in a prompt", words, has_read(size // 2))):
            seconds, codes = [], set()
            for _ in range(args.repetitions):
                drop_from_page_cache(path)
                command = [args.sluice, "run", path, "-p", prompt, "-n", "100000", "--ignore-eos", "-c", "4096", "--memory",
                           str(budget), "--residency", "pin", "-t", str(args.threads)]
                with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL) as program:
                    took, code = stop(program, begun, generator.uniform(0, 1))
                seconds.append(took)
                codes.add(code)
            failed |= codes != {130} or max(seconds) > 0.5
            print(f"{name:>14}: {min(seconds):.3f} to {max(seconds):.3f} s, median {statistics.median(seconds):.3f}, "
                  f"of {len(seconds)}; exit codes {sorted(codes)}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
