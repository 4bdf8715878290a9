"""What the benchmarks share: sizes as people write them, models made for the occasion, programs in control groups."""
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from memory_cgroup import MemoryCgroup, Unavailable, drop_from_page_cache  # noqa: E402,F401

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SLUICE = str(ROOT / "build/release/apps/sluice/sluice")


def parse_size(text):
    """Bytes of "8G", "512M" …"""
    unit = {"K": KIB, "M": MIB, "G": GIB}.get(text[-1].upper())
    return int(float(text[:-1]) * unit) if unit else int(text)


def gib(size):
    return "–" if size is None else f"{size / GIB:.2f} GiB"


def mib(size):
    return "–" if size is None else f"{size / MIB:.1f}"


def kv_flags(kv):
    """Flags for "q8_0", or "q8_0/q4_0": keys and values apart."""
    k, _, v = kv.partition("/")
    return ["--kv-k", k, "--kv-v", v or k]


@contextlib.contextmanager
def model_file(sluice, path, shape, weight_type):
    """The path of a model: the one that there is, or one of random weights that is gone afterwards."""
    if path is not None:
        yield os.path.realpath(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "model.gguf")
        subprocess.run([sluice, "synth", shape, made, weight_type], check=True, stderr=subprocess.DEVNULL)
        yield os.path.realpath(made)


@dataclasses.dataclass
class Outcome:
    report: dict | None  # what the program printed as JSON; None when it failed
    error: str           # then why
    peak_bytes: int | None
    limit_hit: int
    swap_bytes: int      # the most that was seen of VmSwap

    @property
    def ok(self):
        return self.report is not None


def run_in_group(command, limit, cold_file, timeout=900):
    """Runs a program that prints JSON, in a memory control group of `limit` bytes, with `cold_file` out of the page cache."""
    drop_from_page_cache(cold_file)
    swap = 0

    def look(pid):
        nonlocal swap
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmSwap:"):
                    swap = max(swap, int(line.split()[1]) * KIB)

    with MemoryCgroup(limit) as group:
        code, out, err = group.run(command, timeout=timeout, look=look)
        peak, hits = group.peak_bytes(), group.limit_was_hit()
    if code == 0:
        return Outcome(json.loads(out), "", peak, hits, swap)
    if code is None:
        error = f"not finished in {timeout} seconds"
    elif code < 0:
        error = f"killed by signal {-code}"
    else:
        error = (err.strip().splitlines() or [f"exit {code}"])[-1][:90]
    return Outcome(None, error, peak, hits, swap)
