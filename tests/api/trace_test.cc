// What --trace writes down: one JSON object with the steps of each pass and the series.
#include "sluice/trace.h"

#include <map>
#include <nlohmann/json.hpp>

#include "api/sessions.h"
#include "sluice/usage.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using whole::TinyLlama;

class TraceTest : public TinySessions {
 protected:
  void SetUp() override {
    model_ = Open(TinyLlama());
    session_ = Make({.kv = {.context_length = 256, .batch = 8}});
  }
  void Answer(int tokens) {
    ASSERT_TRUE(session_->Read(SomeIds(20)));
    for (int i = 0; i < tokens; ++i) ASSERT_TRUE(session_->Advance(5));
  }
  json Contents() const {
    const auto text = ReadWholeFile(path_);
    EXPECT_TRUE(text);
    json whole = json::parse(text ? *text : "", nullptr, false);
    EXPECT_TRUE(whole.is_object()) << (text ? *text : "");
    return whole;
  }
  uint64_t Used() const { return engine_->context().ledger->Snapshot().total_bytes(); }

  std::unique_ptr<session::Session> session_;
  const std::string path_ = folder_ / "trace.json";
};

TEST_F(TraceTest, HasEveryStepOfEveryPassAndTheSeries) {
  auto trace = Trace::Create(*engine_, path_);
  ASSERT_TRUE(trace) << trace.error().message;
  (*trace)->Begin(*model_, *session_);
  Answer(4);
  ASSERT_TRUE((*trace)->Finish());

  const json whole = Contents();
  EXPECT_EQ(whole["otherData"]["residency"], "resident");
  EXPECT_EQ(whole["otherData"]["budget_bytes"], engine_->budget_bytes());
  std::map<std::string, int> steps;
  std::vector<int> passes;
  json last_memory, first_speed, last_speed;
  for (const json& event : whole["traceEvents"]) {
    ASSERT_TRUE(event["ph"].is_string()) << event;
    if (event["ph"] == "M") continue;
    EXPECT_GE(event["ts"], 0) << event;
    if (event["cat"] == "step") {
      EXPECT_GE(event["dur"], 0) << event;
      ++steps[event["name"]];
    }
    if (event["cat"] == "pass") passes.push_back(event["args"]["tokens"]);
    if (event["name"] == "memory") last_memory = event["args"];
    if (event["name"] == "tokens/s") (first_speed.is_null() ? first_speed : last_speed) = event["args"];
  }
  // 20 tokens in batches of 8, and four by themselves.
  EXPECT_EQ(passes, (std::vector<int>{8, 8, 4, 1, 1, 1, 1}));
  EXPECT_EQ(steps["qkv"], 7 * 2);
  EXPECT_EQ(steps["down"], 7 * 2);
  EXPECT_EQ(steps["embedding"], 7);
  EXPECT_EQ(steps["logits"], 1 + 4);
  const memory::LedgerSnapshot ledger = engine_->context().ledger->Snapshot();
  EXPECT_EQ(last_memory["kv"], ledger.used_bytes[static_cast<size_t>(memory::Account::kKv)]);
  EXPECT_EQ(last_memory.size(), memory::kAccountCount);
  EXPECT_LT(last_memory["reserve"], plan::UnaccountedWithin(ledger.budget_bytes))
      << "what the engine keeps free is nobody's";
  EXPECT_GT(first_speed["reading"], 0);
  EXPECT_EQ(last_speed["answering"], 0) << "it is over";
}

TEST_F(TraceTest, IsChargedAndGivesItsMemoryBack) {
  session_.reset();
  const uint64_t before = Used();
  {
    auto trace = Trace::Create(*engine_, path_);
    ASSERT_TRUE(trace);
    EXPECT_GT(Used(), before + kMiB);
    session_ = Make({.kv = {.context_length = 256, .batch = 8}});
    const uint64_t with = Used();
    (*trace)->Begin(*model_, *session_);
    Answer(3);
    EXPECT_EQ(Used(), with);
    session_.reset();
  }
  EXPECT_EQ(Used(), before);
}

TEST_F(TraceTest, AFileThatCannotBeWrittenIsAnErrorAtOnce) {
  const uint64_t before = Used();
  const auto nowhere = Trace::Create(*engine_, folder_ / "no/such/folder.json");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(nowhere.error().message, HasSubstr("folder.json"));
  EXPECT_FALSE(Trace::Create(*engine_, folder_.path()));
  EXPECT_EQ(Used(), before);
  const auto small = MakeEngine({.threads = 1, .memory_bytes = 6 * kMiB});
  EXPECT_EQ(Trace::Create(*small, path_).error().code, ErrorCode::kDoesNotFit);
}

TEST_F(TraceTest, ARunThatFailedHasATraceAndOneThatNeverBeganHasNone) {
  folder_.Write("trace.json", "before");
  { ASSERT_TRUE(Trace::Create(*engine_, path_)); }
  EXPECT_EQ(*ReadWholeFile(path_), "before");
  {
    auto trace = Trace::Create(*engine_, path_);
    ASSERT_TRUE(trace);
    (*trace)->Begin(*model_, *session_);
    Answer(1);
    EXPECT_EQ(*ReadWholeFile(path_), "before") << "there whole or not at all";
    session_.reset();
  }
  EXPECT_GT(Contents()["traceEvents"].size(), 20u);
}

TEST_F(TraceTest, ALongRunLeavesOutStepsAndThenEverything) {
  constexpr uint64_t kMost = 32 * kKiB;
  auto trace = Trace::Create(*engine_, path_, kMost);
  ASSERT_TRUE(trace);
  (*trace)->Begin(*model_, *session_);
  Answer(200);
  ASSERT_TRUE((*trace)->Finish());
  EXPECT_LT(ReadWholeFile(path_)->size(), kMost * 3 / 2 + 4 * kKiB);
  const json whole = Contents();
  int remarks = 0;
  for (const json& event : whole["traceEvents"]) remarks += event["ph"] == "i";
  EXPECT_EQ(remarks, 1);
}

TEST_F(TraceTest, NothingIsWrittenDownAfterTheEnd) {
  auto trace = Trace::Create(*engine_, path_);
  ASSERT_TRUE(trace);
  (*trace)->Begin(*model_, *session_);
  Answer(1);
  ASSERT_TRUE((*trace)->Finish());
  const auto size = ReadWholeFile(path_)->size();
  Answer(1);
  ASSERT_TRUE((*trace)->Finish());
  EXPECT_EQ(ReadWholeFile(path_)->size(), size);
}

}  // namespace
}  // namespace sluice
