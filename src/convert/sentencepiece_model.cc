#include "convert/sentencepiece_model.h"

#include <bit>
#include <cmath>

#include "base/byte_reader.h"

namespace sluice::convert {

namespace {

// One field of a message: a number, or bytes.
struct Field {
  uint32_t number = 0;
  uint32_t wire = 0;
  uint64_t value = 0;
  std::span<const std::byte> bytes;

  std::string text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Walks the fields of a message.
class Message {
 public:
  Message(std::span<const std::byte> bytes, uint64_t base) : bytes_(bytes), base_(base) {}

  bool at_end() const { return at_ == bytes_.size(); }
  uint64_t position() const { return base_ + at_; }

  Result<Field> Next() {
    SLUICE_TRY_ASSIGN(const uint64_t tag, Varint());
    Field field{.number = static_cast<uint32_t>(tag >> 3), .wire = static_cast<uint32_t>(tag & 7)};
    switch (field.wire) {
      case 0: {
        SLUICE_TRY_ASSIGN(field.value, Varint());
        return field;
      }
      case 1: {
        SLUICE_TRY_ASSIGN(field.bytes, Take(8));
        return field;
      }
      case 2: {
        SLUICE_TRY_ASSIGN(const uint64_t size, Varint());
        SLUICE_TRY_ASSIGN(field.bytes, Take(size));
        return field;
      }
      case 5: {
        SLUICE_TRY_ASSIGN(field.bytes, Take(4));
        return field;
      }
      default:
        return Fail(ErrorCode::kCorrupt, "byte {}: a field of wire type {}", position(), field.wire);
    }
  }
  // A message within this one.
  Message Inner(const Field& field) const {
    return {field.bytes, base_ + static_cast<uint64_t>(field.bytes.data() - bytes_.data())};
  }

 private:
  Result<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_end()) break;
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return Fail(ErrorCode::kCorrupt, "byte {}: a number that does not end", position());
  }
  Result<std::span<const std::byte>> Take(uint64_t size) {
    if (size > bytes_.size() - at_)
      return Fail(ErrorCode::kCorrupt, "byte {}: a field of {} bytes, of which {} are there", position(),
                  size, bytes_.size() - at_);
    const auto taken = bytes_.subspan(at_, static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return taken;
  }

  std::span<const std::byte> bytes_;
  uint64_t base_;
  size_t at_ = 0;
};

Status ReadPiece(Message message, TokenList& list) {
  std::string text;
  float score = 0;
  uint64_t kind = 1;
  while (!message.at_end()) {
    SLUICE_TRY_ASSIGN(const Field field, message.Next());
    if (field.number == 1 && field.wire == 2) text = field.text();
    if (field.number == 2 && field.wire == 5) {
      uint32_t bits = 0;
      for (size_t i = 0; i < 4; ++i) bits |= static_cast<uint32_t>(field.bytes[i]) << (8 * i);
      score = std::bit_cast<float>(bits);
    }
    if (field.number == 3 && field.wire == 0) kind = field.value;
  }
  // The kinds have the numbers that GGUF took over.
  if (kind < 1 || kind > 6 || !std::isfinite(score)) {
    return Fail(ErrorCode::kCorrupt,
                "piece {} ('{}') has kind {} and score {}; expected 1 to 6, and a finite score",
                list.texts.size(), text.substr(0, 80), kind, score);
  }
  list.texts.push_back(std::move(text));
  list.scores.push_back(score);
  list.kinds.push_back(static_cast<TokenKind>(kind));
  return {};
}

Status ReadTrainer(Message message, TokenList& list) {
  uint64_t model = 1;
  while (!message.at_end()) {
    SLUICE_TRY_ASSIGN(const Field field, message.Next());
    if (field.number == 3 && field.wire == 0) model = field.value;
  }
  if (model != 1 && model != 2)
    return Fail(ErrorCode::kUnsupported,
                "a SentencePiece model of type {}; known are 1 (unigram) and 2 (BPE)", model);
  list.model = model == 1 ? "t5" : "llama";
  return {};
}

Status ReadNormalizer(Message message, TokenList& list) {
  while (!message.at_end()) {
    SLUICE_TRY_ASSIGN(const Field field, message.Next());
    if (field.number == 2 && field.wire == 2) list.precompiled_charsmap = field.text();
    if (field.number == 3 && field.wire == 0) list.add_space_prefix = field.value != 0;
    if (field.number == 4 && field.wire == 0) list.remove_extra_whitespaces = field.value != 0;
  }
  return {};
}

}  // namespace

Result<TokenList> ReadSentencePieceModel(std::span<const std::byte> bytes) {
  // Both flags are true where the file leaves them out.
  TokenList list{.model = "t5", .pre = "default", .add_space_prefix = true, .remove_extra_whitespaces = true};
  Message message(bytes, 0);
  while (!message.at_end()) {
    SLUICE_TRY_ASSIGN(const Field field, message.Next());
    if (field.wire != 2) continue;
    if (field.number == 1) SLUICE_TRY(ReadPiece(message.Inner(field), list));
    if (field.number == 2) SLUICE_TRY(ReadTrainer(message.Inner(field), list));
    if (field.number == 3) SLUICE_TRY(ReadNormalizer(message.Inner(field), list));
  }
  if (list.texts.empty()) return Fail(ErrorCode::kCorrupt, "no pieces in {} bytes", bytes.size());
  if (list.model == "llama") list.precompiled_charsmap.clear();  // GGUF's has none
  return list;
}

}  // namespace sluice::convert
