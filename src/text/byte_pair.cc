#include "text/byte_pair.h"

#include <utility>

#include "text/byte_level.h"
#include "text/pieces.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Names what is wrong, so that wrong answers have a visible reason.
std::string PreTokenizerWarning(std::string_view name) {
  const std::string found = name.empty()
                                ? std::string("the file names no pre-tokenizer (tokenizer.ggml.pre)")
                                : fmt::format("the pre-tokenizer '{}' (tokenizer.ggml.pre) is not known",
                                              ToValidUtf8(name.substr(0, 64)));
  return found +
         "; 'default' is used, and numbers, apostrophes and spaces may be cut differently from how the model "
         "learned them: set the key to the right name if answers are poor";
}

// C0, C1 and F5 to FF never do.
bool OccursInUtf8(uint32_t byte) { return byte < 0xF5 && byte != 0xC0 && byte != 0xC1; }

}  // namespace

Result<BytePairEncoder> BytePairEncoder::Create(const Vocabulary& vocabulary, const VocabularySource& source,
                                                std::vector<std::string>* warnings) {
  const std::string_view name = PreTokenizerName(source);
  const PreTokenizerSpec* spec = FindPreTokenizer(name);
  if (spec == nullptr) {
    warnings->push_back(PreTokenizerWarning(name));
    spec = &DefaultPreTokenizer();
  }
  if (source.merges.empty()) {
    warnings->push_back(
        "the file has no merges (tokenizer.ggml.merges): every character is a token of its own");
  }
  SLUICE_TRY_ASSIGN(MergeTable merges, MergeTable::Create(vocabulary, source.merges, warnings));
  BytePairEncoder encoder(*spec, std::move(merges));

  encoder.TakeBytes(vocabulary, warnings);
  return encoder;
}

void BytePairEncoder::TakeBytes(const Vocabulary& vocabulary, std::vector<std::string>* warnings) {
  if (spec_->characters) {
    for (uint32_t byte = 0; byte < 256; ++byte)
      bytes_[byte] = vocabulary.ByteToken(static_cast<uint8_t>(byte));
    return;  // the vocabulary has warned about missing ones
  }
  size_t missing = 0;
  std::string spelling;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    spelling.clear();
    AppendUtf8(kByteSpelling[byte], &spelling);
    bytes_[byte] = vocabulary.Find(spelling);
    // A user-defined "ÿ" is that letter, not the byte 0xFF.
    if (bytes_[byte] != kNoToken && vocabulary.Kind(bytes_[byte]) != TokenKind::kNormal)
      bytes_[byte] = kNoToken;
    if (bytes_[byte] == kNoToken && OccursInUtf8(byte)) ++missing;
  }
  if (missing > 0) {
    warnings->push_back(
        fmt::format("{} of 256 bytes have no token: text with them can't be encoded exactly", missing));
  }
}

Status BytePairEncoder::Encode(const Vocabulary& vocabulary, std::string_view text,
                               std::vector<TokenId>* out) const {
  std::string marked;
  if (spec_->characters) {
    AppendMarkingSpaces(text, &marked);
    text = marked;
  }
  std::vector<uint32_t> ends;
  SLUICE_TRY(words_.Split(text, &ends));
  std::vector<TokenId> symbols;
  MergeTable::Workspace workspace;
  std::string spelling;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    const std::string_view word = text.substr(begin, end - begin);
    begin = end;
    const TokenId whole = WholeWord(vocabulary, word, &spelling);
    if (whole != kNoToken) {
      out->push_back(whole);
      continue;
    }
    symbols.clear();
    AppendSymbols(vocabulary, word, &symbols);
    merges_.Apply(&symbols, &workspace);
    out->insert(out->end(), symbols.begin(), symbols.end());
  }
  return {};
}

TokenId BytePairEncoder::WholeWord(const Vocabulary& vocabulary, std::string_view word,
                                   std::string* spelling) const {
  if (spec_->whole_line_ends && word.find_first_not_of('\n') == std::string_view::npos)
    return vocabulary.Find(word);
  if (!spec_->ignore_merges || word.size() > vocabulary.longest_token()) return kNoToken;
  if (spec_->characters) return vocabulary.Find(word);
  spelling->clear();
  for (const char c : word) AppendUtf8(kByteSpelling[static_cast<uint8_t>(c)], spelling);
  return vocabulary.Find(*spelling);
}

void BytePairEncoder::AppendSymbols(const Vocabulary& vocabulary, std::string_view word,
                                    std::vector<TokenId>* symbols) const {
  const auto append_byte = [&](char c) {
    const TokenId token = bytes_[static_cast<uint8_t>(c)];
    if (token != kNoToken) symbols->push_back(token);
    return token != kNoToken;
  };
  const auto append_bytes = [&](std::string_view bytes) {
    for (const char c : bytes) {
      if (append_byte(c)) continue;
      // Most vocabularies leave out the bytes that valid text doesn't have: U+FFFD says that something was
      // there.
      bool shown = true;
      for (const char replacement : std::string_view("\xEF\xBF\xBD")) shown &= append_byte(replacement);
      if (!shown && vocabulary.unknown() != kNoToken) symbols->push_back(vocabulary.unknown());
    }
  };
  if (!spec_->characters) {
    append_bytes(word);
    return;
  }
  while (!word.empty()) {
    const std::string_view character = word.substr(0, DecodeUtf8(word).size);
    const TokenId token = vocabulary.Find(character);
    if (token != kNoToken) {
      symbols->push_back(token);
    } else {
      append_bytes(character);
    }
    word.remove_prefix(character.size());
  }
}

}  // namespace sluice::text
