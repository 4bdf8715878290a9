// Builds small vocabularies for tests: tokens with kinds, scores and merges, with the memory behind them.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice::text {

class SmallVocabulary {
 public:
  explicit SmallVocabulary(std::string_view model, std::string_view pre = "") {
    source.model = model;
    source.pre = pre;
  }

  TokenId Add(std::string_view text, TokenKind kind = TokenKind::kNormal, float score = 0) {
    source.tokens.push_back(Keep(text));
    source.token_types.push_back(static_cast<int32_t>(kind));
    source.scores.push_back(score);
    return static_cast<TokenId>(source.tokens.size()) - 1;
  }

  // "left right", adding the token that results unless it is there.
  TokenId Merge(std::string_view left, std::string_view right) {
    source.merges.push_back(Keep(std::string(left) + " " + std::string(right)));
    const std::string joined = std::string(left) + std::string(right);
    for (size_t i = 0; i < source.tokens.size(); ++i) {
      if (source.tokens[i] == joined) return static_cast<TokenId>(i);
    }
    return Add(joined);
  }

  // The 256 bytes as "<0xNN>".
  void AddByteTokens() {
    for (int byte = 0; byte < 256; ++byte) Add(fmt::format("<0x{:02X}>", byte), TokenKind::kByte);
  }
  // The 256 bytes as GPT-2 spells them: token id = byte, if they are added first.
  void AddSpelledBytes() {
    for (const uint16_t spelling : kByteSpelling) {
      std::string text;
      AppendUtf8(spelling, &text);
      Add(text);
    }
  }

  std::string_view Keep(std::string_view text) { return kept_.emplace_back(text); }

  Tokenizer Make() const {
    Result<Tokenizer> made = Tokenizer::Create(source);
    SLUICE_CHECK(made.has_value());
    return *std::move(made);
  }

  VocabularySource source;

 private:
  std::deque<std::string> kept_;
};

// The ids of a text, which must be encodable.
inline std::vector<TokenId> Ids(const Tokenizer& tokenizer, std::string_view text,
                                EncodeOptions options = {}) {
  Result<std::vector<TokenId>> ids = tokenizer.Encode(text, options);
  SLUICE_CHECK(ids.has_value());
  return *std::move(ids);
}

// The texts of the tokens of a text: what a failed expectation should show.
inline std::vector<std::string> Pieces(const Tokenizer& tokenizer, std::string_view text,
                                       EncodeOptions options = {}) {
  std::vector<std::string> pieces;
  for (const TokenId id : Ids(tokenizer, text, options)) pieces.emplace_back(tokenizer.vocabulary().Text(id));
  return pieces;
}

}  // namespace sluice::text
