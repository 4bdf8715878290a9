#include "base/units.h"

#include <cctype>
#include <iterator>

#include "base/parse_number.h"

namespace sluice {

Result<uint64_t> ParseSize(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorCode::kInvalidArgument, "'{}' is not a size; expected a number with K, M, G or T, such as 8G", text);
  };
  double number = 0;
  const size_t digits = ParseFloating(text, &number);
  if (digits == 0 || text[0] == '-' || !(number >= 0)) return bad();
  if (text.substr(0, digits).find_first_of("eE") != std::string_view::npos) return bad();
  std::string_view suffix = text.substr(digits);
  double unit = 1;
  if (!suffix.empty()) {
    switch (std::toupper(static_cast<unsigned char>(suffix[0]))) {
      case 'K': unit = static_cast<double>(kKiB); break;
      case 'M': unit = static_cast<double>(kMiB); break;
      case 'G': unit = static_cast<double>(kGiB); break;
      case 'T': unit = static_cast<double>(kGiB) * 1024; break;
      case 'B': break;
      default: return bad();
    }
    if (unit != 1) suffix.remove_prefix(1);
    if (!suffix.empty() && (suffix[0] == 'i' || suffix[0] == 'I') && suffix.size() == 2 && unit != 1)
      suffix.remove_prefix(1);
    if (!suffix.empty() && suffix != "B" && suffix != "b") return bad();
  }
  const double bytes = number * unit;
  if (bytes > 0x1p63) return bad();
  return static_cast<uint64_t>(bytes);
}

namespace {

std::string ThreeDigits(double value, const char* unit) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, unit);
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  static constexpr const char* kUnits[] = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return ThreeDigits(value, kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  if (count < 1000) return fmt::format("{}", count);
  static constexpr const char* kUnits[] = {"K", "M", "B", "T", "P", "E"};
  double value = static_cast<double>(count) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return ThreeDigits(value, kUnits[unit]);
}

}  // namespace sluice
