#!/usr/bin/env python3
"""Tests of check_layers.py and check_symbols.py: each rule is shown to fail on a tree that breaks it.

usage: checkers_test.py [CXX NM]     with a compiler and nm, check_symbols is tried on real object files too
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_symbols

TOOLS = pathlib.Path(__file__).resolve().parent
COMPILER = None


def run_layers(files):
    """Output and exit code of check_layers on a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, TOOLS / "check_layers.py", root], capture_output=True, text=True,
                              check=False)
        return done.stdout + done.stderr, done.returncode


GOOD = {
    "src/base/a.h": "#pragma once\n#include <vector>\n",
    "src/gguf/reader.h": '#pragma once\n#include "base/a.h"\n#include "formats/f.h"\n',
    "src/formats/f.h": "#pragma once\n",
    "src/api/api.cc": '#include "sluice/sluice.h"\n#include "gguf/reader.h"\n',
    "include/sluice/sluice.h": "#pragma once\n#include <string>\n",
    "apps/sluice/main.cc": '#include "sluice/sluice.h"\n#include "sluice/options.h"\n#include <CLI/CLI.hpp>\n',
    "apps/sluice/options.h": "#pragma once\n",
    "tests/gguf/t.cc": '#include <gtest/gtest.h>\n#include "gguf/reader.h"\n',
    "src/gguf/CMakeLists.txt": "sluice_library(gguf\n  SOURCES a.cc  # not text\n  DEPS base formats\n  LIBS x)\n",
}


class Layers(unittest.TestCase):
    def expect(self, changes, message):
        output, code = run_layers({**GOOD, **changes})
        self.assertIn(message, output)
        self.assertEqual(code, 1, output)

    def test_good_tree_passes(self):
        output, code = run_layers(GOOD)
        self.assertEqual(code, 0, output)

    def test_empty_tree_is_no_pass(self):
        self.assertEqual(run_layers({"src/x.txt": ""})[1], 1)

    def test_upward_include(self):
        self.expect({"src/base/b.cc": '#include "gguf/reader.h"\n'}, "src/base/b.cc:1: base may not include gguf")

    def test_upward_dependency(self):
        self.expect({"src/base/CMakeLists.txt": "sluice_library(base SOURCES a.cc DEPS gguf)"},
                    "base may not depend on gguf")

    def test_apps_see_the_public_api_only(self):
        self.expect({"apps/sluice/x.cc": '#include "gguf/reader.h"\n'}, "only include/sluice is allowed")

    def test_public_headers_show_no_machinery(self):
        self.expect({"include/sluice/x.h": '#pragma once\n#include "formats/f.h"\n'}, "public may not include formats")

    def test_library_out_of_place(self):
        self.expect({"src/gguf/j.cc": "\n#include <nlohmann/json.hpp>\n"}, "src/gguf/j.cc:2: <nlohmann/json.hpp>")

    def test_unknown_library(self):
        self.expect({"src/gguf/j.cc": "#include <boost/any.hpp>\n"}, "is in no table")

    def test_operating_system_out_of_place(self):
        self.expect({"src/gguf/j.cc": "#include <sys/mman.h>\n"}, "<sys/mman.h> may be used in")
        self.expect({"src/gguf/j.cc": "#ifdef X\n#if defined(__linux__)\n#endif\n"}, "j.cc:2: __linux__")

    def test_relative_include(self):
        self.expect({"src/gguf/j.cc": '#include "../base/a.h"\n'}, "not through ../")

    def test_absent_file(self):
        self.expect({"src/gguf/j.cc": '#include "base/gone.h"\n'}, "names no file")

    def test_cycle(self):
        self.expect({"src/base/a.h": '#pragma once\n#include "base/b.h"\n',
                     "src/base/b.h": '#pragma once\n#include "base/a.h"\n'}, "include cycle: src/base/a.h →")

    def test_guard(self):
        self.expect({"src/base/b.h": "#ifndef B\n#define B\n#endif\n"}, "no #pragma once")

    def test_new_folder_needs_a_row(self):
        self.expect({"src/newfolder/b.h": "#pragma once\n"}, "folder newfolder is in no table")

    def test_long_file_is_only_listed(self):
        output, code = run_layers({**GOOD, "src/base/long.cc": "\n" * 501})
        self.assertIn("long: src/base/long.cc: 501 lines", output)
        self.assertEqual(code, 0)


class Symbols(unittest.TestCase):
    def test_parse(self):
        lines = "0000000000000000 T sluice::kernels::f(int)\n                 U std::sort<int>(int)\n\nx.o:\n"
        self.assertEqual(list(check_symbols.parse(lines)),
                         [("T", "sluice::kernels::f(int)"), ("U", "std::sort<int>(int)")])

    def test_faults(self):
        self.assertIsNone(check_symbols.fault("R", "sluice::kernels::kAvx2"))
        self.assertIsNone(check_symbols.fault("t", "anything local"))
        self.assertIsNone(check_symbols.fault("U", "memcpy"))
        self.assertIsNotNone(check_symbols.fault("W", "sluice::F16ToF32(unsigned short)"))
        self.assertIsNotNone(check_symbols.fault("u", "f()::x"))
        self.assertIsNotNone(check_symbols.fault("U", "std::vector<int>::push_back(int)"))
        self.assertIsNotNone(check_symbols.fault("T", "helper()"))

    def compile_and_check(self, source):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.cc"
            path.write_text(source, encoding="utf-8")
            compiler, nm = COMPILER
            subprocess.run([compiler, "-c", path, "-o", f"{folder}/x.o"], check=True)
            return subprocess.run([sys.executable, TOOLS / "check_symbols.py", nm, f"{folder}/x.o"],
                                  capture_output=True, check=False).returncode

    def test_real_objects(self):
        if COMPILER is None:
            self.skipTest("no compiler given")
        good = "namespace sluice::kernels { int f(int x) { return x; } }"
        self.assertEqual(self.compile_and_check(good), 0)
        leak = "inline int g(int x) { return x; } namespace sluice::kernels { int f(int x) { return g(x); } }"
        self.assertEqual(self.compile_and_check(leak), 1)
        self.assertEqual(self.compile_and_check("static int unused;"), 1)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        COMPILER = sys.argv[1:]
        del sys.argv[1:]
    unittest.main()
