// SpecialMatcher: finds the tokens that are matched in text as they are, before anything else: control tokens
// where they are allowed, and user-defined tokens. Leftmost first, and of those that begin at one place the
// longest.
//
// Keeps ids only; texts come from the vocabulary that each call is given. Immutable after Create.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace sluice::text {

class SpecialMatcher {
 public:
  struct Match {
    size_t begin;
    size_t end;
    TokenId id;
  };

  // Tokens without text are left out.
  static SpecialMatcher Create(const Vocabulary& vocabulary, std::vector<TokenId> ids);

  // The first match at or behind `from` for which allowed(id, begin, end) is true. In time linear in the
  // length of the text times that of the tokens it resembles.
  template <typename Allowed>
  std::optional<Match> Next(const Vocabulary& vocabulary, std::string_view text, size_t from,
                            const Allowed& allowed) const;

  size_t memory_bytes() const { return ids_.capacity() * sizeof(TokenId) + sizeof(first_); }

 private:
  std::vector<TokenId> ids_;              // sorted by text
  std::array<uint32_t, 257> first_ = {};  // ids_[first_[b], first_[b + 1]) begin with byte b
};

template <typename Allowed>
std::optional<SpecialMatcher::Match> SpecialMatcher::Next(const Vocabulary& vocabulary, std::string_view text,
                                                          size_t from, const Allowed& allowed) const {
  if (ids_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    const uint8_t first_byte = static_cast<uint8_t>(text[begin]);
    auto low = ids_.begin() + first_[first_byte];
    auto high = ids_.begin() + first_[first_byte + 1u];
    // [low, high) are the tokens that agree with the text in the first `length` bytes; the shorter come
    // first.
    std::optional<Match> longest;
    for (size_t length = 1; low != high; ++length) {
      bool found = false;
      for (; low != high && vocabulary.Text(*low).size() == length; ++low) {
        if (found || !allowed(*low, begin, begin + length)) continue;
        longest = Match{begin, begin + length, *low};
        found = true;
      }
      if (begin + length == text.size()) break;
      const uint8_t byte = static_cast<uint8_t>(text[begin + length]);
      const auto at = [&](TokenId id) { return static_cast<uint8_t>(vocabulary.Text(id)[length]); };
      low = std::partition_point(low, high, [&](TokenId id) { return at(id) < byte; });
      high = std::partition_point(low, high, [&](TokenId id) { return at(id) <= byte; });
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace sluice::text
