#!/usr/bin/env python3
"""How fast the ARM kernels decode, estimated without an ARM processor.

Compiles the decode kernel (one activation row, SDOT) of each format, cuts the loop over blocks out of the assembly, and lets
llvm-mca play it on the model of a core. Bytes of weights a round, cycles a round and the clock give GB/s a core, with
everything in L1. What bounds the loop is llvm-mca's own bottleneck analysis.

    bench/arm_estimate.py [--formats Q4_K,Q2_K] [--cores cortex-x4] [--listing DIR]    a table; needs clang-19, llvm-19
    bench/arm_estimate.py --check                    instructions a weight beside the bounds below; needs the cross compiler

--listing keeps each loop's assembly and llvm-mca's whole report.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Name, llvm-mca's model, clock in GHz: of a Snapdragon 8 Gen 3 (X4), a Dimensity 8400 (A720), a Graviton4 (V2). What
# LLVM 19 calls cortex-x4 and cortex-a720 is its model of the Neoverse N2, with two vector units. An A720 has two; an X4
# has four, as the Neoverse V2 has, hence the line that plays it so.
CORES = [
    ("cortex-x4", "cortex-x4", 3.3),
    ("cortex-x4 as V2", "neoverse-v2", 3.3),
    ("cortex-a720", "cortex-a720", 3.0),
    ("neoverse-v2", "neoverse-v2", 2.8),
]

# Instructions a weight that --check lets a loop have: a tenth more than aarch64-linux-gnu-g++ 12 makes of it.
MOST_INSTRUCTIONS = {"Q4_K": 0.41, "Q2_K": 0.60, "Q8_0": 0.45, "Q4_0": 0.57, "Q6_K": 0.87}

ROWS = 4  # MatmulOne's weight rows side by side (src/kernels/arm/products.h)

# What the tables of dotprod.cc and i8mm.cc share for one activation row; compiling these would take minutes.
SOURCE = """#include "kernels/arm/products.h"
namespace sluice::kernels {
struct Sdot {
  static int32x4_t Dot(int32x4_t acc, int8x16_t w, int8x16_t q) { return vdotq_s32(acc, w, q); }
};
extern "C" {
%s
}
}
"""
KERNEL = "void decode_{0}(const MatmulArgs& args) {{ arm::MatmulOne<Sdot, arm::Reader{0}>(args); }}"
SIZE = "extern const int bytes_{0}; const int bytes_{0} = arm::Reader{0}::kBytes;\n" \
       "extern const int length_{0}; const int length_{0} = arm::Reader{0}::kLength;"


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{result.stderr}")
    return result.stdout


def compile_kernels(compiler, formats, folder):
    """The assembly of decode_FORMAT and the sizes bytes_FORMAT and length_FORMAT, for all formats."""
    source = folder / "kernels.cc"
    lines = [KERNEL.format(f) + "\n" + SIZE.format(f) for f in formats]
    source.write_text(SOURCE % "\n".join(lines))
    return run(compiler + ["-std=c++20", "-O3", "-ffp-contract=off", f"-I{ROOT}/src", "-march=armv8.2-a+dotprod", "-S",
                           "-o", "-", str(source)])


def number(assembly, name):
    return int(re.search(rf"^{name}:\n\s+\.word\s+(\d+)", assembly, re.M).group(1))


def body(assembly, function):
    return re.search(rf"^{function}:.*?\n(.*?)^\s+\.size\s+{function}", assembly, re.M | re.S).group(1).splitlines()


def is_instruction(line):
    return re.match(r"\s+[a-z]", line) is not None and not line.strip().startswith(".")


def loop_over_blocks(lines, dots):
    """The instructions from a label to the branch back to it, of the shortest such stretch that has `dots` SDOTs."""
    labels = {m.group(1): i for i, line in enumerate(lines) if (m := re.match(r"(\.L\w+):", line))}
    loops = []
    for i, line in enumerate(lines):
        branch = re.match(r"\s+(?:b\.?[a-z]*|cbn?z|tbn?z)\s.*?(\.L\w+)\s*(?://.*)?$", line)
        if branch and labels.get(branch.group(1), i) < i:
            loop = [text.split("//")[0].rstrip() for text in lines[labels[branch.group(1)] : i + 1]
                    if is_instruction(text)]
            if sum(text.split()[0] == "sdot" for text in loop) == dots:
                loops.append(loop)
    if not loops:
        sys.exit(f"no loop with {dots} SDOTs: blocks are no longer worked on in one stretch")
    return min(loops, key=len)


def play(mca, loop, model, folder):
    """Cycles a round on the model, and llvm-mca's report."""
    path = folder / "loop.s"
    path.write_text("\n".join(loop) + "\n")
    rounds = 200
    report = run([mca, "-mtriple=aarch64-linux-gnu", f"-mcpu={model}", f"-iterations={rounds}", "-bottleneck-analysis",
                  str(path)])
    return int(re.search(r"Total Cycles:\s+(\d+)", report).group(1)) / rounds, report


def bound(report):
    """What the bottleneck analysis says: units that were taken, waits for results, each of all cycles."""
    units = re.findall(r"^\s*- (?:N2|V2)Unit(\S+)\s*\[\s*([\d.]+)%", report, re.M)
    busiest = sorted(((float(share), unit) for unit, share in units), reverse=True)[:3]
    waits = re.search(r"^\s*Data Dependencies:\s*\[\s*([\d.]+)%", report, re.M)
    words = [f"{unit} {share:.0f} %" for share, unit in busiest]
    if waits and float(waits.group(1)) >= 1:
        words.append(f"results {float(waits.group(1)):.0f} %")
    return ", ".join(words) or "issue"


def loops_of(compiler, formats, folder):
    """(format, its loop, bytes a block, weights a block) for each."""
    assembly = compile_kernels(compiler, formats, folder)
    for name in formats:
        length = number(assembly, f"length_{name}")
        yield name, loop_over_blocks(body(assembly, f"decode_{name}"), ROWS * length // 16), \
            number(assembly, f"bytes_{name}"), length


def check(arguments, folder):
    failed = False
    for name, loop, _, length in loops_of([arguments.cross], list(MOST_INSTRUCTIONS), folder):
        found, most = len(loop) / (ROWS * length), MOST_INSTRUCTIONS[name]
        print(f"{name}: {found:.3f} instructions a weight, at most {most}{'' if found <= most else ': TOO MANY'}")
        failed |= found > most
    return 1 if failed else 0


def table(arguments, folder):
    names = arguments.cores.split(",")
    print("| weights | core | instructions a weight | cycles a weight | GB/s a core | bound by |\n|---|---|---|---|---|---|")
    compiler = [arguments.clang, "--target=aarch64-linux-gnu", "-mtune=neoverse-v2"]
    for name, loop, size, length in loops_of(compiler, arguments.formats.split(","), folder):
        for core, model, clock in CORES:
            if core not in names:
                continue
            cycles, report = play(arguments.mca, loop, model, folder)
            weights = ROWS * length
            print(f"| {name} | {core}, {clock} GHz | {len(loop) / weights:.3f} | {cycles / weights:.4f} "
                  f"| {ROWS * size / cycles * clock:.1f} | {bound(report)} |")
            if arguments.listing:
                arguments.listing.mkdir(parents=True, exist_ok=True)
                (arguments.listing / f"{name}.s").write_text("\n".join(loop) + "\n")
                (arguments.listing / f"{name}.{model}.mca").write_text(report)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", default="Q4_K,Q2_K,Q8_0,Q4_0,Q6_K")
    parser.add_argument("--cores", default=",".join(name for name, _, _ in CORES))
    parser.add_argument("--clang", default="clang++-19")
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--cross", default="aarch64-linux-gnu-g++")
    parser.add_argument("--listing", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return (check if arguments.check else table)(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
