#!/bin/sh
# Collects the third-party libraries for the aarch64 build in a folder of its own (build/aarch64-sysroot), from the
# same Debian release and mirrors as this machine. The system's own package state is neither read nor changed:
# apt works on a private state folder, and packages are unpacked, not installed.
#
# usage: tools/aarch64_sysroot.sh [DIR]     does nothing when DIR is complete already
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
sysroot=${1:-$root/build/aarch64-sysroot}
packages="libfmt-dev libpcre2-dev libutf8proc-dev liburing-dev libgtest-dev libgmock-dev nlohmann-json3-dev
  libcli11-dev"

# The list is part of the mark, so that a checkout with more packages fetches again.
mark=$sysroot/.complete
if [ -f "$mark" ] && [ "$(cat "$mark")" = "$packages" ]; then
  exit 0
fi

rm -rf "$sysroot"
mkdir -p "$sysroot"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/debs"
: >"$work/state/status"
private_apt() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
    -o Dir::State="$work/state" -o Dir::State::status="$work/state/status" -o Dir::State::lists="$work/state/lists" \
    -o Dir::Cache="$work/cache" -o Dir::Etc::sourceparts="$work/sources.list.d" \
    -o Dir::Etc::sourcelist="$work/sources.list" "$@"
}
# Debian's own sources only: other repositories of this machine may have nothing for arm64.
mkdir "$work/sources.list.d"
: >"$work/sources.list"
for source in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  [ -f "$source" ] || continue
  if grep -q debian "$source"; then
    case $source in
      *.sources) cp "$source" "$work/sources.list.d/" ;;
      *) cat "$source" >>"$work/sources.list" ;;
    esac
  fi
done

private_apt update
# shellcheck disable=SC2086  # a list of words
(cd "$work/debs" && private_apt download $packages)
for deb in "$work"/debs/*.deb; do
  dpkg-deb -x "$deb" "$sysroot"
done
# The build is static: the .so links of -dev packages dangle here (the libraries are in other packages).
find "$sysroot" -name '*.so*' -delete

# Debian has no static libfmt. Made here, from its headers: the functions, and the templates that fmt/format.h
# declares without defining them.
lib=$sysroot/usr/lib/aarch64-linux-gnu
cat >"$work/fmt.cc" <<'SOURCE'
#include <fmt/format-inl.h>
namespace fmt::detail {
template void vformat_to(buffer<char>&, string_view, basic_format_args<buffer_context<char>>, locale_ref);
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal<float>(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal<double>(double) noexcept;
template void buffer<char>::append(const char*, const char*);
}  // namespace fmt::detail
SOURCE
aarch64-linux-gnu-g++ -std=c++20 -O2 -isystem "$sysroot/usr/include" -c "$work/fmt.cc" -o "$work/fmt.o"
aarch64-linux-gnu-ar rcs "$lib/libfmt.a" "$work/fmt.o"
sed -i 's/libfmt\.so[.0-9]*/libfmt.a/' "$lib"/cmake/fmt/*.cmake
printf '%s' "$packages" >"$mark"
echo "aarch64 libraries: $sysroot"
