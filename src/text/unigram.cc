#include "text/unigram.h"

#include <algorithm>
#include <limits>

#include "text/pieces.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// How much worse an unknown character is than the worst token, as in SentencePiece.
constexpr double kUnknownPenalty = 10.0;

// What no text that may be encoded comes near to, unless the character map is made to let it explode.
constexpr size_t kMaxNormalisedBytes = size_t{256} << 20;

// The best way to reach a place in the text: by this token, which begins at `begin`.
struct Best {
  double score = -std::numeric_limits<double>::infinity();
  uint32_t begin = 0;
  TokenId token = kNoToken;
};

bool MayBeUsed(TokenKind kind) {
  return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined || kind == TokenKind::kUnused;
}

}  // namespace

Result<UnigramEncoder> UnigramEncoder::Create(const Vocabulary& vocabulary, const VocabularySource& source) {
  UnigramEncoder encoder;
  SLUICE_TRY_ASSIGN(encoder.charsmap_, CharsMap::Create(source.precompiled_charsmap));
  encoder.prefix_space_ = source.add_space_prefix.value_or(false);
  encoder.join_spaces_ = source.remove_extra_whitespaces.value_or(false);
  double worst = std::numeric_limits<double>::max();
  for (TokenId id = 0; vocabulary.Contains(id); ++id) {
    if (vocabulary.Kind(id) == TokenKind::kNormal) worst = std::min<double>(worst, vocabulary.Score(id));
  }
  encoder.unknown_score_ = (worst == std::numeric_limits<double>::max() ? 0.0 : worst) - kUnknownPenalty;
  return encoder;
}

Result<std::string> UnigramEncoder::Normalise(std::string_view text) const {
  std::string plain;
  plain.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const CharsMap::Prefix prefix = charsmap_.Match(text);
    const size_t size = prefix.size > 0 ? prefix.size : DecodeUtf8(text).size;
    plain += prefix.size > 0 ? prefix.replacement : text.substr(0, size);
    text.remove_prefix(size);
    if (plain.size() > kMaxNormalisedBytes) {
      return Fail(ErrorCode::kResourceExhausted,
                  "the character map of the tokenizer makes more than {} bytes of the text",
                  kMaxNormalisedBytes);
    }
  }
  std::string spaced;
  spaced.reserve(plain.size() + 1);
  if (join_spaces_) {
    // One space before each word, the first too if there is to be one in front; none behind.
    for (size_t i = 0; i < plain.size(); ++i) {
      if (plain[i] == ' ') continue;
      const bool begins_word = i == 0 ? prefix_space_ : plain[i - 1] == ' ';
      if (begins_word && (prefix_space_ || !spaced.empty())) spaced += ' ';
      spaced += plain[i];
    }
  } else {
    if (prefix_space_ && !plain.empty()) spaced += ' ';
    spaced += plain;
  }
  std::string marked;
  marked.reserve(spaced.size() + spaced.size() / 2);
  AppendMarkingSpaces(spaced, &marked);
  return marked;
}

Status UnigramEncoder::Encode(const Vocabulary& vocabulary, std::string_view text,
                              std::vector<TokenId>* out) const {
  SLUICE_TRY_ASSIGN(const std::string normalised, Normalise(text));
  const std::string_view input = normalised;
  std::vector<Best> best(input.size() + 1);
  best[0].score = 0;
  const auto reach = [&](size_t begin, size_t end, double score, TokenId token) {
    const double sum = best[begin].score + score;
    if (sum > best[end].score) best[end] = {sum, static_cast<uint32_t>(begin), token};
  };
  for (size_t begin = 0; begin < input.size();) {
    const size_t first_size = DecodeUtf8(input.substr(begin)).size;
    bool first_is_token = false;
    uint64_t hash = Vocabulary::Hash(input.substr(begin, first_size));
    const size_t limit = std::min(input.size() - begin, vocabulary.longest_token());
    for (size_t size = first_size; size <= limit;) {
      const TokenId token = vocabulary.Find(input.substr(begin, size), hash);
      if (token != kNoToken && MayBeUsed(vocabulary.Kind(token))) {
        first_is_token |= size == first_size;
        // User-defined tokens are wanted whatever their score says.
        const bool wanted = vocabulary.Kind(token) == TokenKind::kUserDefined;
        reach(begin, begin + size, wanted ? 0.0 : vocabulary.Score(token), token);
      }
      if (begin + size == input.size()) break;
      const size_t next = DecodeUtf8(input.substr(begin + size)).size;
      hash = Vocabulary::Hash(input.substr(begin + size, next), hash);
      size += next;
    }
    if (!first_is_token) reach(begin, begin + first_size, unknown_score_, kNoToken);
    begin += first_size;
  }

  std::vector<uint32_t> ends;  // of the chosen tokens, last first
  for (uint32_t end = static_cast<uint32_t>(input.size()); end > 0; end = best[end].begin)
    ends.push_back(end);
  std::reverse(ends.begin(), ends.end());
  for (const uint32_t end : ends) {
    if (best[end].token != kNoToken) {
      out->push_back(best[end].token);
    } else {
      AppendBytesOrUnknown(vocabulary, input.substr(best[end].begin, end - best[end].begin), out);
    }
  }
  return {};
}

}  // namespace sluice::text
