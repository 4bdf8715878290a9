// Reads arbitrary bytes as a question set, and as an answer to be judged.
#include <string_view>

#include "base/check.h"
#include "eval/question_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto questions = sluice::eval::ParseQuestions(text)) {
    for (const sluice::eval::Question& question : *questions)
      SLUICE_CHECK(sluice::eval::IsRight(question, question.answer));
  }
  const std::string normal = sluice::eval::NormalAnswer(text);
  SLUICE_CHECK(normal.size() <= 20 * size + 8);
  return 0;
}
