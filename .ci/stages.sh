# shellcheck shell=bash
# The stages of .ci/run that need more than one command. Sourced by bash, after tools/setup.sh.
set -euo pipefail

scripts() {
  shellcheck -x quickstart check .ci/run .ci/stages.sh tools/*.sh
}

# The main job, as a newcomer meets it.
first_answer() {
  ./quickstart | tee build/quickstart.log
  grep -q Paris build/quickstart.log
}

# Every folder of the library: what reads bytes from outside, and what handles memory. The program and the whole chain,
# which are made of these, take as long to build as all of them together.
sanitized_folders=(base platform formats text chat memory io gguf kernels parallel weights kv ops model sample convert
  quantize eval)

# One build serves the tests under ASan and UBSan and, in the next stage, the fuzzers. It is clang's, so that the library
# passes a second compiler, too. A sanitizer's own report is the failure; leaks count.
sanitizers() {
  configure fuzz
  build_tests fuzz "${sanitized_folders[@]}"
  run_tests '*' build/fuzz/tests
}

# build_tests PRESET FOLDER…: the test programs of these folders, and what they need.
build_tests() {
  local preset=$1 folder targets=()
  shift
  for folder in "$@"; do
    targets+=("tests/$folder/all")
  done
  build "$preset" "${targets[@]}"
}

# What must give the same bits on ARM: arithmetic, formats, kernels, and with them whole models.
aarch64_folders=(base formats kernels model)

aarch64_build() {
  tools/aarch64_sysroot.sh
  configure aarch64-static
  build_tests aarch64-static "${aarch64_folders[@]}"
}

# aarch64_tests CPU TABLE: the kernels, and the frozen hashes of models, on qemu's model of the processor. TABLE is the
# fastest set of kernels that it has, whose tests must really run there.
aarch64_tests() {
  local tests=build/aarch64-static/tests
  export QEMU_CPU=$1
  run_tests '*' "$tests/kernels" || return 1
  if grep -qE "SKIPPED.*/$2(_|\b)" "$tests"/kernels/*.log || ! grep -qE "OK .*/$2(_|\b)" "$tests"/kernels/*.log; then
    echo "Tests of $2 did not run on $1"
    return 1
  fi
  # The fastest processor has every table and runs all files; the others prove on a few that theirs is chosen.
  local files="bundled*:synth_F16_32:synth_Q8_0_32:synth_Q4_K_256:quant_llama_Q4_K_M"
  if [ "$1" = max ]; then files='*'; fi
  local hashes="*OneHashForEveryTableOfKernels/"
  run_tests "$hashes${files//:/:$hashes}" "$tests/model"
}

# The rest of what must give the same bits, which doesn't depend on the processor model.
aarch64_common_tests() {
  run_tests '*' build/aarch64-static/tests/base build/aarch64-static/tests/formats
}

# run_tests FILTER FOLDER…: these tests of all GoogleTest programs in the folders, each program in four parts, one part
# a core. Much faster than ctest, which starts a process for each test, where starting one is slow: under qemu and
# sanitizers. Logs lie beside the programs; those of failures are shown.
run_tests() {
  local filter=$1
  shift
  find "$@" -name '*_test' -type f -perm -u+x | sort |
    awk -v filter="$filter" '{for (part = 0; part < 4; part++) print filter, $0, part}' |
    xargs -P "$(nproc)" -L 1 bash -c '. .ci/stages.sh; run_part "$@"' run_part
}

# run_part FILTER PROGRAM PART
run_part() {
  local log=$2.$3.log emulator=()
  case $2 in *aarch64*) emulator=(qemu-aarch64) ;; esac
  if GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$3 "${emulator[@]}" "$2" --gtest_filter="$1" >"$log" 2>&1; then
    echo "$2, part $3: $(grep -o '[0-9]* tests* from [0-9]* test suites* ran.*' "$log")"
  else
    grep -v '^\[ *\(RUN\|OK\) ' "$log" | tail -n 60
    echo "$2, part $3: FAILED"
    return 1
  fi
}

# fuzzers SECONDS: each fuzzer that long, as many at once as there are cores. A program NAME_seeds beside NAME_fuzzer
# makes its first inputs.
fuzzers() {
  local seconds=$1
  build fuzz fuzz/all
  find build/fuzz/fuzz -maxdepth 1 -name '*_fuzzer' -type f | sort |
    xargs -P "$(nproc)" -I{} bash -c '. .ci/stages.sh; fuzz_one "$@"' fuzz_one {} "$seconds"
}

fuzz_one() {
  local name corpus
  name=$(basename "$1")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  if [ -x "${1%_fuzzer}_seeds" ]; then "${1%_fuzzer}_seeds" "$corpus"; fi
  if "$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$name-" \
      "$corpus" >"build/fuzz/$name.log" 2>&1; then
    echo "$name: $(grep -o 'Done .*' "build/fuzz/$name.log")"
  else
    tail -n 40 "build/fuzz/$name.log"
    echo "$name: FAILED"
    return 1
  fi
}
