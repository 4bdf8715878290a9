#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

// How many continuation bytes follow `lead` (0 for bytes that can't lead), and the range of the first of
// them: the narrower ranges are what excludes overlong forms, surrogates and code points above U+10FFFF.
struct Continuation {
  uint8_t count;
  uint8_t low;
  uint8_t high;
};

Continuation ContinuationOf(uint8_t lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {1, 0x80, 0xBF};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};
  if (lead == 0xED) return {2, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {2, 0x80, 0xBF};
  if (lead == 0xF0) return {3, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {3, 0x80, 0xBF};
  if (lead == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step DecodeUtf8(std::string_view bytes) {
  const uint8_t lead = static_cast<uint8_t>(bytes[0]);
  if (lead < 0x80) return {lead, 1, Utf8Status::kValid};
  const Continuation continuation = ContinuationOf(lead);
  if (continuation.count == 0) return {kReplacementCharacter, 1, Utf8Status::kInvalid};

  uint32_t code_point = lead & (0x3Fu >> continuation.count);
  for (uint32_t i = 1; i <= continuation.count; ++i) {
    if (i == bytes.size()) return {kReplacementCharacter, i, Utf8Status::kIncomplete};
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i == 1 ? continuation.low : 0x80;
    const uint8_t high = i == 1 ? continuation.high : 0xBF;
    if (byte < low || byte > high) return {kReplacementCharacter, i, Utf8Status::kInvalid};
    code_point = (code_point << 6) | (byte & 0x3Fu);
  }
  return {code_point, continuation.count + 1u, Utf8Status::kValid};
}

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

size_t ValidUtf8Prefix(std::string_view bytes) {
  size_t position = 0;
  while (position < bytes.size()) {
    if (static_cast<uint8_t>(bytes[position]) < 0x80) {
      ++position;
      continue;
    }
    const Utf8Step step = DecodeUtf8(bytes.substr(position));
    if (step.status != Utf8Status::kValid) break;
    position += step.size;
  }
  return position;
}

bool IsValidUtf8(std::string_view bytes) { return ValidUtf8Prefix(bytes) == bytes.size(); }

void Utf8Stream::Append(std::string_view bytes, std::string* out) {
  std::string joined;
  if (!tail_.empty()) {
    joined = tail_;
    joined += bytes;
    tail_.clear();
    bytes = joined;
  }
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Prefix(bytes);
    out->append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) return;
    const Utf8Step step = DecodeUtf8(bytes);
    if (step.status == Utf8Status::kIncomplete) {
      tail_ = bytes;
      return;
    }
    out->append(kReplacementUtf8);
    bytes.remove_prefix(step.size);
  }
}

void Utf8Stream::Finish(std::string* out) {
  if (!tail_.empty()) out->append(kReplacementUtf8);
  tail_.clear();
}

std::string ToValidUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Stream stream;
  stream.Append(bytes, &out);
  stream.Finish(&out);
  return out;
}

}  // namespace sluice::text
