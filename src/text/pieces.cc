#include "text/pieces.h"

#include <algorithm>

namespace sluice::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

}  // namespace

void AppendMarkingSpaces(std::string_view text, std::string* out) {
  for (const char c : text) {
    if (c == ' ') {
      *out += kSpaceMark;
    } else {
      *out += c;
    }
  }
}

void AppendUnmarkingSpaces(std::string_view text, std::string* out) {
  while (!text.empty()) {
    const size_t mark = std::min(text.find(kSpaceMark), text.size());
    out->append(text.substr(0, mark));
    if (mark == text.size()) return;
    out->push_back(' ');
    text.remove_prefix(mark + kSpaceMark.size());
  }
}

void AppendBytesOrUnknown(const Vocabulary& vocabulary, std::string_view bytes, std::vector<TokenId>* out) {
  const auto token = [&](char c) { return vocabulary.ByteToken(static_cast<uint8_t>(c)); };
  if (std::all_of(bytes.begin(), bytes.end(), [&](char c) { return token(c) != kNoToken; })) {
    for (const char c : bytes) out->push_back(token(c));
    return;
  }
  const TokenId unknown = vocabulary.unknown();
  if (unknown != kNoToken && (out->empty() || out->back() != unknown)) out->push_back(unknown);
}

}  // namespace sluice::text
