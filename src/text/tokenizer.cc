#include "text/tokenizer.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <variant>

#include "text/byte_level.h"
#include "text/byte_pair.h"
#include "text/pieces.h"
#include "text/sentencepiece.h"
#include "text/special_matcher.h"
#include "text/unigram.h"
#include "text/utf8.h"
#include "text/wordpiece.h"

namespace sluice::text {
namespace {

// Some encoders need 40 bytes for each byte of text.
constexpr size_t kMaxTextBytes = size_t{64} << 20;
// Longer special tokens are not looked for in text: this bounds the work at each place.
constexpr size_t kMaxSpecialBytes = 1024;

struct SentencePieceOptions {
  bool prefix_space;
};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Some families swallow the white space around their special tokens, which GGUF has no key for. They are told
// apart by name, as llama.cpp does.
struct StripRules {
  std::vector<TokenId> left;   // sorted
  std::vector<TokenId> right;  // sorted

  static bool Has(const std::vector<TokenId>& ids, TokenId id) {
    return std::binary_search(ids.begin(), ids.end(), id);
  }
};

StripRules StripRulesOf(const Vocabulary& vocabulary, const VocabularySource& source,
                        const std::vector<TokenId>& specials) {
  StripRules rules;
  std::string name(source.name);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto strip_left = [&](std::string_view text) {
    const TokenId id = vocabulary.Find(text);
    if (id != kNoToken) rules.left.push_back(id);
  };
  if (Contains(source.pre, "jina-v2-de") || Contains(source.pre, "jina-v2-es") ||
      Contains(source.pre, "jina-v2-code") || Contains(source.architecture, "nomic-bert-moe") ||
      Contains(source.architecture, "jina-bert-v3")) {
    strip_left("<mask>");
  } else if (Contains(name, "phi-3") || Contains(name, "phi3")) {
    for (const TokenId id : specials) {
      const std::string_view text = vocabulary.Text(id);
      if (text != "<unk>" && text != "<s>" && text != "<|endoftext|>") rules.right.push_back(id);
    }
  } else if (Contains(name, "modern-bert")) {
    strip_left("[MASK]");
  }
  return rules;
}

bool IsAsciiSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// What `clean_up_tokenization_spaces` does, in the order of its replacements: the space before ? ! . , goes;
// so do the spaces around a single apostrophe, and the one before 's 'm 're 've.
void CleanUpSpaces(std::string* text) {
  const auto drop_spaces = [text](auto&& drops_before) {
    size_t kept = 0;
    for (size_t i = 0; i < text->size(); ++i) {
      if (i > 0 && kept > 0 && (*text)[i - 1] == ' ' && drops_before(i)) --kept;
      (*text)[kept++] = (*text)[i];
    }
    text->resize(kept);
  };
  const auto at = [text](size_t i) { return i < text->size() ? (*text)[i] : '\0'; };
  drop_spaces([&](size_t i) { return at(i) == '?' || at(i) == '!' || at(i) == '.' || at(i) == ','; });
  std::string apart;
  for (size_t i = 0; i < text->size(); ++i) {
    const bool apostrophe = text->compare(i, 3, " ' ") == 0;
    apart += apostrophe ? '\'' : (*text)[i];
    if (apostrophe) i += 2;
  }
  *text = std::move(apart);
  drop_spaces([&](size_t i) {
    if (at(i) != '\'') return false;
    const char first = at(i + 1), second = at(i + 2);
    return first == 's' || first == 'm' || (second == 'e' && (first == 'r' || first == 'v'));
  });
}

}  // namespace

struct Tokenizer::Parts {
  explicit Parts(Vocabulary v) : vocabulary(std::move(v)) {}

  Vocabulary vocabulary;
  std::variant<std::monostate, SentencePieceOptions, BytePairEncoder, UnigramEncoder, WordPieceOptions>
      encoder;
  SpecialMatcher specials;  // control, unknown and user-defined tokens
  StripRules strip;
  bool prefix_space = false;
  bool clean_up_spaces = false;
  std::vector<std::string> warnings;

  Status EncodeFragment(std::string_view text, bool after_special, std::vector<TokenId>* out) const;
  // `allows_control(begin, end)`: may a control token be found at these bytes?
  template <typename AllowsControl>
  Result<std::vector<TokenId>> EncodeText(std::string_view text, bool add_special,
                                          const AllowsControl& allows_control) const;
};

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

const Vocabulary& Tokenizer::vocabulary() const { return parts_->vocabulary; }
bool Tokenizer::adds_space_prefix() const { return parts_->prefix_space; }
bool Tokenizer::cleans_up_spaces() const { return parts_->clean_up_spaces; }
const std::vector<std::string>& Tokenizer::warnings() const { return parts_->warnings; }

Result<Tokenizer> Tokenizer::Create(const VocabularySource& source) {
  SLUICE_TRY_ASSIGN(Vocabulary made, Vocabulary::Create(source));
  auto parts = std::make_unique<Parts>(std::move(made));
  const Vocabulary& vocabulary = parts->vocabulary;
  parts->warnings = vocabulary.warnings();

  switch (vocabulary.model()) {
    case TokenizerModel::kNone:
      return Tokenizer(std::move(parts));
    case TokenizerModel::kSentencePiece:
      parts->prefix_space = source.add_space_prefix.value_or(true);
      parts->encoder = SentencePieceOptions{parts->prefix_space};
      break;
    case TokenizerModel::kByteLevelBpe:
    case TokenizerModel::kSentencePieceBpe: {
      SLUICE_TRY_ASSIGN(BytePairEncoder encoder,
                        BytePairEncoder::Create(vocabulary, source, &parts->warnings));
      parts->clean_up_spaces = encoder.clean_up_spaces();
      parts->encoder = std::move(encoder);
      break;
    }
    case TokenizerModel::kUnigram: {
      SLUICE_TRY_ASSIGN(UnigramEncoder encoder, UnigramEncoder::Create(vocabulary, source));
      parts->prefix_space = encoder.prefix_space();
      parts->encoder = std::move(encoder);
      break;
    }
    case TokenizerModel::kWordPiece: {
      parts->clean_up_spaces = true;
      const bool lowercase = source.lowercase.value_or(true);
      parts->encoder = WordPieceOptions{lowercase, source.strip_accents.value_or(lowercase)};
      break;
    }
  }

  std::vector<TokenId> specials;
  size_t too_long = 0;
  for (TokenId id = 0; vocabulary.Contains(id); ++id) {
    if (vocabulary.Kind(id) != TokenKind::kUserDefined && !vocabulary.IsControl(id)) continue;
    if (vocabulary.Text(id).size() > kMaxSpecialBytes) {
      ++too_long;
    } else {
      specials.push_back(id);
    }
  }
  if (too_long > 0) {
    parts->warnings.push_back(
        fmt::format("{} special tokens are longer than {} bytes; they are not looked for in text", too_long,
                    kMaxSpecialBytes));
  }
  parts->strip = StripRulesOf(vocabulary, source, specials);
  parts->specials = SpecialMatcher::Create(vocabulary, std::move(specials));
  return Tokenizer(std::move(parts));
}

Status Tokenizer::Parts::EncodeFragment(std::string_view text, bool after_special,
                                        std::vector<TokenId>* out) const {
  if (const auto* pieces = std::get_if<SentencePieceOptions>(&encoder)) {
    EncodeSentencePiece(vocabulary, text, pieces->prefix_space && after_special, out);
  } else if (const auto* byte_pairs = std::get_if<BytePairEncoder>(&encoder)) {
    return byte_pairs->Encode(vocabulary, text, out);
  } else if (const auto* unigram = std::get_if<UnigramEncoder>(&encoder)) {
    return unigram->Encode(vocabulary, text, out);
  } else if (const auto* word_piece = std::get_if<WordPieceOptions>(&encoder)) {
    EncodeWordPiece(vocabulary, text, *word_piece, out);
  }
  return {};
}

Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  const bool everywhere = options.parse_special;
  return parts_->EncodeText(text, options.add_special, [everywhere](size_t, size_t) { return everywhere; });
}

Result<std::vector<TokenId>> Tokenizer::EncodeSpans(std::span<const TextSpan> spans, bool add_special) const {
  std::string text;
  std::vector<size_t> trusted;  // alternating begin, end of the stretches that allow control tokens
  for (const TextSpan& span : spans) {
    if (span.parse_special && !span.text.empty()) {
      if (!trusted.empty() && trusted.back() == text.size()) {
        trusted.pop_back();
      } else {
        trusted.push_back(text.size());
      }
      trusted.push_back(text.size() + span.text.size());
    }
    text += span.text;
  }
  return parts_->EncodeText(text, add_special, [&trusted](size_t begin, size_t end) {
    const auto after = std::upper_bound(trusted.begin(), trusted.end(), begin);
    return (after - trusted.begin()) % 2 == 1 && end <= *after;
  });
}

template <typename AllowsControl>
Result<std::vector<TokenId>> Tokenizer::Parts::EncodeText(std::string_view text, bool add_special,
                                                          const AllowsControl& allows_control) const {
  const Vocabulary& v = vocabulary;
  if (v.model() == TokenizerModel::kNone) {
    return Fail(ErrorCode::kUnsupported, "text can't be turned into tokens: {}", v.unsupported_reason());
  }
  if (text.size() > kMaxTextBytes) {
    return Fail(ErrorCode::kResourceExhausted,
                "the text has {} bytes, more than the {} that can be encoded at once", text.size(),
                kMaxTextBytes);
  }
  const auto allowed = [&](TokenId id, size_t from, size_t to) {
    return v.Kind(id) == TokenKind::kUserDefined || allows_control(from, to);
  };
  std::vector<TokenId> ids;
  if (add_special && v.add_bos()) ids.push_back(v.bos());
  size_t begin = 0;
  bool after_special = true;  // the beginning counts as such
  while (begin < text.size()) {
    const std::optional<SpecialMatcher::Match> match = specials.Next(v, text, begin, allowed);
    size_t end = match ? match->begin : text.size();
    if (match && StripRules::Has(strip.left, match->id)) {
      while (end > begin && IsAsciiSpace(text[end - 1])) --end;
    }
    if (end > begin) {
      SLUICE_TRY(EncodeFragment(text.substr(begin, end - begin), after_special, &ids));
      after_special = false;
    }
    if (!match) break;
    ids.push_back(match->id);
    after_special = true;
    begin = match->end;
    if (StripRules::Has(strip.right, match->id)) {
      while (begin < text.size() && IsAsciiSpace(text[begin])) ++begin;
    }
  }
  if (add_special && v.add_eos()) ids.push_back(v.eos());
  if (add_special && v.add_separator()) ids.push_back(v.separator());
  return ids;
}

void Tokenizer::AppendPiece(TokenId id, bool render_special, std::string* out) const {
  const Vocabulary& v = parts_->vocabulary;
  if (!v.Contains(id)) return;
  const std::string_view text = v.Text(id);
  switch (v.Kind(id)) {
    case TokenKind::kUnknown:
    case TokenKind::kControl:
      if (render_special) *out += text;
      return;
    case TokenKind::kUserDefined:
      *out += text;
      return;
    case TokenKind::kUnused:
      return;
    case TokenKind::kByte:
      out->push_back(static_cast<char>(v.Byte(id)));
      return;
    case TokenKind::kNormal:
      break;
  }
  if (v.model() != TokenizerModel::kByteLevelBpe) {
    AppendUnmarkingSpaces(text, out);
    return;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Step step = DecodeUtf8(rest);
    const int byte = step.status == Utf8Status::kValid ? ByteOfSpelling(step.code_point) : -1;
    if (byte >= 0) {
      out->push_back(static_cast<char>(byte));
    } else {
      *out += rest.substr(0, step.size);
    }
    rest.remove_prefix(step.size);
  }
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, DecodeOptions options) const {
  const Vocabulary& v = parts_->vocabulary;
  bool strip_space = parts_->prefix_space;
  if (options.strip_bos_eos) {
    if (v.add_bos() && !ids.empty() && ids.front() == v.bos()) {
      ids = ids.subspan(1);
      strip_space = false;
    }
    if (v.add_eos() && !ids.empty() && ids.back() == v.eos()) ids = ids.first(ids.size() - 1);
  }
  std::string out;
  for (size_t i = 0; i < ids.size(); ++i) {
    AppendPiece(ids[i], options.render_special, &out);
    if (i == 0 && strip_space && !out.empty() && out.front() == ' ') out.erase(0, 1);
  }
  if (options.clean_up_spaces) CleanUpSpaces(&out);
  return out;
}

std::string Tokenizer::DecodeText(std::span<const TokenId> ids, DecodeOptions options) const {
  return ToValidUtf8(Decode(ids, options));
}

size_t Tokenizer::memory_bytes() const {
  size_t total = sizeof(Parts) + parts_->vocabulary.memory_bytes() + parts_->specials.memory_bytes();
  if (const auto* byte_pairs = std::get_if<BytePairEncoder>(&parts_->encoder))
    total += byte_pairs->memory_bytes();
  if (const auto* unigram = std::get_if<UnigramEncoder>(&parts_->encoder)) total += unigram->memory_bytes();
  return total;
}

}  // namespace sluice::text
