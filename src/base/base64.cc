#include "base/base64.h"

#include <cstddef>
#include <cstdint>

namespace sluice {

namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text += i + j <= bytes.size() ? kBase64[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  while (!text.empty() && (text.back() == '=' || text.back() == '\n')) text.remove_suffix(1);
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t value = kBase64.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xff);
    }
  }
  if (bits >= 6) return std::nullopt;
  return bytes;
}

}  // namespace sluice
