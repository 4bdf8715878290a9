#include "platform/system_files.h"

#include <charconv>

#include "base/units.h"

namespace sluice::platform {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

std::optional<std::string> ReadSystemFile(const std::string& path) {
  auto text = ReadWholeFile(path, 4 * kMiB);
  if (!text) return std::nullopt;
  return *std::move(text);
}

WatchedFile::WatchedFile(const std::string& path) {
  if (auto file = File::Open(path)) file_ = *std::move(file);
}

std::string_view WatchedFile::Read(std::span<char> buffer) const {
  size_t size = 0;
  while (file_ && size < buffer.size()) {
    const int64_t count = file_->PreadOnce(size, std::as_writable_bytes(buffer.subspan(size)));
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  return {buffer.data(), size};
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  text = Trim(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadSystemFile(path);
  return text ? ParseNumber(*text) : std::nullopt;
}

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  constexpr uint64_t kMaxId = 4095;
  std::vector<int> ids;
  text = Trim(text);
  if (text.empty()) return ids;
  for (const std::string_view range : Split(text, ',')) {
    const size_t dash = range.find('-');
    const auto first = ParseNumber(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseNumber(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kMaxId) return std::nullopt;
    for (uint64_t id = *first; id <= *last; ++id) ids.push_back(static_cast<int>(id));
  }
  return ids;
}

std::optional<std::string_view> FindField(std::string_view table, std::string_view name) {
  while (!table.empty()) {
    const size_t end = table.find('\n');
    std::string_view line = table.substr(0, end);
    table.remove_prefix(end == std::string_view::npos ? table.size() : end + 1);
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (line.starts_with(':') || line.starts_with(' ')) return Trim(line.substr(1));
  }
  return std::nullopt;
}

std::optional<uint64_t> FindKilobytes(std::string_view table, std::string_view name) {
  const auto field = FindField(table, name);
  if (!field || !field->ends_with(" kB")) return std::nullopt;
  const auto kilobytes = ParseNumber(field->substr(0, field->size() - 3));
  uint64_t bytes = 0;
  if (!kilobytes || !CheckedMultiply(*kilobytes, kKiB, &bytes)) return std::nullopt;
  return bytes;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

}  // namespace sluice::platform
