#include "sample/answer_quality.h"

#include <algorithm>

#include "text/utf8.h"

namespace sluice::sample {

void AnswerQuality::Add(int32_t token, std::string_view shown) {
  const bool not_text = IsNotText(shown);
  const bool loops = Loops(token);
  if (verdict_ != Verdict::kFine) return;
  verdict_ = not_text ? Verdict::kNotText : loops ? Verdict::kLoops : Verdict::kFine;
}

bool AnswerQuality::Loops(int32_t token) {
  bool loops = false;
  for (size_t period = 1; period <= std::min(tokens_, kLongestPeriod); ++period) {
    const bool same = recent_[(tokens_ - period) % kLongestPeriod] == token;
    repeating_[period] = same ? repeating_[period] + 1 : 0;
    loops |= repeating_[period] + period >= std::max(kShortestLoop, kRepeats * period);
  }
  recent_[tokens_ % kLongestPeriod] = token;
  ++tokens_;
  return loops;
}

bool AnswerQuality::IsNotText(std::string_view shown) {
  while (!shown.empty()) {
    const text::Utf8Step step = text::DecodeUtf8(shown);
    const uint32_t c = step.code_point;  // U+FFFD for what is invalid
    const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7f && c < 0xa0);
    strange_ += control || c == text::kReplacementCharacter ? 1 : 0;
    ++characters_;
    shown.remove_prefix(step.size);
  }
  return characters_ >= kCharactersToJudge && strange_ * 2 >= characters_;
}

std::string_view AnswerQuality::hint() const {
  switch (verdict_) {
    case Verdict::kFine:
      return "";
    case Verdict::kLoops:
      return "the answer repeats itself; a higher --temp, --repeat-penalty 1.1 or a larger model may help";
    case Verdict::kNotText:
      return "the answer is not text; the file may be damaged or its tokenizer unsuited (see sluice inspect)";
  }
  return "";
}

}  // namespace sluice::sample
