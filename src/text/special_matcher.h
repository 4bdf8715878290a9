// SpecialMatcher: finds the tokens that are matched in text as they are, before anything else: control tokens
// where they are allowed, and user-defined tokens. Leftmost first, and of those that begin at one place the
// longest.
//
// Keeps ids only; texts come from the vocabulary that each call is given. Immutable after Create.
#pragma once

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

  // The first match at or behind `from`.
  std::optional<Match> Next(const Vocabulary& vocabulary, std::string_view text, size_t from) const;

  size_t memory_bytes() const { return ids_.capacity() * sizeof(TokenId) + sizeof(first_); }

 private:
  std::vector<TokenId> ids_;              // sorted by text
  std::array<uint32_t, 257> first_ = {};  // ids_[first_[b], first_[b + 1]) begin with byte b
};

}  // namespace sluice::text
