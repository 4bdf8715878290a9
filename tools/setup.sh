# shellcheck shell=bash
# Shell functions that quickstart, check and .ci/run share. Sourced by bash, from the root of the tree.

# Prints the packages of a stage and of those it builds on.
packages_for() {
  local stages
  case $1 in
    quickstart) stages="quickstart" ;;
    check) stages="quickstart check" ;;
    ci) stages="quickstart check ci" ;;
  esac
  while read -r package stage; do
    case " $stages " in *" $stage "*) echo "$package" ;; esac
  done < <(grep -v '^#' tools/packages.txt)
}

# Installs what is missing of a stage's packages. Asks before sudo, except as root or in CI (CI=true). On a system
# without apt it prints the list, and goes on if a compiler and cmake are there: cmake names what it misses.
need_packages() {
  local package missing=() answer
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This system has no apt. Please have these installed (Debian's names; yours may differ):"
    packages_for "$1" | sed 's/^/  /'
    for package in cmake ninja c++; do
      command -v "$package" >/dev/null || { echo "Missing: $package"; return 1; }
    done
    return 0
  fi
  for package in $(packages_for "$1"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi
  echo "Packages to install: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Please install them as root: apt-get install ${missing[*]}"; return 1; }
    as_root=(sudo)
    if [ "${CI:-}" != true ]; then
      read -r -p "Install them now with sudo apt-get? [y/N] " answer || answer=n
      case $answer in
        [yY]*) ;;
        *) echo "Nothing was installed. By hand: sudo apt-get install ${missing[*]}"; return 1 ;;
      esac
    fi
  fi
  "${as_root[@]}" apt-get update -q || return 1
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# How many compilers may run at once: one a core, and at least 1.5 GiB of free memory each.
build_jobs() {
  local cores by_memory
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo 2>/dev/null)
  by_memory=${by_memory:-$cores}
  if [ "$by_memory" -lt "$cores" ]; then cores=$by_memory; fi
  if [ "$cores" -lt 1 ]; then cores=1; fi
  echo "$cores"
}

# configure PRESET [cmake arguments]: configures build/PRESET, through ccache where that is installed.
configure() {
  local preset=$1
  shift
  if command -v ccache >/dev/null; then
    set -- -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@"
  fi
  cmake --preset "$preset" "$@" >"build/$preset.log" 2>&1 || { cat "build/$preset.log"; return 1; }
}

# build PRESET [targets]: builds them, or everything.
build() {
  local preset=$1
  shift
  cmake --build "build/$preset" -j "$(build_jobs)" ${1:+--target "$@"}
}
