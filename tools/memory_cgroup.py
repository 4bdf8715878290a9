"""MemoryCgroup: a control group of its own for one program, to limit its memory and to see what it was charged.

    with MemoryCgroup(limit_bytes) as group:
        result = group.run(["sluice", "run", ...])
        group.peak_bytes(), group.limit_was_hit()

Works with version 1 (the memory controller mounted at /sys/fs/cgroup/memory) and version 2, as root. Raises
Unavailable, with the reason, where groups can't be made.
"""
import os
import pathlib
import subprocess
import time

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")


class Unavailable(Exception):
    pass


class MemoryCgroup:
    def __init__(self, limit_bytes):
        self.v1 = V1.is_dir()
        self.folder = (V1 if self.v1 else V2) / f"sluice-{os.getpid()}-{time.monotonic_ns()}"
        try:
            self.folder.mkdir()
            self._write("memory.limit_in_bytes" if self.v1 else "memory.max", limit_bytes)
            if not self.v1:
                self._write("memory.swap.max", 0)
        except OSError as error:
            if self.folder.is_dir():
                self.folder.rmdir()
            raise Unavailable(f"no memory control group can be made: {error}") from error
        if self.v1:
            try:
                self._write("memory.swappiness", 0)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Page cache that is still charged would keep the folder busy for a moment.
        for _ in range(50):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.05)

    def _write(self, name, value):
        (self.folder / name).write_text(str(value))

    def _read(self, name):
        return (self.folder / name).read_text()

    def start(self, command, **options):
        """subprocess.Popen, in the group from the program's first instruction on."""
        procs = str(self.folder / "cgroup.procs")

        def enter():
            with open(procs, "w") as file:
                file.write(str(os.getpid()))

        return subprocess.Popen(command, preexec_fn=enter, **options)

    def run(self, command, timeout=None, look=None):
        """(exit code, stdout, stderr). A program that is still running after `timeout` seconds is killed: None.
        `look` is called with its process id, 20 times a second."""
        with self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            end = None if timeout is None else time.monotonic() + timeout
            while True:
                try:
                    out, err = program.communicate(timeout=0.05 if look else timeout)
                    return program.returncode, out, err
                except subprocess.TimeoutExpired:
                    if end is not None and time.monotonic() >= end:
                        program.kill()
                        out, err = program.communicate()
                        return None, out, err
                    look(program.pid)

    def usage_bytes(self):
        """What is charged now, page cache included."""
        return int(self._read("memory.usage_in_bytes" if self.v1 else "memory.current"))

    def peak_bytes(self):
        """The most that was charged at once, page cache included; None where the kernel doesn't keep it."""
        try:
            return int(self._read("memory.max_usage_in_bytes" if self.v1 else "memory.peak"))
        except FileNotFoundError:
            return None

    def limit_was_hit(self):
        """How often the limit made the kernel look for memory to take back."""
        if self.v1:
            return int(self._read("memory.failcnt"))
        events = dict(line.split() for line in self._read("memory.events").splitlines())
        return int(events["max"]) + int(events["oom"])


def drop_from_page_cache(path):
    """The next read of the file comes from storage."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
