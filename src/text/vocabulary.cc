#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "text/known_tokens.h"
#include "text/pretokenizer_table.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Longer texts are kept and decoded, but never looked for: this bounds the work for each character of a text.
constexpr size_t kLongestLookup = 1024;
// Real vocabularies need less than two probes for a token. A file made to need many more is refused.
constexpr size_t kProbesPerToken = 32;

size_t SlotOf(uint64_t hash, size_t n_slots) { return (hash ^ (hash >> 32)) & (n_slots - 1); }

// The byte that "<0xNN>" spells, or -1.
int ByteOfName(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = digit(text[3]), low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

TokenizerModel ModelOf(std::string_view name, const PreTokenizerSpec* pre) {
  if (name == "llama") return TokenizerModel::kSentencePiece;
  if (name == "gpt2" || name == "gemma4") {
    return pre != nullptr && pre->characters ? TokenizerModel::kSentencePieceBpe
                                             : TokenizerModel::kByteLevelBpe;
  }
  if (name == "t5") return TokenizerModel::kUnigram;
  if (name == "bert") return TokenizerModel::kWordPiece;
  return TokenizerModel::kNone;
}

// What a file of this model means when it doesn't say (as the format's readers have always taken it).
struct ModelDefaults {
  TokenId bos = kNoToken, eos = kNoToken, unknown = kNoToken, separator = kNoToken, padding = kNoToken,
          mask = kNoToken;
  bool add_bos = false, add_eos = false, add_separator = false;
};

ModelDefaults DefaultsOf(TokenizerModel model, const PreTokenizerSpec* pre) {
  switch (model) {
    case TokenizerModel::kSentencePiece:
      return {.bos = 1, .eos = 2, .unknown = 0, .add_bos = true};
    case TokenizerModel::kUnigram:
      return {.eos = 1, .unknown = 2, .padding = 0, .add_eos = true};
    case TokenizerModel::kWordPiece:
      return {.bos = 101,
              .unknown = 100,
              .separator = 102,
              .padding = 0,
              .mask = 103,
              .add_bos = true,
              .add_separator = true};
    case TokenizerModel::kByteLevelBpe:
    case TokenizerModel::kSentencePieceBpe:
      if (pre != nullptr) return {.add_bos = pre->add_bos, .add_separator = pre->add_separator};
      return {};
    case TokenizerModel::kNone:
      return {};
  }
  return {};
}

}  // namespace

// Fills a Vocabulary step by step.
class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(const VocabularySource& source) : source_(source) {}

  Result<Vocabulary> Build() {
    vocabulary_.byte_tokens_.fill(kNoToken);
    pre_ = FindPreTokenizer(PreTokenizerName(source_));
    vocabulary_.model_ = ModelOf(source_.model, pre_);
    defaults_ = DefaultsOf(vocabulary_.model_, pre_);
    if (vocabulary_.model_ == TokenizerModel::kNone) {
      vocabulary_.unsupported_ =
          source_.model.empty() || source_.model == "none" || source_.model == "no_vocab"
              ? std::string("the file has no tokenizer")
              : fmt::format("tokenizer model '{}' is not supported",
                            ToValidUtf8(source_.model.substr(0, 64)));
    }
    SLUICE_TRY(TakeTexts());
    SLUICE_TRY(TakeScores());
    SLUICE_TRY(TakeKinds());
    SLUICE_TRY(Index());
    TakeBytes();
    TakeSpecials();
    TakeKnownTokens();
    TakeLists();
    return std::move(vocabulary_);
  }

 private:
  template <typename... Args>
  void Warn(fmt::format_string<Args...> format, Args&&... args) {
    vocabulary_.warnings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  std::string Quoted(TokenId id) const {
    return fmt::format("'{}'", ToValidUtf8(vocabulary_.Text(id).substr(0, 64)));
  }

  Status TakeTexts() {
    const size_t n = source_.tokens.size();
    vocabulary_.size_ = n;
    if (n == 0 && vocabulary_.model_ == TokenizerModel::kNone) {
      vocabulary_.size_ =
          std::min<size_t>(source_.n_tokens_without_list, std::numeric_limits<TokenId>::max());
      return {};
    }
    if (n == 0) return Fail(ErrorCode::kCorrupt, "the tokenizer has no tokens (tokenizer.ggml.tokens)");
    size_t total = 0;
    for (const std::string_view text : source_.tokens) total += text.size();
    if (n > std::numeric_limits<TokenId>::max() || total > std::numeric_limits<uint32_t>::max()) {
      return Fail(ErrorCode::kCorrupt,
                  "the tokenizer has {} tokens of {} bytes, more than this program can hold", n, total);
    }
    vocabulary_.texts_.reserve(total);
    vocabulary_.starts_.reserve(n + 1);
    vocabulary_.starts_.push_back(0);
    size_t malformed = 0, first_malformed = 0;
    for (size_t i = 0; i < n; ++i) {
      const std::string_view text = source_.tokens[i];
      vocabulary_.texts_ += text;
      vocabulary_.starts_.push_back(static_cast<uint32_t>(vocabulary_.texts_.size()));
      if (IsValidUtf8(text) && text.find('\0') == std::string_view::npos) continue;
      if (malformed++ == 0) first_malformed = i;
    }
    if (malformed > 0) {
      Warn("{} tokens hold a NUL or invalid UTF-8 (the first is {}); they are taken as bytes", malformed,
           first_malformed);
    }
    return {};
  }

  Status TakeScores() {
    if (source_.scores.empty()) return {};
    SLUICE_TRY(CheckLength("tokenizer.ggml.scores", source_.scores.size()));
    vocabulary_.scores_.assign(source_.scores.begin(),
                               source_.scores.begin() + static_cast<ptrdiff_t>(Count()));
    size_t odd = 0;
    for (float& score : vocabulary_.scores_) {
      if (std::isfinite(score)) continue;
      score = -1e9f;  // so low that it is never preferred, but a number: sums and orders stay defined
      ++odd;
    }
    if (odd > 0) Warn("{} token scores are not numbers; those tokens are used last", odd);
    return {};
  }

  Status TakeKinds() {
    std::vector<TokenKind>& kinds = vocabulary_.kinds_;
    kinds.assign(Count(), TokenKind::kNormal);
    if (source_.token_types.empty()) {
      if (vocabulary_.model_ == TokenizerModel::kSentencePiece) {
        for (size_t i = 0; i < kinds.size(); ++i) {
          if (ByteOfName(source_.tokens[i]) >= 0) kinds[i] = TokenKind::kByte;
        }
      }
      return {};
    }
    SLUICE_TRY(CheckLength("tokenizer.ggml.token_type", source_.token_types.size()));
    size_t odd = 0;
    for (size_t i = 0; i < kinds.size(); ++i) {
      const int32_t type = source_.token_types[i];
      if (type >= 1 && type <= 6) {
        kinds[i] = static_cast<TokenKind>(type);
      } else {
        ++odd;
      }
      if (kinds[i] == TokenKind::kByte && ByteOfName(source_.tokens[i]) < 0) {
        if (odd_bytes_++ == 0) first_odd_byte_ = i;
        kinds[i] = TokenKind::kNormal;
      }
    }
    if (odd > 0) Warn("{} tokens have an unknown type; they are taken as normal tokens", odd);
    if (odd_bytes_ > 0) {
      Warn("{} byte tokens are not spelled <0xNN> (the first is {}, {}); they are taken as normal tokens",
           odd_bytes_, first_odd_byte_, Quoted(static_cast<TokenId>(first_odd_byte_)));
    }
    return {};
  }

  // Builds the hash table from text to id.
  Status Index() {
    const size_t n = Count();
    if (n == 0) return {};
    std::vector<TokenId>& slots = vocabulary_.slots_;
    slots.assign(std::bit_ceil(2 * n), kNoToken);
    size_t probes = 0, repeated = 0;
    TokenId first_repeated = kNoToken;
    for (size_t i = 0; i < n; ++i) {
      const TokenId id = static_cast<TokenId>(i);
      const std::string_view text = vocabulary_.Text(id);
      if (text.empty()) continue;
      size_t slot = SlotOf(Vocabulary::Hash(text), slots.size());
      while (slots[slot] != kNoToken && vocabulary_.Text(slots[slot]) != text) {
        slot = (slot + 1) & (slots.size() - 1);
        if (++probes > kProbesPerToken * n + 4096) {
          return Fail(ErrorCode::kCorrupt,
                      "the token texts (tokenizer.ggml.tokens) are made to collide in a hash table");
        }
      }
      if (slots[slot] != kNoToken) {
        if (repeated++ == 0) first_repeated = id;
        continue;
      }
      slots[slot] = id;
      if (text.size() <= kLongestLookup) {
        vocabulary_.longest_token_ = std::max(vocabulary_.longest_token_, text.size());
      }
    }
    if (repeated > 0) {
      Warn(
          "{} tokens repeat the text of an earlier one (the first is {}, {}); only the earlier is used in "
          "encoding",
          repeated, first_repeated, Quoted(first_repeated));
    }
    return {};
  }

  void TakeBytes() {
    const TokenizerModel model = vocabulary_.model_;
    if (model == TokenizerModel::kNone || model == TokenizerModel::kByteLevelBpe) return;
    for (TokenId id = 0; static_cast<size_t>(id) < Count(); ++id) {
      if (vocabulary_.kinds_[static_cast<size_t>(id)] != TokenKind::kByte) continue;
      TokenId& token = vocabulary_.byte_tokens_[vocabulary_.Byte(id)];
      if (token == kNoToken) token = id;
    }
    size_t missing = 0;
    for (const TokenId token : vocabulary_.byte_tokens_) missing += token == kNoToken ? 1 : 0;
    if (missing == 256 || missing == 0) return;
    Warn("{} of 256 byte tokens are missing: text that needs them becomes the unknown token", missing);
  }

  TokenId Resolve(std::optional<int64_t> given, std::string_view what, TokenId otherwise = kNoToken) {
    if (!given) return vocabulary_.Contains(otherwise) ? otherwise : kNoToken;
    if (*given >= 0 && static_cast<uint64_t>(*given) < vocabulary_.size())
      return static_cast<TokenId>(*given);
    // −1 and 2^32 − 1 are how writers say "none".
    if (*given != -1 && *given != 0xFFFFFFFF) {
      Warn("the {} token is {}, but there are {} tokens; it is not used", what, *given, vocabulary_.size());
    } else {
      Warn("the {} token is {}; it is not used", what, *given);
    }
    return kNoToken;
  }

  // Whether a prompt gets a token added: as the file says, if there is such a token.
  bool Adds(std::optional<bool> given, bool otherwise, TokenId token, std::string_view what) {
    const bool add = given.value_or(otherwise);
    if (!add || token != kNoToken) return add;
    if (given) Warn("the file asks for a {} token with every prompt but has none; it is not added", what);
    return false;
  }

  void TakeSpecials() {
    const ModelDefaults& defaults = defaults_;
    Vocabulary& v = vocabulary_;
    v.bos_ = Resolve(source_.bos, "bos", defaults.bos);
    v.eos_ = Resolve(source_.eos, "eos", defaults.eos);
    v.eot_ = Resolve(source_.eot, "eot");
    v.eom_ = Resolve(source_.eom, "eom");
    v.unknown_ = Resolve(source_.unknown, "unknown", defaults.unknown);
    v.separator_ = Resolve(source_.separator, "separator", defaults.separator);
    v.padding_ = Resolve(source_.padding, "padding", defaults.padding);
    v.mask_ = Resolve(source_.mask, "mask", defaults.mask);
    v.fim_prefix_ = Resolve(source_.fim_prefix, "fim_prefix");
    v.fim_suffix_ = Resolve(source_.fim_suffix, "fim_suffix");
    v.fim_middle_ = Resolve(source_.fim_middle, "fim_middle");
    EndWith(Resolve(source_.fim_pad, "fim_pad"));
    EndWith(Resolve(source_.fim_repository, "fim_repository"));
    EndWith(Resolve(source_.fim_separator, "fim_separator"));

    std::optional<bool> add_bos = source_.add_bos;
    // Gemma 4's files say false by mistake: the model was trained with it and is lost without.
    if (v.model_ == TokenizerModel::kSentencePieceBpe && pre_->add_bos) add_bos = true;
    v.add_bos_ = Adds(add_bos, defaults.add_bos, v.bos_, "bos");
    v.add_eos_ = Adds(source_.add_eos, defaults.add_eos, v.eos_, "eos");
    v.add_separator_ = Adds(source_.add_sep, defaults.add_separator, v.separator_, "separator");
  }

  void EndWith(TokenId id) {
    if (id != kNoToken) vocabulary_.end_of_generation_.push_back(id);
  }

  // Gives roles to tokens that the file has without saying what they are for.
  void TakeKnownTokens() {
    if (vocabulary_.model_ == TokenizerModel::kNone) return;
    const auto fill = [](TokenId* role, TokenId id) {
      if (*role == kNoToken) *role = id;
    };
    for (const KnownToken& known : KnownTokens()) {
      const TokenId id = vocabulary_.Find(known.text);
      if (id == kNoToken) continue;
      TokenKind& kind = vocabulary_.kinds_[static_cast<size_t>(id)];
      if (kind != TokenKind::kControl) {
        // Phi 3 marks "</s>" as user-defined, but it stands where Llama's eos does.
        if (known.ambiguous && id != vocabulary_.eos_ && id != defaults_.eos) continue;
        Warn("token {} {} is not marked as a control token; it is taken as one", id, Quoted(id));
        kind = TokenKind::kControl;
      }
      switch (known.role) {
        case KnownRole::kEndOfTurn:
          fill(&vocabulary_.eot_, id);
          EndWith(id);
          break;
        case KnownRole::kEndOfMessage:
          fill(&vocabulary_.eom_, id);
          EndWith(id);
          break;
        case KnownRole::kEnd:
        case KnownRole::kFimEnd:
          EndWith(id);
          break;
        case KnownRole::kFimPrefix:
          fill(&vocabulary_.fim_prefix_, id);
          break;
        case KnownRole::kFimSuffix:
          fill(&vocabulary_.fim_suffix_, id);
          break;
        case KnownRole::kFimMiddle:
          fill(&vocabulary_.fim_middle_, id);
          break;
      }
    }
    // In gpt-oss and Solar Open "<|end|>" ends a message within an answer, not the answer.
    const auto has = [&](std::string_view text) { return vocabulary_.Find(text) != kNoToken; };
    const TokenId end = vocabulary_.Find("<|end|>");
    if (end != kNoToken &&
        ((has("<|return|>") && has("<|call|>")) || (has("<|calls|>") && has("<|flush|>")))) {
      std::erase(vocabulary_.end_of_generation_, end);
      if (vocabulary_.eot_ == end && source_.eot != end) vocabulary_.eot_ = kNoToken;
    }
  }

  void TakeLists() {
    EndWith(vocabulary_.eos_);
    EndWith(vocabulary_.eot_);
    EndWith(vocabulary_.eom_);
    for (const int64_t id : source_.end_of_generation) EndWith(Resolve(id, "end-of-generation"));
    SortUnique(&vocabulary_.end_of_generation_);
    for (const int64_t id : source_.suppressed) {
      const TokenId token = Resolve(id, "suppressed");
      if (token != kNoToken) vocabulary_.suppressed_.push_back(token);
    }
    SortUnique(&vocabulary_.suppressed_);
  }

  static void SortUnique(std::vector<TokenId>* ids) {
    std::sort(ids->begin(), ids->end());
    ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
  }

  Status CheckLength(std::string_view key, size_t length) const {
    if (length >= Count()) return {};
    return Fail(ErrorCode::kCorrupt, "{} has {} entries for {} tokens", key, length, Count());
  }

  size_t Count() const { return source_.tokens.size(); }

  const VocabularySource& source_;
  const PreTokenizerSpec* pre_ = nullptr;  // nullptr when the name is missing or unknown
  ModelDefaults defaults_;
  Vocabulary vocabulary_;
  size_t odd_bytes_ = 0, first_odd_byte_ = 0;
};

std::string_view PreTokenizerName(const VocabularySource& source) {
  return source.model == "gemma4" ? std::string_view("gemma4") : source.pre;
}

Result<Vocabulary> Vocabulary::Create(const VocabularySource& source) {
  return VocabularyBuilder(source).Build();
}

std::string_view Vocabulary::Text(TokenId id) const {
  if (starts_.empty()) return {};
  const size_t index = static_cast<size_t>(id);
  return std::string_view(texts_).substr(starts_[index], starts_[index + 1] - starts_[index]);
}

TokenId Vocabulary::Find(std::string_view text, uint64_t hash) const {
  if (slots_.empty() || text.empty()) return kNoToken;
  for (size_t slot = SlotOf(hash, slots_.size());; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot] == kNoToken || Text(slots_[slot]) == text) return slots_[slot];
  }
}

uint8_t Vocabulary::Byte(TokenId id) const {
  const int byte = ByteOfName(Text(id));
  SLUICE_CHECK(byte >= 0);  // Create makes sure of that for all of kind kByte
  return static_cast<uint8_t>(byte);
}

bool Vocabulary::IsEndOfGeneration(TokenId id) const {
  return std::binary_search(end_of_generation_.begin(), end_of_generation_.end(), id);
}

size_t Vocabulary::memory_bytes() const {
  return texts_.capacity() + starts_.capacity() * sizeof(uint32_t) + kinds_.capacity() * sizeof(TokenKind) +
         scores_.capacity() * sizeof(float) + slots_.capacity() * sizeof(TokenId);
}

}  // namespace sluice::text
