// Tokenizer: text to token ids and back, for every tokenizer family that GGUF files carry
// (docs/tokenizers.md).
//
// Text is bytes: NUL, invalid UTF-8 and unassigned characters are encoded like anything else and come back
// the same. Owns its vocabulary. Immutable after Create: any number of threads may encode and decode at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace sluice::text {

struct EncodeOptions {
  // Put BOS in front and EOS behind where the model wants them.
  bool add_special = false;
  // Turn the text of control tokens ("<|im_start|>") into those tokens. For text that a template has
  // rendered; never for text from a user. User-defined tokens are matched either way.
  bool parse_special = false;
};

struct DecodeOptions {
  bool render_special = false;  // print control tokens by their text instead of hiding them
  bool strip_bos_eos = false;   // leave out a leading BOS and a trailing EOS that Encode would have added
  // Remove spaces before punctuation as `clean_up_tokenization_spaces` does, for models that ask for it. Not
  // reversible, so off unless wanted.
  bool clean_up_spaces = false;
};

// A stretch of a longer text, and whether control tokens may be parsed in it.
struct TextSpan {
  std::string_view text;
  bool parse_special = false;
};

class Tokenizer {
 public:
  // Errors: those of Vocabulary::Create; a precompiled character map that is inconsistent (kCorrupt). A file
  // without a supported tokenizer gives a Tokenizer whose Encode refuses and names the reason.
  static Result<Tokenizer> Create(const VocabularySource& source);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  const Vocabulary& vocabulary() const;

  // Errors: kUnsupported when the file has no tokenizer, kResourceExhausted when the text is over 64 MiB or
  // runs a split pattern into its step limit. Time grows with the length of the text times its logarithm.
  Result<std::vector<TokenId>> Encode(std::string_view text, EncodeOptions options = {}) const;

  // The same for a text in pieces that differ in trust, such as a rendered prompt with a user's words in it.
  // Merges go across the borders of the pieces as if there were none; a control token is found only where all
  // of its text lies in pieces that allow it.
  Result<std::vector<TokenId>> EncodeSpans(std::span<const TextSpan> spans, bool add_special = false) const;

  // The bytes that `id` stands for, appended to *out: half a character, possibly. Nothing for control tokens
  // unless `render_special`, for unused tokens, and for ids out of range.
  void AppendPiece(TokenId id, bool render_special, std::string* out) const;

  // The bytes of a whole sequence. Where Encode put a space in front of the text, the first token loses it
  // again, so that Decode(Encode(text)) is text.
  std::string Decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  // The same as valid UTF-8, each invalid run as one U+FFFD: what StreamDecoder puts out in all.
  std::string DecodeText(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  // True when Encode puts a space in front of a text (SentencePiece): a generated answer begins with one too.
  bool adds_space_prefix() const;

  // True for models whose own decoder cleans up spaces (DecodeOptions::clean_up_spaces).
  bool cleans_up_spaces() const;

  // Remarks about the file, each one sentence, fit to be shown once at load.
  const std::vector<std::string>& warnings() const;

  // What the tokenizer holds, for the memory ledger.
  size_t memory_bytes() const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::text
