#include "convert/token_list.h"

#include <algorithm>

namespace sluice::convert {

namespace {

constexpr int64_t kMaxTokens = 1 << 22;

bool IsByte(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && hex(text[3]) && hex(text[4]) && text[5] == '>';
}

}  // namespace

Status TokenList::Put(int64_t id, std::string text, TokenKind kind) {
  if (id < 0 || id >= kMaxTokens)
    return Fail(ErrorCode::kCorrupt, "token '{}' has the id {}; expected 0 to {}", text.substr(0, 80), id,
                kMaxTokens - 1);
  PadTo(static_cast<size_t>(id) + 1);
  texts[static_cast<size_t>(id)] = std::move(text);
  kinds[static_cast<size_t>(id)] = kind;
  return {};
}

void TokenList::MarkBytes() {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (IsByte(texts[i])) kinds[i] = TokenKind::kByte;
  }
}

void TokenList::PadTo(size_t size) {
  while (texts.size() < size) {
    texts.push_back(fmt::format("[PAD{}]", texts.size()));
    kinds.push_back(TokenKind::kUnused);
    if (!scores.empty()) scores.push_back(-10000.0f);  // merged last of all
  }
}

text::TokenId TokenList::Find(std::string_view text) const {
  const auto found = std::ranges::find(texts, text);
  return found == texts.end() ? text::kNoToken : static_cast<text::TokenId>(found - texts.begin());
}

}  // namespace sluice::convert
