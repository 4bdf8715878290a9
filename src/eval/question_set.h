// Question sets: prompts with short right answers, to measure what a model knows after all that was done to
// it.
//
// The file is JSON lines, UTF-8, one question a line; blank lines are skipped:
//   {"kind": "capital", "prompt": "What is the capital of France?", "answer": "Paris", "accept": ["Paris,
//   France"]}
// "accept" (other answers that count as right) may be left out; every other key is an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "eval/statistics.h"

namespace sluice::eval {

struct Question {
  std::string kind;
  std::string prompt;
  std::string answer;
  std::vector<std::string> accept;
};

// Errors: kCorrupt, with the number of the line and what is wrong there; kInvalidArgument when there is no
// question.
Result<std::vector<Question>> ParseQuestions(std::string_view text);

// What is compared: `text` in Unicode's case folding and composed form, without white space around it and
// without one full stop at its end. Invalid UTF-8 counts as U+FFFD.
std::string NormalAnswer(std::string_view text);

// Whether `answer` is the question's answer or one of those it accepts, in normal form.
bool IsRight(const Question& question, std::string_view answer);

// How many questions were answered rightly, in all and by kind. A value; one thread at a time.
struct KindScore {
  std::string kind;
  Score score;
};

class Scoreboard {
 public:
  void Add(std::string_view kind, bool right);

  const std::vector<KindScore>& kinds() const { return kinds_; }  // in the order of their first question
  const Score& all() const { return all_; }

 private:
  std::vector<KindScore> kinds_;
  Score all_;
};

}  // namespace sluice::eval
