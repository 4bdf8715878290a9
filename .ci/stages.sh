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

sanitizers() {
  configure asan
  build asan
  # A sanitizer's own report is the failure; leaks count too.
  ctest --test-dir build/asan -j "$(nproc)" --output-on-failure
}

# What must give the same bits on ARM: arithmetic, formats, kernels, and with them whole models.
aarch64_folders="base formats kernels model"

aarch64_build() {
  local folder targets=()
  tools/aarch64_sysroot.sh
  configure aarch64-static
  for folder in $aarch64_folders; do
    targets+=("tests/$folder/all")
  done
  build aarch64-static "${targets[@]}"
}

# aarch64_tests CPU TABLE: the kernels, and the frozen hashes of models, on qemu's model of the processor. TABLE is the
# fastest set of kernels that it has, whose tests must really run there.
aarch64_tests() {
  local log=build/aarch64-static/$1.log
  QEMU_CPU=$1 ctest --test-dir build/aarch64-static/tests/kernels -j "$(nproc)" --output-on-failure | tee "$log"
  if grep -E "[/.]$2(_|\b).*\*\*\*Skipped" "$log" || ! grep -qE "[/.]$2(_|\b).*Passed" "$log"; then
    echo "Tests of $2 did not run on $1"
    return 1
  fi
  QEMU_CPU=$1 ctest --test-dir build/aarch64-static/tests/model -j "$(nproc)" --output-on-failure \
    -R OneHashForEveryTableOfKernels
}

# The rest of what must give the same bits, which doesn't depend on the processor model.
aarch64_common_tests() {
  local folder
  for folder in base formats; do
    ctest --test-dir "build/aarch64-static/tests/$folder" -j "$(nproc)" --output-on-failure
  done
}

# fuzzers SECONDS: each fuzzer that long, as many at once as there are cores. A program NAME_seeds beside NAME_fuzzer
# makes its first inputs.
fuzzers() {
  local seconds=$1
  configure fuzz
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
