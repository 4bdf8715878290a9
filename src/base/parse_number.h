// Floating-point numbers out of text, the same in every locale. std::from_chars does it, but not in every
// standard library that Sluice is built with: libc++ (Android, Apple) had it for integers only for a long
// time.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

// Reads the decimal number that `text` begins with ("1", "-0.5e3", "inf", "nan"; no '+', no blanks, no
// hexadecimal) and returns how many bytes it took. 0, with *value as it was: there is none, or it is out of
// range. T is float or double; the value is the nearest one.
template <typename T>
size_t ParseFloating(std::string_view text, T* value);

// Whether `text` is such a number from its first byte to its last.
template <typename T>
bool ParseWholeFloating(std::string_view text, T* value) {
  T parsed;
  const size_t used = ParseFloating(text, &parsed);
  if (used == 0 || used != text.size()) return false;
  *value = parsed;
  return true;
}

namespace internal {
// What ParseFloating does where std::from_chars is missing; built everywhere, so that a test can compare
// them.
template <typename T>
size_t ParseFloatingWithStream(std::string_view text, T* value);
}  // namespace internal

}  // namespace sluice
