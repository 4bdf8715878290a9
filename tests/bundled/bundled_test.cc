// The bundled model through the whole chain: its logits against those that its training program computed, and the share
// of its question set that it answers rightly, which anything wrong between the file and the text would bring down.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sluice/conversation.h"
#include "sluice/eval.h"
#include "sluice/usage.h"

namespace sluice {
namespace {

const std::string kModels = SLUICE_SOURCE_DIR "/models/";

class BundledTest : public testing::Test {
 protected:
  void SetUp() override {
    auto engine = Engine::Create({.threads = 2});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
    auto model = Model::Open(*engine_, kModels + "sluice-demo-f16.gguf");
    ASSERT_TRUE(model) << model.error().message;
    model_ = *std::move(model);
  }

  std::unique_ptr<Conversation> Start(kv::KvType kv_type) {
    auto conversation = Conversation::Create(*engine_, model_, {.k_type = kv_type, .v_type = kv_type});
    EXPECT_TRUE(conversation) << conversation.error().message;
    return *std::move(conversation);
  }

  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const Model> model_;
};

TEST_F(BundledTest, LoadsWithoutRemarks) { EXPECT_TRUE(model_->warnings().empty()) << model_->warnings().front(); }

TEST_F(BundledTest, LogitsAreThoseOfTheTrainingProgram) {
  std::ifstream in(kModels + "golden.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  const auto conversation = Start(kv::KvType::kF32);
  session::Session& session = conversation->session();
  for (const nlohmann::json& about : golden["cases"]) {
    SCOPED_TRACE(about["prompt"].get<std::string>());
    const std::vector<TokenId> ids = about["ids"];
    ASSERT_TRUE(session.Read(ids));
    for (size_t i = 0; i < about["top_ids"].size(); ++i) {
      const size_t id = about["top_ids"][i];
      EXPECT_NEAR(session.logits()[id], about["top_logits"][i].get<double>(), 2e-3) << "id " << id;
    }
    std::vector<TokenId> greedy;
    const std::vector<TokenId> expected = about["greedy_ids"];
    while (greedy.size() < expected.size()) {
      const auto logits = session.logits();
      greedy.push_back(static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      if (greedy.back() != expected[greedy.size() - 1]) break;
      ASSERT_TRUE(session.Advance(greedy.back()));
    }
    EXPECT_EQ(greedy, expected);
  }
}

// The prompt as the template renders it is what the model was trained on.
TEST_F(BundledTest, PromptIdsAreThoseOfTheTrainingProgram) {
  std::ifstream in(kModels + "golden.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  for (const nlohmann::json& about : golden["cases"]) {
    const std::vector<chat::Message> messages{chat::TextMessage("user", about["prompt"])};
    const auto prompt = model_->chat_template().Render({.messages = messages});
    ASSERT_TRUE(prompt) << prompt.error().message;
    const auto ids = EncodePrompt(model_->tokenizer(), prompt->segments);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(*ids, about["ids"].get<std::vector<TokenId>>()) << about["prompt"];
  }
}

TEST_F(BundledTest, AnswersItsQuestionSet) {
  const auto text = ReadWholeFile(kModels + "questions.jsonl");
  ASSERT_TRUE(text);
  const auto questions = eval::ParseQuestions(*text);
  ASSERT_TRUE(questions) << questions.error().message;
  EXPECT_GE(questions->size(), 400u);
  const auto conversation = Start(kv::KvType::kF16);
  AnswerOptions options{.max_tokens = 64};
  options.sampling.temperature = 0;
  eval::Scoreboard scores;
  eval::Score facts;
  const std::vector<std::string> not_facts{"reading", "lookup", "sum", "difference", "unknown", "talk"};
  for (const eval::Question& question : *questions) {
    conversation->SetMessages({chat::TextMessage("user", question.prompt)});
    const auto answer = conversation->Reply(options, {});
    ASSERT_TRUE(answer) << answer.error().message;
    const bool right = eval::IsRight(question, answer->generation.text);
    scores.Add(question.kind, right);
    if (std::find(not_facts.begin(), not_facts.end(), question.kind) == not_facts.end()) {
      ++facts.total;
      facts.right += right;
    }
  }
  for (const eval::KindScore& kind : scores.kinds()) RecordProperty(kind.kind, static_cast<int>(100 * kind.score.share()));
  EXPECT_GE(facts.share(), 0.93);
  EXPECT_GE(scores.all().share(), 0.65);
}

}  // namespace
}  // namespace sluice
