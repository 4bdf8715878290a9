// Small text files of the kernel (/proc, /sys): read, and the few shapes of their contents parsed. Values
// that are missing or odd come back as nullopt: no figure of the kernel is essential, and what stands in for
// it is the caller's business.
//
// All readers of system figures take a `root` that is put in front of every path: "" on a real system, a
// folder with a made-up /proc and /sys in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/file.h"

namespace sluice::platform {

std::optional<std::string> ReadSystemFile(const std::string& path);

// A file that is read again and again: it stays open, and reading it allocates nothing. One thread at a time
// for a buffer.
class WatchedFile {
 public:
  explicit WatchedFile(const std::string& path);

  // What it says now, as far as the buffer holds it; empty where there is no such file.
  std::string_view Read(std::span<char> buffer) const;

 private:
  std::optional<File> file_;
};

// Decimal digits, with white space around them.
std::optional<uint64_t> ParseNumber(std::string_view text);
std::optional<uint64_t> ReadNumber(const std::string& path);

// "0-3,6" → {0, 1, 2, 3, 6}. Ids above 4095 are not believed.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// The value in the line "name: value" or "name value" of a table such as /proc/meminfo or memory.stat, with
// the white space around it taken off. This and the next allocate nothing.
std::optional<std::string_view> FindField(std::string_view table, std::string_view name);
// A field like "MemTotal:  16384 kB", in bytes.
std::optional<uint64_t> FindKilobytes(std::string_view table, std::string_view name);

// Splits at each separator; the pieces are views. Empty pieces are kept.
std::vector<std::string_view> Split(std::string_view text, char separator);

}  // namespace sluice::platform
