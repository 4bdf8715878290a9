#include "quantize/synth_vocabulary.h"

#include <string>
#include <vector>

namespace sluice::quantize {
namespace {

// tokenizer.ggml.token_type, as GGUF defines it.
enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUnused = 5, kByte = 6 };

struct Vocabulary {
  explicit Vocabulary(uint32_t size) : tokens(size), types(size, kUnused), scores(size, 0.0f) {}

  // Takes the lowest free id from `next` on; false when there is none.
  bool Append(std::string text, TokenType type, float score) {
    while (next < tokens.size() && !tokens[next].empty()) ++next;
    if (next == tokens.size()) return false;
    Put(next, std::move(text), type, score);
    return true;
  }
  void Put(uint32_t id, std::string text, TokenType type, float score) {
    tokens[id] = std::move(text);
    types[id] = type;
    scores[id] = score;
  }

  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  uint32_t next = 0;
};

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 63))};
}

// How byte-level BPE writes a byte: printable ones as themselves, the others as code points from 256 on
// (GPT-2's table).
std::string ByteLevelText(uint32_t byte) {
  const auto printable = [](uint32_t b) { return (b >= 33 && b <= 126) || (b >= 161 && b != 173); };
  if (printable(byte)) return Utf8(byte);
  uint32_t rank = 0;
  for (uint32_t b = 0; b < byte; ++b) rank += printable(b) ? 0 : 1;
  return Utf8(256 + rank);
}

// Space and letter, then pairs of letters: what text is made of, in a fixed order.
std::vector<std::pair<std::string, std::string>> CommonPairs(const std::string& space) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (char a = 'a'; a <= 'z'; ++a) pairs.emplace_back(space, std::string(1, a));
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) pairs.emplace_back(std::string(1, a), std::string(1, b));
  }
  return pairs;
}

void FillByteLevelBpe(Vocabulary& vocabulary) {
  for (uint32_t byte = 0; byte < 256; ++byte) vocabulary.Append(ByteLevelText(byte), kNormal, 0);
  for (const auto& [left, right] : CommonPairs(ByteLevelText(' '))) {
    if (!vocabulary.Append(left + right, kNormal, 0)) break;
    vocabulary.merges.push_back(left + " " + right);
  }
}

void FillSentencePiece(uint32_t first_byte, Vocabulary& vocabulary) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    vocabulary.Put(first_byte + byte, fmt::format("<0x{:02X}>", byte), kByte, 0);
  }
  vocabulary.next = first_byte + 256;
  const std::string space = "\xe2\x96\x81";  // ▁
  float score = 0;
  for (const auto& [left, right] : CommonPairs(space)) vocabulary.Append(left + right, kNormal, score -= 1);
  vocabulary.Append(space, kNormal, score -= 1);
  for (char c = '!'; c <= '~'; ++c) vocabulary.Append(std::string(1, c), kNormal, score -= 1);
}

}  // namespace

Status SetSyntheticVocabulary(const SynthShape& shape, gguf::Metadata& metadata) {
  uint32_t needed = 256 + static_cast<uint32_t>(shape.specials.size());
  for (const SpecialToken& special : shape.specials) needed = std::max(needed, special.id + 1);
  const bool bpe = shape.vocabulary == VocabularyKind::kByteLevelBpe;
  if (!bpe) needed = std::max(needed, shape.first_byte + 256);
  if (shape.vocabulary_size < needed) {
    return Fail(ErrorCode::kInvalidArgument,
                "shape {}: a vocabulary of {} is too small, at least {} are needed", shape.name,
                shape.vocabulary_size, needed);
  }

  Vocabulary vocabulary(shape.vocabulary_size);
  for (const SpecialToken& special : shape.specials) {
    vocabulary.Put(special.id, std::string(special.text), special.text == "<unk>" ? kUnknown : kControl, 0);
  }
  if (bpe) {
    FillByteLevelBpe(vocabulary);
  } else {
    FillSentencePiece(shape.first_byte, vocabulary);
  }
  for (uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.tokens[id].empty()) vocabulary.tokens[id] = fmt::format("[PAD{}]", id);
  }

  metadata.SetString("tokenizer.ggml.model", bpe ? "gpt2" : "llama");
  metadata.SetString("tokenizer.ggml.pre", shape.pretokenizer);
  metadata.SetStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  metadata.SetI32s("tokenizer.ggml.token_type", vocabulary.types);
  if (bpe) {
    metadata.SetStrings("tokenizer.ggml.merges", vocabulary.merges);
  } else {
    metadata.SetF32s("tokenizer.ggml.scores", vocabulary.scores);
  }
  metadata.SetU32("tokenizer.ggml.bos_token_id", shape.bos);
  metadata.SetU32("tokenizer.ggml.eos_token_id", shape.eos);
  metadata.SetBool("tokenizer.ggml.add_bos_token", shape.add_bos);
  metadata.SetBool("tokenizer.ggml.add_space_prefix", false);
  return {};
}

}  // namespace sluice::quantize
