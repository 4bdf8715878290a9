#!/usr/bin/env python3
"""Checks that object files compiled for one instruction set keep their code to themselves.

usage: check_symbols.py NM OBJECT…

The linker keeps one copy of each weak symbol, from whichever object comes first. Were one of these objects to define
an inline function or a template, its copy (full of AVX-512, say) could replace everybody's, and the program would die
on a processor without it. So these objects may define no weak symbol, and use no template of the standard library
that somebody else must instantiate. What they define for others must be in sluice::kernels.
"""
import subprocess
import sys


def parse(output):
    """(type letter, demangled name) for each symbol line of nm."""
    for line in output.splitlines():
        fields = line[17:].split(" ", 1) if len(line) > 17 and line[16] == " " else line.split(" ", 1)
        if len(fields) == 2 and len(fields[0]) == 1:
            yield fields[0], fields[1]


def fault(kind, name):
    """Why a symbol must not be there, or None."""
    if kind in "WVu":
        return "a weak symbol (an inline function, template or inline variable) is defined"
    if kind == "U" and name.startswith("std::") and "<" in name:
        return "a standard template is used that others instantiate"
    if kind in "TDBRC" and not name.startswith("sluice::kernels::"):
        return "a symbol outside sluice::kernels is defined"
    return None


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    nm, objects = sys.argv[1], sys.argv[2:]
    findings = defined = 0
    for path in objects:
        output = subprocess.run([nm, "-C", path], check=True, capture_output=True, text=True).stdout
        for kind, name in parse(output):
            defined += kind.isupper() and kind != "U"
            reason = fault(kind, name)
            if reason:
                findings += 1
                print(f"{path}: {reason}: {kind} {name}")
    print(f"check_symbols: {len(objects)} objects, {defined} symbols defined for others, {findings} findings")
    # No symbol at all means that nm understood nothing: a check that checked nothing has not passed.
    return 1 if findings or not defined else 0


if __name__ == "__main__":
    sys.exit(main())
