// AnswerQuality: watches an answer while it is generated, for the two ways in which small or damaged models
// fail: the answer says the same thing again and again, or it is not text. Whoever shows the answer prints
// the hint once, on one line, beside it; nothing is stopped.
//
// A value of a few hundred bytes; constant time per token. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::sample {

class AnswerQuality {
 public:
  enum class Verdict {
    kFine,
    kLoops,   // the last tokens, at least 64, are one passage of at most 64 tokens at least four times over
    kNotText  // of at least 32 characters, half or more are control or replacement characters, or invalid
              // bytes
  };

  // A token of the answer, and the text that became visible with it: whole characters, possibly none.
  void Add(int32_t token, std::string_view shown);

  // Once something is wrong it stays said.
  Verdict verdict() const { return verdict_; }

  // One sentence for the user, without a line feed; empty while all is fine.
  std::string_view hint() const;

 private:
  static constexpr size_t kLongestPeriod = 64;
  static constexpr size_t kShortestLoop = 64;
  static constexpr size_t kRepeats = 4;
  static constexpr size_t kCharactersToJudge = 32;

  bool Loops(int32_t token);
  bool IsNotText(std::string_view shown);

  std::array<int32_t, kLongestPeriod> recent_{};  // ring of the last tokens
  std::array<size_t, kLongestPeriod + 1>
      repeating_{};  // [p]: how many tokens in a row equal the one p before
  size_t tokens_ = 0;
  size_t characters_ = 0;
  size_t strange_ = 0;
  Verdict verdict_ = Verdict::kFine;
};

}  // namespace sluice::sample
