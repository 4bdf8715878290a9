#include "eval/question_set.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::eval {
namespace {

TEST(QuestionSetTest, ReadsALineForEachQuestion) {
  const auto questions = ParseQuestions(
      "{\"kind\":\"capital\",\"prompt\":\"Capital of France?\",\"answer\":\"Paris\",\"accept\":[\"Paris, "
      "France\",\"\\u5df4\\u9ece\"]}\r\n"
      "\n  \t\r\n"
      "{\"answer\":\"7\",\"prompt\":\"3 + 4?\",\"kind\":\"sum\"}");
  ASSERT_TRUE(questions) << questions.error().message;
  ASSERT_EQ(questions->size(), 2u);
  const Question& first = (*questions)[0];
  EXPECT_EQ(first.kind, "capital");
  EXPECT_EQ(first.prompt, "Capital of France?");
  EXPECT_EQ(first.answer, "Paris");
  EXPECT_EQ(first.accept, (std::vector<std::string>{"Paris, France", "巴黎"}));
  EXPECT_TRUE((*questions)[1].accept.empty());
}

TEST(QuestionSetTest, SaysWhichLineIsWrongAndWhy) {
  const std::string good = R"({"kind":"k","prompt":"p","answer":"a"})";
  const struct {
    std::string line, expected;
  } cases[] = {
      {"{", "not JSON"},
      {"[1]", "found array; expected an object"},
      {"7", "found number; expected an object"},
      {good + good, "not JSON"},
      {R"({"kind":"k","prompt":"p"})", "\"answer\" is missing"},
      {R"({"kind":"k","prompt":"p","answer":""})", "\"answer\" is empty"},
      {R"({"kind":"k","prompt":7,"answer":"a"})", "prompt is number; expected a string"},
      {R"({"kind":"k","prompt":"p","answer":"a","accept":"b"})",
       "accept is string; expected an array of strings"},
      {R"({"kind":"k","prompt":"p","answer":"a","accept":["b",null]})",
       "accept[1] is null; expected a string"},
      {R"({"kind":"k","prompt":"p","answer":"a","acept":[]})", "unknown key \"acept\""},
      {R"({"kind":"k","prompt":"p","answer":"a","answer":"b"})", "a key stands there twice"},
      {"{\"kind\":\"k\",\"prompt\":\"\xff\",\"answer\":\"a\"}", "not JSON"},
      {std::string(2 << 20, ' ') + good, "at most"},
      {std::string(1000000, '['), "not JSON"},
  };
  for (const auto& c : cases) {
    const auto questions = ParseQuestions(good + "\n" + c.line + "\n" + good);
    ASSERT_FALSE(questions) << c.line;
    EXPECT_EQ(questions.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(questions.error().message.find("line 2: "), 0u) << questions.error().message;
    EXPECT_NE(questions.error().message.find(c.expected), std::string::npos) << questions.error().message;
  }
}

TEST(QuestionSetTest, AnEmptyFileIsNoQuestionSet) {
  for (const char* text : {"", "\n\n", "  \n"}) {
    const auto questions = ParseQuestions(text);
    ASSERT_FALSE(questions);
    EXPECT_EQ(questions.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(QuestionSetTest, AnswersAreComparedInNormalForm) {
  EXPECT_EQ(NormalAnswer("  Paris.\n"), "paris");
  EXPECT_EQ(NormalAnswer("Paris .. "), "paris .");
  EXPECT_EQ(NormalAnswer("PARIS . "), "paris");
  EXPECT_EQ(NormalAnswer("東京。"), "東京");
  EXPECT_EQ(NormalAnswer("ÅLAND Straße ΣΊΣΥΦΟΣ"), "åland strasse σίσυφοσ");
  EXPECT_EQ(NormalAnswer("e\xcc\x81t\xc3\x89"), "été");  // decomposed or not
  EXPECT_EQ(NormalAnswer("\xc2\xa0\xe3\x80\x80x\xe2\x80\xa8"),
            "x");  // no-break, ideographic space, line separator
  EXPECT_EQ(NormalAnswer("a\xff"), "a\xef\xbf\xbd");
  EXPECT_EQ(NormalAnswer(std::string_view("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(NormalAnswer("a b"), "a b");
  EXPECT_EQ(NormalAnswer(" . "), "");
  EXPECT_EQ(NormalAnswer(""), "");
}

TEST(QuestionSetTest, JudgesByTheAnswerAndWhatIsAccepted) {
  const Question question{"capital", "?", "Paris", {"The capital is Paris.", "巴黎"}};
  for (const char* right : {"Paris", "paris.", " PARIS\n", "the capital is paris", "巴黎。"})
    EXPECT_TRUE(IsRight(question, right)) << right;
  for (const char* wrong : {"", "Pari", "Paris, France", "Paris!", "London"})
    EXPECT_FALSE(IsRight(question, wrong)) << wrong;
}

TEST(QuestionSetTest, ScoresByKindInOrder) {
  Scoreboard board;
  board.Add("sum", true);
  board.Add("capital", false);
  board.Add("sum", false);
  board.Add("sum", true);
  ASSERT_EQ(board.kinds().size(), 2u);
  EXPECT_EQ(board.kinds()[0].kind, "sum");
  EXPECT_EQ(board.kinds()[0].score.right, 2);
  EXPECT_EQ(board.kinds()[0].score.total, 3);
  EXPECT_EQ(board.kinds()[1].score.share(), 0);
  EXPECT_EQ(board.all().right, 2);
  EXPECT_EQ(board.all().total, 4);
  EXPECT_DOUBLE_EQ(board.all().share(), 0.5);
  EXPECT_LT(board.all().Confidence95().low, 0.5);
  EXPECT_EQ(Score().share(), 0);
}

}  // namespace
}  // namespace sluice::eval
