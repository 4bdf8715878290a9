// Text: the string of the template language. Every byte of it knows whether it is trusted (written by the
// template) or came from outside (a message, a tool definition); the knowledge survives slicing, joining,
// replacing and all other operations, since TextBuilder is the only way to make a Text.
//
// A Text is immutable and cheap to copy. It must not outlive the Meter that it is charged to. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/jinja/limits.h"

namespace sluice::chat::jinja {

class Text {
 public:
  Text() = default;
  // Text of the template itself: trusted, charged to nobody.
  static Text Literal(std::string bytes);

  std::string_view view() const { return rep_ ? std::string_view(rep_->bytes) : std::string_view(); }
  size_t size() const { return view().size(); }
  bool empty() const { return size() == 0; }

  // Calls visit(std::string_view bytes, bool trusted) for each run of equal trust within [begin, end), in
  // order.
  template <typename Visitor>
  void VisitRuns(size_t begin, size_t end, Visitor&& visit) const;
  template <typename Visitor>
  void VisitRuns(Visitor&& visit) const {
    VisitRuns(0, size(), visit);
  }

 private:
  friend class TextBuilder;
  // Trust flips at each of `flips` (ascending offsets): empty for the common string of one origin.
  struct Rep {
    std::string bytes;
    bool first_trusted = true;
    std::vector<uint32_t> flips;
    Meter* meter = nullptr;
    size_t charged = 0;

    Rep() = default;
    Rep(const Rep&) = delete;
    Rep& operator=(const Rep&) = delete;
    ~Rep() {
      if (meter) meter->Release(charged);
    }
  };
  explicit Text(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}

  std::shared_ptr<const Rep> rep_;
};

// Collects a Text. Appending never fails; when a bound is passed the builder drops everything and Finish says
// so.
class TextBuilder {
 public:
  explicit TextBuilder(Meter* meter) : meter_(meter) {}
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;
  ~TextBuilder() { meter_->Release(charged_); }

  void Append(std::string_view bytes, bool trusted);
  void Append(const Text& text) { Append(text, 0, text.size()); }
  void Append(const Text& text, size_t begin, size_t end);

  // `times` may be anything; negative is none.
  void AppendRepeated(const Text& text, int64_t times);
  // Counts work on the way to what is appended, like Meter::SpendBytes.
  void Work(size_t bytes) {
    if (!meter_->SpendBytes(bytes)) Exhaust();
  }

  size_t size() const { return bytes_.size(); }
  bool exhausted() const { return exhausted_; }

  // The text so far; the builder is empty afterwards. Error: kResourceExhausted.
  Result<Text> Finish();

 private:
  void Exhaust();

  Meter* meter_;
  std::string bytes_;
  bool first_trusted_ = true;
  bool last_trusted_ = true;
  std::vector<uint32_t> flips_;
  size_t charged_ = 0;
  bool exhausted_ = false;
};

// A part of `text`. Error: kResourceExhausted.
Result<Text> Slice(const Text& text, size_t begin, size_t end, Meter* meter);

// Where `needle` is in `text` from byte `from` on, npos if nowhere. Linear in the worst case, unlike
// string::find.
size_t FindBytes(std::string_view text, std::string_view needle, size_t from);

// --- UTF-8: positions and lengths in the template language count code points. ---
// Bytes that are not UTF-8 count as one character each.

// Length in bytes (at least 1) of the character at `offset` < text.size().
size_t CharLength(std::string_view text, size_t offset);
int64_t CountChars(std::string_view text);
// The byte offset of character `index`, counted from the end if negative, clamped to the text.
size_t CharOffset(std::string_view text, int64_t index);
// The code point at `offset`; U+FFFD for a stray byte.
char32_t CharAt(std::string_view text, size_t offset);
// Does Python's str.strip() strip it?
bool IsSpace(char32_t c);
bool IsLetter(char32_t c);
bool IsDecimal(char32_t c);
// Upper or lower case, where that is one character to one.
char32_t ToUpper(char32_t c);
char32_t ToLower(char32_t c);
void AppendUtf8(char32_t c, std::string* out);

template <typename Visitor>
void Text::VisitRuns(size_t begin, size_t end, Visitor&& visit) const {
  if (begin >= end) return;
  bool trusted = rep_->first_trusted;
  size_t next = 0;
  const auto& flips = rep_->flips;
  while (next < flips.size() && flips[next] <= begin) {
    trusted = !trusted;
    ++next;
  }
  while (begin < end) {
    const size_t stop = next < flips.size() && flips[next] < end ? flips[next] : end;
    visit(view().substr(begin, stop - begin), trusted);
    begin = stop;
    trusted = !trusted;
    ++next;
  }
}

}  // namespace sluice::chat::jinja
