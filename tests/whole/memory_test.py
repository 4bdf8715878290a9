#!/usr/bin/env python3
"""The budget in real memory control groups. usage: memory_test.py SLUICE

A synthetic model three times its budget runs in groups of three times the budget and of exactly the budget, beside a
neighbour that takes memory, and in a chat that crosses its window. Exits with 77 (skipped) where groups can't be made.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from programs import MIB, MemoryCgroup, Unavailable, drop_from_page_cache, run_in_group  # noqa: E402

SLUICE = sys.argv.pop(1) if len(sys.argv) > 1 else None
SKIPPED = 77

# Takes memory step by step, and keeps it until its input ends.
NEIGHBOUR = """
import sys, time
held = []
for step in range({steps}):
    held.append(bytearray({step_bytes}))
    held[-1][::4096] = b"x" * len(held[-1][::4096])
    time.sleep(0.03)
print("done", flush=True)
sys.stdin.read()
"""


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def swap_of(process):
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmSwap:"))


class MemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = os.environ | {"HOME": cls.folder.name}
        cls.model = os.path.join(cls.folder.name, "model.gguf")
        subprocess.run([SLUICE, "synth", "tinyllama-1.1b", cls.model, "Q2_K"], check=True, stderr=subprocess.DEVNULL)
        cls.budget = os.path.getsize(cls.model) // 3

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ask(self, budget, *flags, tokens=6):
        return [SLUICE, "run", self.model, "-p", "Tell me of the sea.", "-n", str(tokens), "--temp", "1", "--seed", "7",
                "--ignore-eos", "-c", "256", "--memory", str(budget), "--json", *flags]

    def expected(self, tokens):
        """What it says with all weights in memory."""
        size = os.path.getsize(self.model)
        outcome = run_in_group(self.ask(size + 512 * MIB, "--residency", "resident", tokens=tokens), size + 1024 * MIB,
                               self.model)
        self.assertTrue(outcome.ok, outcome.error)
        return outcome.report["text_base64"]

    def planned(self, budget, *flags):
        command = [SLUICE, "plan", self.model, "-c", "256", "--memory", str(budget), "--json", "--device", "phone-8gb", *flags]
        return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)["total_bytes"]

    def test_budget_holds(self):
        expected = self.expected(6)
        whole = self.planned(3 * self.budget + 512 * MIB, "--residency", "resident")
        for budget, flags in ((self.budget, ["--residency", "pin"]), (self.budget, ["--residency", "lru"]),
                              (self.budget, ["--residency", "pin", "--io", "buffered"]), (whole, ["--residency", "resident"])):
            with self.subTest(flags=flags):
                wide = run_in_group(self.ask(budget, *flags), 3 * budget, self.model)
                self.assertTrue(wide.ok, wide.error)
                planned = self.planned(budget, *flags)
                self.assertLessEqual(planned, budget)
                self.assertLessEqual(wide.peak_bytes, planned)
                self.assertLess(planned, 1.05 * wide.peak_bytes + 6 * MIB)
                tight = run_in_group(self.ask(budget, *flags), budget, self.model)
                self.assertTrue(tight.ok, tight.error)
                self.assertEqual(tight.limit_hit, 0)
                self.assertEqual(wide.swap_bytes + tight.swap_bytes, 0)
                self.assertEqual({wide.report["text_base64"], tight.report["text_base64"]}, {expected})

    def test_nothing_is_locked(self):
        """P47: no memory may be locked, and none is asked to be."""
        command = self.ask(self.budget, "--residency", "pin", tokens=2)
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_neighbour_takes_memory(self):
        """In the middle of an answer; nothing is killed or swapped, and the answer is the same."""
        size = os.path.getsize(self.model)
        tokens, spare = 160, 80 * MIB  # on a fast machine, too, the answer takes longer than the neighbour
        expected = self.expected(tokens)
        for budget, residency in ((size * 2 // 3, "pin"), (size + 512 * MIB, "resident")):
            with self.subTest(residency=residency):
                flags = ["--residency", residency]
                budget = self.planned(budget, *flags)
                drop_from_page_cache(self.model)
                with MemoryCgroup(budget + spare) as group, group.start(
                        self.ask(budget, *flags, tokens=tokens), **PIPES) as answer:
                    while group.usage_bytes() < budget // 2 and answer.poll() is None:
                        time.sleep(0.01)
                    # More than is spare, slower than anybody would have to be killed.
                    script = NEIGHBOUR.format(steps=spare // MIB // 2 + 2, step_bytes=2 * MIB)
                    with group.start([sys.executable, "-c", script], stdin=subprocess.PIPE, **PIPES) as neighbour:
                        swapped = 0
                        while answer.poll() is None:
                            swapped = max(swapped, swap_of(answer.pid))
                            time.sleep(0.02)
                        out, err = answer.communicate()
                        self.assertEqual(neighbour.communicate("")[0], "done\n")
                        self.assertEqual(neighbour.returncode, 0)
                self.assertEqual(answer.returncode, 0, err)
                self.assertEqual(swapped, 0)
                self.assertEqual(json.loads(out)["text_base64"], expected)
                self.assertIn("memory is short", err)

    def test_chat_crosses_its_window(self):
        """A model three times its budget, twice the window: nothing is killed, and memory stays what it is."""
        messages = "".join(f"message {i} of a talk that goes on and on\n" for i in range(12))
        command = [SLUICE, "chat", self.model, "--memory", str(self.budget), "--residency", "pin", "-c", "256", "--overflow",
                   "window", "-n", "24", "--ignore-eos", "--seed", "1", "--no-save"]
        messages_file = os.path.join(self.folder.name, "messages")
        pathlib.Path(messages_file).write_text(messages)
        drop_from_page_cache(self.model)
        usage = []
        with MemoryCgroup(self.budget) as group, open(messages_file) as stdin:
            with group.start(command, stdin=stdin, env=self.home, **PIPES) as chat:
                while True:
                    try:
                        said = chat.communicate(timeout=0.05)[1]
                        break
                    except subprocess.TimeoutExpired:
                        usage.append(group.usage_bytes())
            self.assertEqual(chat.returncode, 0, said)
            self.assertEqual(group.limit_was_hit(), 0)
        self.assertIn("the context of 256 tokens is full", said)
        # The first third fills the memory; the last samples may have been taken while it was given back.
        later = usage[len(usage) // 3:-2]
        self.assertLess(max(later) - min(later), 4 * MIB)


if __name__ == "__main__":
    try:
        with MemoryCgroup(64 * MIB):
            pass
    except Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
