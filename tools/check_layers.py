#!/usr/bin/env python3
"""Checks who includes whom: the layering of the project, as a table that fails a test when it is broken.

usage: check_layers.py [ROOT]     ROOT is the source tree (default: the one this script lies in)

Fails (exit 1, one line for each finding) on
  - an include of a folder that the table below doesn't allow, in sources and in the DEPS of CMake targets
  - a library, operating-system or instruction-set header outside the folders that may use it
  - operating-system #ifdefs outside platform/ and io/
  - an include cycle, an include through "../", one that names no file of the tree
  - a header without #pragma once
Files over 500 lines are listed, without failing: look for the second idea in them.
"""
import pathlib
import re
import sys

# Each folder of src/ and the folders that it may include, lowest first. A folder may always include itself.
ALLOWED = {
    "base": "",
    "platform": "base",
    "formats": "base",
    "text": "base",
    "chat": "base text",
    "memory": "base platform",
    "io": "base platform memory",
    "gguf": "base platform formats",
    "kernels": "base platform formats",
    "parallel": "base platform",
    "runtime": "base platform memory kernels parallel",
    "weights": "base platform formats memory io gguf parallel runtime",
    "kv": "base platform formats memory io kernels parallel runtime",
    "ops": "base platform formats memory gguf kernels parallel runtime weights kv",
    "plan": "base platform formats memory io gguf kernels parallel runtime weights kv",
    "model": "base platform formats text memory io gguf kernels parallel runtime ops weights kv plan",
    "sample": "base text memory runtime",
    "session": "base platform formats text chat memory io gguf kernels parallel runtime ops weights kv plan"
               " model sample",
    "governor": "base platform parallel runtime",
    "convert": "base platform formats text memory io gguf parallel runtime model",
    "eval": "base platform formats text chat memory io gguf parallel runtime model sample session",
    "quantize": "base platform formats memory io gguf kernels parallel runtime ops weights kv plan model"
                " sample eval",
}
ALLOWED = {folder: set(names.split()) for folder, names in ALLOWED.items()}
# The implementation of include/sluice stands on everything; its headers hand out types of these folders as they are.
ALLOWED["api"] = set(ALLOWED) | {"public"}
ALLOWED["public"] = set("base platform runtime text chat gguf weights kv plan model sample session convert quantize"
                        " eval".split())

# Headers that are no part of standard C++, and where they may be used. "apps" includes the server and the page.
LIBRARIES = [
    (r"fmt/", "everywhere"),
    (r"pcre2\.h", "text"),
    (r"utf8proc\.h", "text chat eval apps"),
    (r"liburing\.h", "io"),
    (r"string\.h", "chat"),  # memmem: linear, which std::search isn't
    (r"nlohmann/", "chat plan sample session convert eval api apps"),
    (r"CLI/", "apps"),
    (r"httplib\.h", "apps"),
    (r"curl/", "apps"),
    (r"sqlite3\.h", "apps"),
    (r"(\w*intrin|cpuid|arm_neon|arm_acle)\.h", "kernels platform"),
    # Terminals and signals belong to programs, all else of the operating system behind platform/ and io/.
    (r"(termios|signal|unistd|sys/ioctl)\.h", "platform io apps"),
    (r"(sys|linux|asm|mach)/", "platform io"),
    (r"(fcntl|sched|pthread|dirent|dlfcn|poll|windows)\.h", "platform io"),
]
OS_MACROS = re.compile(r"^[ \t]*#\s*(?:el)?if.*\b(__linux__|_WIN32|__APPLE__|__ANDROID__|__unix__)\b", re.M)
INCLUDE = re.compile(r'^[ \t]*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
LONG_FILE = 500


def folder_of(path):
    """The layer that a file (relative to the root) belongs to; None where everything is allowed."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] == "include":
        return "public"
    if parts[0] == "apps":
        return "apps"
    return None


class Checker:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self.graph = {}  # file → files it includes, all relative to the root

    def find(self, path, text, position, message):
        line = text.count("\n", 0, position) + 1
        self.findings.append(f"{path}:{line}: {message}")

    def resolve(self, path, name):
        """The file that #include "name" means in `path`, or None."""
        for base in ("src", "include", "apps", "tests", str(path.parent)):
            candidate = pathlib.Path(base) / name
            if (self.root / candidate).is_file():
                return candidate
        return None

    def check_library(self, path, text, match, folder):
        name = match.group(2)
        if "." not in name and "/" not in name:
            return  # standard C++
        for pattern, where in LIBRARIES:
            if re.match(pattern, name):
                if where != "everywhere" and folder not in where.split():
                    self.find(path, text, match.start(), f"<{name}> may be used in {where} only")
                return
        self.find(path, text, match.start(), f"<{name}> is in no table of tools/check_layers.py")

    def check_include(self, path, text, match, folder):
        name = match.group(2)
        if "../" in name:
            self.find(path, text, match.start(), f'"{name}": includes are paths from src/, not through ../')
            return
        target = self.resolve(path, name)
        if target is None:
            self.find(path, text, match.start(), f'"{name}" names no file of this tree')
            return
        self.graph[path].append(target)
        into = folder_of(target)
        if folder is None or into == folder:
            return
        if folder == "apps":
            if into != "public":
                self.find(path, text, match.start(), f'apps include "{name}": only include/sluice is allowed')
        elif into not in ALLOWED.get(folder, set()):
            self.find(path, text, match.start(), f'{folder} may not include {into} ("{name}")')

    def check_file(self, path):
        text = (self.root / path).read_text(encoding="utf-8")
        folder = folder_of(path)
        self.graph[path] = []
        if path.parts[0] == "src" and folder not in ALLOWED:
            self.find(path, text, 0, f"folder {folder} is in no table of tools/check_layers.py")
            return
        if path.suffix == ".h" and not re.search(r"^#pragma once$", text, re.M):
            self.find(path, text, 0, "no #pragma once")
        for match in INCLUDE.finditer(text):
            public = match.group(2).startswith("sluice/")
            if match.group(1) == '"' or public:
                self.check_include(path, text, match, folder)
            elif folder is not None:
                self.check_library(path, text, match, folder)
        if folder is not None and folder not in ("platform", "io"):
            for match in OS_MACROS.finditer(text):
                self.find(path, text, match.start(), f"{match.group(1)}: OS differences belong to platform/ and io/")

    def check_targets(self, path):
        """The DEPS of sluice_library(folder …) must be folders that the folder may include."""
        text = (self.root / path).read_text(encoding="utf-8")
        folder = path.parts[1]
        for call in re.finditer(r"sluice_library\(([^)]*)\)", text):
            words = re.sub(r"#.*", "", call.group(1)).split()
            dependencies = []
            if "DEPS" in words:
                for word in words[words.index("DEPS") + 1:]:
                    if word in ("SOURCES", "LIBS"):
                        break
                    dependencies.append(word)
            for dependency in dependencies:
                if dependency not in ALLOWED.get(folder, set()):
                    self.find(path, text, call.start(), f"{folder} may not depend on {dependency}")

    def check_cycles(self):
        state = {}

        def visit(path, trail):
            state[path] = "open"
            for target in self.graph.get(path, ()):
                if state.get(target) == "open":
                    cycle = trail[trail.index(target):] + [target] if target in trail else [path, target]
                    self.findings.append(f"{path}: include cycle: " + " → ".join(str(step) for step in cycle))
                elif target not in state:
                    visit(target, trail + [target])
            state[path] = "done"

        for path in sorted(self.graph):
            if path not in state:
                visit(path, [path])

    def run(self):
        long_files = []
        files = sorted(path.relative_to(self.root)
                       for top in ("src", "include", "apps", "tests", "fuzz", "bench")
                       for path in (self.root / top).rglob("*") if path.suffix in (".h", ".cc"))
        for path in files:
            self.check_file(path)
            lines = (self.root / path).read_text(encoding="utf-8").count("\n")
            if lines > LONG_FILE:
                long_files.append(f"{path}: {lines} lines")
        for path in sorted((self.root / "src").glob("*/CMakeLists.txt")):
            self.check_targets(path.relative_to(self.root))
        self.check_cycles()
        return files, long_files


def main():
    default = pathlib.Path(__file__).resolve().parent.parent
    checker = Checker(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else default)
    files, long_files = checker.run()
    for line in long_files:
        print(f"long: {line}")
    for finding in checker.findings:
        print(finding)
    print(f"check_layers: {len(files)} files, {len(checker.findings)} findings")
    # An empty tree means a wrong ROOT: a check that checked nothing has not passed.
    return 1 if checker.findings or not files else 0


if __name__ == "__main__":
    sys.exit(main())
