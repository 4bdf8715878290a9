#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretokenizer.h"

#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Bounds for one match, far above what the patterns need on any text: they run in time linear in the match.
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKiB = 64 * 1024;

bool IsDecimalDigit(uint32_t code_point) {
  if (code_point < 0x80) return code_point >= '0' && code_point <= '9';
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point)) == UTF8PROC_CATEGORY_ND;
}

// Letters, marks, numbers, connecting punctuation.
bool IsWordCharacter(uint32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_PC;
}

// Cuts the runs of decimal digits in `piece` into threes from the right.
void SplitDigitTriples(SplitStep::Kind kind, std::string_view piece, uint32_t base,
                       std::vector<uint32_t>* ends) {
  std::vector<uint32_t> digits;  // where each digit of the current run begins
  const auto cut = [&](size_t offset) {
    const uint32_t end = base + static_cast<uint32_t>(offset);
    if (offset > 0 && (ends->empty() || ends->back() < end)) ends->push_back(end);
  };
  for (size_t position = 0; position <= piece.size();) {
    const bool at_end = position == piece.size();
    const Utf8Step step = at_end ? Utf8Step{0, 1, Utf8Status::kValid} : DecodeUtf8(piece.substr(position));
    if (!at_end && IsDecimalDigit(step.code_point)) {
      digits.push_back(static_cast<uint32_t>(position));
    } else if (!digits.empty()) {
      const bool word_follows = !at_end && IsWordCharacter(step.code_point);
      if (kind != SplitStep::Kind::kDigitTriplesWord || !word_follows) {
        if (kind != SplitStep::Kind::kDigitTripleBorders) cut(digits.front());
        for (size_t i = digits.size() % 3; i < digits.size(); i += 3) cut(digits[i]);
        if (kind != SplitStep::Kind::kDigitTripleBorders) cut(position);
      }
      digits.clear();
    }
    position += step.size;
  }
  cut(piece.size());
}

}  // namespace

void PreTokenizer::CodeDeleter::operator()(pcre2_code* code) const { pcre2_code_free(code); }
void PreTokenizer::ContextDeleter::operator()(pcre2_match_context* context) const {
  pcre2_match_context_free(context);
}

PreTokenizer::PreTokenizer(const PreTokenizerSpec& spec) : limits_(pcre2_match_context_create(nullptr)) {
  SLUICE_CHECK(limits_ != nullptr);
  pcre2_set_match_limit(limits_.get(), kMatchLimit);
  pcre2_set_heap_limit(limits_.get(), kHeapLimitKiB);
  for (const SplitStep& step : spec.steps) {
    Step made{step.kind, nullptr};
    if (step.kind == SplitStep::Kind::kPattern) {
      int error = 0;
      PCRE2_SIZE offset = 0;
      made.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(step.pattern), PCRE2_ZERO_TERMINATED,
                                    PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
      SLUICE_CHECK(made.code != nullptr);  // the patterns are ours
      // Without JIT (an architecture that lacks it, memory that can't be made executable) the interpreter is
      // used.
      pcre2_jit_compile(made.code.get(), PCRE2_JIT_COMPLETE);
    }
    steps_.push_back(std::move(made));
  }
}

PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Status PreTokenizer::Split(std::string_view text, std::vector<uint32_t>* ends) const {
  ends->clear();
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  if (match == nullptr) return Fail(ErrorCode::kResourceExhausted, "no memory to split the text into words");
  size_t position = 0;
  while (position < text.size()) {
    const size_t valid = ValidUtf8Prefix(text.substr(position));
    if (valid > 0) {
      SLUICE_TRY(
          SplitValid(text.substr(position, valid), static_cast<uint32_t>(position), match.get(), ends));
      position += valid;
    }
    if (position < text.size()) {
      position += DecodeUtf8(text.substr(position)).size;
      ends->push_back(static_cast<uint32_t>(position));
    }
  }
  return {};
}

Status PreTokenizer::SplitValid(std::string_view text, uint32_t base, pcre2_match_data* match,
                                std::vector<uint32_t>* ends) const {
  const auto apply = [&](const Step& step, std::string_view piece, uint32_t offset,
                         std::vector<uint32_t>* out) -> Status {
    if (step.kind == SplitStep::Kind::kPattern) return ApplyPattern(step, piece, offset, match, out);
    SplitDigitTriples(step.kind, piece, offset, out);
    return {};
  };
  if (steps_.size() == 1) return apply(steps_[0], text, base, ends);

  std::vector<uint32_t> before = {base + static_cast<uint32_t>(text.size())};
  std::vector<uint32_t> after;
  for (const Step& step : steps_) {
    after.clear();
    uint32_t begin = base;
    for (const uint32_t end : before) {
      SLUICE_TRY(apply(step, text.substr(begin - base, end - begin), begin, &after));
      begin = end;
    }
    std::swap(before, after);
  }
  ends->insert(ends->end(), before.begin(), before.end());
  return {};
}

Status PreTokenizer::ApplyPattern(const Step& step, std::string_view piece, uint32_t base,
                                  pcre2_match_data* match, std::vector<uint32_t>* ends) const {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match);
  size_t position = 0;
  while (position < piece.size()) {
    int found = pcre2_match(step.code.get(), subject, piece.size(), position, PCRE2_NO_UTF_CHECK, match,
                            limits_.get());
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(step.code.get(), subject, piece.size(), position, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          match, limits_.get());
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      return Fail(ErrorCode::kResourceExhausted, "splitting the text into words at byte {}: PCRE2 error {}",
                  base + position, found);
    }
    SLUICE_CHECK(bounds[1] > bounds[0]);  // no pattern matches nothing
    if (bounds[0] > position) ends->push_back(base + static_cast<uint32_t>(bounds[0]));
    ends->push_back(base + static_cast<uint32_t>(bounds[1]));
    position = bounds[1];
  }
  if (position < piece.size()) ends->push_back(base + static_cast<uint32_t>(piece.size()));
  return {};
}

size_t PreTokenizer::memory_bytes() const {
  size_t total = 0;
  for (const Step& step : steps_) {
    if (step.code == nullptr) continue;
    size_t code = 0, jit = 0;
    pcre2_pattern_info(step.code.get(), PCRE2_INFO_SIZE, &code);
    pcre2_pattern_info(step.code.get(), PCRE2_INFO_JITSIZE, &jit);
    total += code + jit;
  }
  return total;
}

}  // namespace sluice::text
