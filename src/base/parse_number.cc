#include "base/parse_number.h"

#include <charconv>
#include <limits>
#include <locale>
#include <sstream>
#include <string>

namespace sluice {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// How many bytes of `text`, from `at` on, are digits.
size_t Digits(std::string_view text, size_t at) {
  size_t count = 0;
  while (at + count < text.size() && IsDigit(text[at + count])) ++count;
  return count;
}

// Whether `text` has `word` (lower case) at `at`, in any case.
bool HasWord(std::string_view text, size_t at, std::string_view word) {
  if (text.size() - at < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if ((text[at + i] | 0x20) != word[i]) return false;
  }
  return true;
}

// The length of the number in digits that `text` begins with; 0 where there is none.
size_t NumberLength(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = Digits(text, at);
  at += whole;
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = Digits(text, at + 1);
    if (whole + fraction > 0) at += 1 + fraction;
  }
  if (whole + fraction == 0) return 0;
  if (at < text.size() && (text[at] | 0x20) == 'e') {
    const size_t sign = at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+') ? 1 : 0;
    const size_t exponent = Digits(text, at + 1 + sign);
    if (exponent > 0) at += 1 + sign + exponent;
  }
  return at;
}

}  // namespace

namespace internal {

template <typename T>
size_t ParseFloatingWithStream(std::string_view text, T* value) {
  const size_t sign = text.starts_with('-') ? 1 : 0;
  for (const std::string_view word : {"infinity", "inf", "nan"}) {
    if (!HasWord(text, sign, word)) continue;
    const T magnitude =
        word == "nan" ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
    *value = sign == 1 ? -magnitude : magnitude;
    return sign + word.size();
  }
  const size_t length = NumberLength(text);
  if (length == 0) return 0;
  std::istringstream stream{std::string(text.substr(0, length))};
  stream.imbue(std::locale::classic());
  T parsed = 0;
  stream >> parsed;
  // Out of range: too large fails, too small has become zero.
  const bool has_digit = text.substr(0, text.find_first_of("eE")).find_first_of("123456789") < length;
  if (stream.fail() || (parsed == 0 && has_digit)) return 0;
  *value = parsed;
  return length;
}
template size_t ParseFloatingWithStream<float>(std::string_view, float*);
template size_t ParseFloatingWithStream<double>(std::string_view, double*);

}  // namespace internal

template <typename T>
size_t ParseFloating(std::string_view text, T* value) {
#if defined(__cpp_lib_to_chars)  // promises the floating-point half, too
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() ? static_cast<size_t>(end - text.data()) : 0;
#else
  return internal::ParseFloatingWithStream(text, value);
#endif
}
template size_t ParseFloating<float>(std::string_view, float*);
template size_t ParseFloating<double>(std::string_view, double*);

}  // namespace sluice
