#include "chat/jinja/text.h"

#include <utf8proc.h>

#include <string.h>  // memmem

#include <algorithm>

#include "base/check.h"

namespace sluice::chat::jinja {

Text Text::Literal(std::string bytes) {
  auto rep = std::make_shared<Rep>();
  rep->bytes = std::move(bytes);
  return Text(std::move(rep));
}

void TextBuilder::Exhaust() {
  exhausted_ = true;
  bytes_ = std::string();
  flips_ = std::vector<uint32_t>();
}

void TextBuilder::Append(std::string_view bytes, bool trusted) {
  if (bytes.empty() || exhausted_) return;
  if (!meter_->SpendBytes(bytes.size()) || !meter_->Reserve(bytes.size())) {
    Exhaust();
    return;
  }
  charged_ += bytes.size();
  if (bytes_.empty()) {
    first_trusted_ = last_trusted_ = trusted;
  } else if (trusted != last_trusted_) {
    // An offset fits: a Meter never holds 4 GiB (Limits::live_bytes).
    flips_.push_back(static_cast<uint32_t>(bytes_.size()));
    last_trusted_ = trusted;
    if (meter_->Reserve(sizeof(uint32_t))) charged_ += sizeof(uint32_t);
  }
  bytes_.append(bytes);
}

void TextBuilder::Append(const Text& text, size_t begin, size_t end) {
  text.VisitRuns(begin, end, [this](std::string_view bytes, bool trusted) { Append(bytes, trusted); });
}

void TextBuilder::AppendRepeated(const Text& text, int64_t times) {
  if (text.empty() || times <= 0) return;
  if (static_cast<uint64_t>(times) > meter_->bytes_left() / text.size()) return Exhaust();
  for (; times > 0 && !exhausted_; --times) Append(text);
}

Result<Text> TextBuilder::Finish() {
  if (exhausted_) return Fail(ErrorCode::kResourceExhausted, "the template makes too much text");
  if (bytes_.empty()) return Text();
  constexpr size_t kRepBytes = 128;
  if (!meter_->Reserve(kRepBytes))
    return Fail(ErrorCode::kResourceExhausted, "the template holds too much data");
  auto rep = std::make_shared<Text::Rep>();
  if (bytes_.capacity() > 2 * bytes_.size()) bytes_.shrink_to_fit();
  rep->bytes = std::move(bytes_);
  rep->first_trusted = first_trusted_;
  rep->flips = std::move(flips_);
  rep->meter = meter_;
  rep->charged = charged_ + kRepBytes;
  bytes_.clear();
  flips_.clear();
  charged_ = 0;
  return Text(std::move(rep));
}

Result<Text> Slice(const Text& text, size_t begin, size_t end, Meter* meter) {
  if (begin == 0 && end == text.size()) return text;
  TextBuilder builder(meter);
  builder.Append(text, begin, end);
  return builder.Finish();
}

size_t FindBytes(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size() || needle.size() > text.size() - from) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

namespace {

// Decodes the character at `offset`; returns its length, or 0 for bytes that are not UTF-8.
size_t Decode(std::string_view text, size_t offset, char32_t* c) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    *c = lead;
    return 1;
  }
  const size_t length = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || lead >= 0xf5 || text.size() - offset < length) return 0;
  char32_t value = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    value = (value << 6) | (byte(i) & 0x3f);
  }
  static constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
  *c = value;
  return length;
}

}  // namespace

size_t CharLength(std::string_view text, size_t offset) {
  char32_t c;
  return std::max<size_t>(1, Decode(text, offset, &c));
}

char32_t CharAt(std::string_view text, size_t offset) {
  char32_t c;
  return Decode(text, offset, &c) > 0 ? c : U'\ufffd';
}

int64_t CountChars(std::string_view text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size(); i += CharLength(text, i)) ++count;
  return count;
}

size_t CharOffset(std::string_view text, int64_t index) {
  if (index < 0) index = std::max<int64_t>(0, index + CountChars(text));
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += CharLength(text, at);
  return at;
}

bool IsSpace(char32_t c) {
  // The White_Space characters, and the four separators 1c–1f that Python counts in.
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool IsLetter(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDecimal(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
}

char32_t ToUpper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

char32_t ToLower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

void AppendUtf8(char32_t c, std::string* out) {
  SLUICE_CHECK(c <= 0x10ffff);
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | (c >> 6));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3f));
  } else {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

}  // namespace sluice::chat::jinja
