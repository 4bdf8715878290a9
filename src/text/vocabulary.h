// Vocabulary: the tokens of a model, what kind each one is, and which of them have a role.
//
// A VocabularySource is the plain description that a model file gives; it may be wrong in every way.
// Vocabulary is what is left after checking: every id it hands out is in range, and what had to be disabled
// or replaced is listed in warnings(). Vocabulary copies what it needs, so the source may go away. Immutable
// after Create: any number of threads may read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace sluice::text {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

// What a model file says about its tokenizer. The comment names the GGUF key that feeds each field; a field
// whose key is absent stays as it is here. Strings are views of the caller's bytes, arbitrary and unchecked.
struct VocabularySource {
  std::string_view model;  // tokenizer.ggml.model: "llama", "gpt2", "gemma4", "t5", "bert", "none" …
  std::string_view pre;    // tokenizer.ggml.pre
  std::vector<std::string_view> tokens;  // tokenizer.ggml.tokens
  std::vector<float> scores;             // tokenizer.ggml.scores (int32 arrays exist too: convert)
  std::vector<int32_t> token_types;      // tokenizer.ggml.token_type
  std::vector<std::string_view> merges;  // tokenizer.ggml.merges
  size_t n_tokens_without_list = 0;      // {architecture}.vocab_size, for model "none"

  // Ids as written in the file; out-of-range values are expected here. The keys are
  // tokenizer.ggml.bos_token_id (bert: cls_token_id first), eos_…, eot_…, eom_…,
  std::optional<int64_t> bos, eos, eot, eom;
  // unknown_token_id, seperator_… (sic), padding_…, mask_…,
  std::optional<int64_t> unknown, separator, padding, mask;
  // fim_pre_token_id, fim_suf_…, fim_mid_… (older: prefix_…, suffix_…, middle_…), fim_pad_…, fim_rep_…,
  // fim_sep_….
  std::optional<int64_t> fim_prefix, fim_suffix, fim_middle, fim_pad, fim_repository, fim_separator;
  // Further ids that end an answer: the eos_token_id list of the model's generation config.
  std::vector<int64_t> end_of_generation;
  // Ids that must never be sampled: tokenizer.ggml.suppress_tokens.
  std::vector<int64_t> suppressed;

  // tokenizer.ggml.add_bos_token, add_eos_token, add_sep_token, add_space_prefix, remove_extra_whitespaces
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix, remove_extra_whitespaces;
  // tokenizer.ggml.normalizer.lowercase, normalizer.strip_accents (bert)
  std::optional<bool> lowercase, strip_accents;
  // tokenizer.ggml.precompiled_charsmap, an array of uint8 or int8 (t5)
  std::span<const std::byte> precompiled_charsmap;

  std::string_view name;          // general.name: some families are told apart by it
  std::string_view architecture;  // general.architecture
};

// The pre-tokenizer that `source` uses: source.pre, or what its model implies.
std::string_view PreTokenizerName(const VocabularySource& source);

// What a token is for. The numbers are those of tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,      // stands for text that has no token
  kControl = 3,      // BOS, turn marks …: parsed from text only on request, printed only on request
  kUserDefined = 4,  // matched in text before anything else, printed as it is
  kUnused = 5,
  kByte = 6  // one byte, spelled "<0xNN>"
};

// How the text becomes tokens.
enum class TokenizerModel : uint8_t {
  kNone,              // no (supported) tokenizer in the file: ids only
  kSentencePiece,     // "llama": merges by score, bytes for what has no token
  kByteLevelBpe,      // "gpt2": merges by rank over bytes
  kSentencePieceBpe,  // "gemma4": merges by rank over characters, bytes for what has no token
  kUnigram,           // "t5": the most probable segmentation
  kWordPiece          // "bert": longest match first, word by word
};

class Vocabulary {
 public:
  // Errors, kCorrupt: no tokens, or a list (scores, types) that is shorter than the tokens. Everything else
  // that is odd becomes a warning: a special id out of range is disabled, of two tokens with one text the
  // first is found.
  static Result<Vocabulary> Create(const VocabularySource& source);

  TokenizerModel model() const { return model_; }
  // Why the model is kNone: "tokenizer model 'rwkv' is not supported".
  const std::string& unsupported_reason() const { return unsupported_; }
  size_t size() const { return size_; }
  bool Contains(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < size(); }

  // The token's text as the file spells it ("Ġthe", "▁the", "<0x0A>"). For the bytes it stands for see
  // Tokenizer::AppendPiece. `id` must be in range, as everywhere below.
  std::string_view Text(TokenId id) const;
  float Score(TokenId id) const { return scores_.empty() ? 0.0f : scores_[static_cast<size_t>(id)]; }
  TokenKind Kind(TokenId id) const {
    return kinds_.empty() ? TokenKind::kNormal : kinds_[static_cast<size_t>(id)];
  }
  bool IsControl(TokenId id) const {
    return Kind(id) == TokenKind::kControl || Kind(id) == TokenKind::kUnknown;
  }

  // The length in bytes of the longest token that encoders look for.
  size_t longest_token() const { return longest_token_; }

  // The token with exactly this text, or kNoToken.
  TokenId Find(std::string_view text) const { return Find(text, Hash(text)); }
  // The same with the text's hash at hand. The hash of a longer text goes on from that of its beginning:
  // Hash("ab") == Hash("b", Hash("a")).
  TokenId Find(std::string_view text, uint64_t hash) const;
  static uint64_t Hash(std::string_view text, uint64_t hash = kHashSeed) {
    return HashBytes(std::as_bytes(std::span(text)), hash);
  }
  // The token for one byte when characters have none, or kNoToken.
  TokenId ByteToken(uint8_t byte) const { return byte_tokens_[byte]; }

  // The byte that a token of kind kByte stands for.
  uint8_t Byte(TokenId id) const;

  // True when generating this token ends the answer: eos, eot, eom, the file's and the caller's lists, and
  // the well-known turn ends ("<|im_end|>", "<end_of_turn>" …). False for ids out of range.
  bool IsEndOfGeneration(TokenId id) const;
  const std::vector<TokenId>& end_of_generation() const { return end_of_generation_; }  // ascending
  const std::vector<TokenId>& suppressed() const { return suppressed_; }                // ascending

  // kNoToken where the model has none.
  TokenId bos() const { return bos_; }
  TokenId eos() const { return eos_; }
  TokenId eot() const { return eot_; }
  TokenId eom() const { return eom_; }
  TokenId unknown() const { return unknown_; }
  TokenId separator() const { return separator_; }
  TokenId padding() const { return padding_; }
  TokenId mask() const { return mask_; }
  TokenId fim_prefix() const { return fim_prefix_; }
  TokenId fim_suffix() const { return fim_suffix_; }
  TokenId fim_middle() const { return fim_middle_; }

  // Whether a prompt begins with bos() and ends with eos() or separator().
  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return add_eos_; }
  bool add_separator() const { return add_separator_; }

  const std::vector<std::string>& warnings() const { return warnings_; }
  size_t memory_bytes() const;

 private:
  friend class VocabularyBuilder;
  Vocabulary() = default;

  TokenizerModel model_ = TokenizerModel::kNone;
  std::string unsupported_;  // why there is no tokenizer, for model kNone
  size_t size_ = 0;
  std::string texts_;             // all token texts, end to end
  std::vector<uint32_t> starts_;  // [size + 1] where each text begins in texts_; empty without a token list
  std::vector<TokenKind> kinds_;  // [size], or empty without a token list
  std::vector<float> scores_;     // [size], or empty
  // Hash table from text to id, linear probing; a power of two, at most half full.
  std::vector<TokenId> slots_;
  size_t longest_token_ = 0;
  std::array<TokenId, 256> byte_tokens_ = {};
  TokenId bos_ = kNoToken, eos_ = kNoToken, eot_ = kNoToken, eom_ = kNoToken, unknown_ = kNoToken;
  TokenId separator_ = kNoToken, padding_ = kNoToken, mask_ = kNoToken;
  TokenId fim_prefix_ = kNoToken, fim_suffix_ = kNoToken, fim_middle_ = kNoToken;
  bool add_bos_ = false, add_eos_ = false, add_separator_ = false;
  std::vector<TokenId> end_of_generation_;
  std::vector<TokenId> suppressed_;
  std::vector<std::string> warnings_;
};

}  // namespace sluice::text
