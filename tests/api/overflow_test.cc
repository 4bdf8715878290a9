// Contexts that overflow: nothing changes before, nothing depends on batches after, memory stays flat, and
// models that can't are refused at once.
#include "api/sessions.h"
#include "sample/count_allocations.h"
#include "sluice/usage.h"

namespace sluice {
namespace {

using kv::Overflow;
using session::Session;
using session::SessionOptions;
using whole::TinyGemma;
using whole::TinyLlama;

class OverflowTest : public TinySessions, public testing::WithParamInterface<Overflow> {
 protected:
  OverflowTest() { model_ = Open(TinyLlama(256)); }
  static SessionOptions Options(int64_t batch = 64) {
    return {.kv = {.context_length = 256, .batch = batch, .overflow = GetParam()}};
  }
};

TEST_P(OverflowTest, NothingChangesUntilTheContextIsFull) {
  const std::vector<TokenId> ids = SomeIds(256);
  EXPECT_EQ(After(*Make(Options()), ids), After(*Make({.kv = {.context_length = 256, .batch = 64}}), ids));
}

TEST_P(OverflowTest, SameBitsAtEveryBatchAndType) {
  const std::vector<TokenId> ids = SomeIds(1100);
  for (const kv::KvType type : {kv::KvType::kF32, kv::KvType::kF16, kv::KvType::kQ8_0, kv::KvType::kQ4_0}) {
    std::vector<float> expected;
    for (const int64_t batch : {1, 7, 64, 200}) {
      SessionOptions options = Options(batch);
      options.kv.k_type = options.kv.v_type = type;
      const std::vector<float> logits = After(*Make(options), ids);
      if (expected.empty()) expected = logits;
      EXPECT_EQ(logits, expected) << kv::Name(type) << ", batches of " << batch;
    }
  }
}

TEST_P(OverflowTest, WhatIsGoneMatters) {
  // The same newest tokens behind another beginning: not the same logits, because the sinks differ.
  std::vector<TokenId> ids = SomeIds(1100);
  const std::vector<float> logits = After(*Make(Options()), ids);
  ids[2] ^= 1;
  EXPECT_NE(After(*Make(Options()), ids), logits);
}

TEST_P(OverflowTest, TheSamePromptIsNotReadAgain) {
  const auto session = Make(Options());
  const std::vector<TokenId> ids = SomeIds(600);
  const std::vector<float> logits = After(*session, ids);
  for (const TokenId id : SomeIds(20, 3)) ASSERT_TRUE(session->Advance(id));
  EXPECT_EQ(*session->Read(ids), 600);
  EXPECT_EQ(LogitsOf(*session), logits);
  // What comes next is as if nothing had been in between.
  const auto fresh = Make(Options());
  ASSERT_TRUE(fresh->Read(ids));
  for (const TokenId id : SomeIds(200, 4)) {
    ASSERT_TRUE(session->Advance(id));
    ASSERT_TRUE(fresh->Advance(id));
  }
  EXPECT_EQ(LogitsOf(*session), LogitsOf(*fresh));
}

TEST_P(OverflowTest, AnInterruptedBatchLeavesNoTrace) {
  const auto session = Make(Options()), fresh = Make(Options());
  for (const TokenId id : SomeIds(400)) {
    EXPECT_EQ(session->Advance(id ^ 1, [] { return false; }).error().code, ErrorCode::kInterrupted);
    ASSERT_TRUE(session->Advance(id));
    ASSERT_TRUE(fresh->Advance(id));
  }
  EXPECT_EQ(LogitsOf(*session), LogitsOf(*fresh));
}

// Ten thousand tokens in a window of 4096.
TEST_P(OverflowTest, MemoryIsFlat) {
  const auto session = Make({.kv = {.context_length = 4096, .batch = 64, .overflow = GetParam()}});
  ASSERT_TRUE(session->Read(SomeIds(100)));
  ASSERT_TRUE(session->Advance(7));
  const uint64_t rss = platform::ReadProcessMemory().rss_bytes.value_or(0);
  const size_t allocations = sample::Allocations();
  for (int64_t i = 0; i < 300; ++i) ASSERT_TRUE(session->Advance(static_cast<TokenId>(i % 280 + 3)));
  EXPECT_EQ(sample::Allocations(), allocations) << "300 tokens one by one";
  std::vector<float> last;
  ASSERT_TRUE(session->ReadAll(std::vector<TokenId>(9300, 9), [](size_t, std::span<const float>) {}));
  const size_t before = sample::Allocations();
  for (int64_t i = 0; i < 300; ++i) ASSERT_TRUE(session->Advance(static_cast<TokenId>(i % 280 + 3)));
  EXPECT_EQ(sample::Allocations(), before) << "300 tokens beyond the context";
  EXPECT_GT(session->tokens().size(), 10'000u);
  EXPECT_LT(platform::ReadProcessMemory().rss_bytes.value_or(UINT64_MAX), rss + (1 << 20));
}

INSTANTIATE_TEST_SUITE_P(Kinds, OverflowTest, testing::Values(Overflow::kWindow, Overflow::kHeavy));

class RefusalTest : public TinySessions {
 protected:
  ErrorCode Refused(const whole::ModelParts& parts, const SessionOptions& options) {
    model_ = Open(parts);
    const auto session = Session::Create(engine_->context(), model_->parts(), options);
    if (session) return ErrorCode::kInterrupted;
    EXPECT_FALSE(session.error().message.empty());
    return session.error().code;
  }
};

TEST_F(RefusalTest, WhatCantOverflowSaysSoAtOnce) {
  const auto learned = whole::ScriptedModel({}, "z");
  EXPECT_EQ(Refused(learned, {.kv = {.context_length = 256, .overflow = Overflow::kWindow}}),
            ErrorCode::kUnsupported);
  EXPECT_EQ(Refused(learned, {.kv = {.context_length = 256, .overflow = Overflow::kHeavy}}),
            ErrorCode::kUnsupported);
  EXPECT_EQ(Refused(TinyGemma(64), {.kv = {.context_length = 256, .overflow = Overflow::kHeavy}}),
            ErrorCode::kUnsupported);
  EXPECT_EQ(Refused(TinyLlama(), {.kv = {.context_length = 128, .overflow = Overflow::kHeavy}}),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      Refused(TinyLlama(), {.kv = {.context_length = 128, .overflow = Overflow::kWindow, .sinks = 128}}),
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(Refused(TinyLlama(), {.kv = {.context_length = 256, .overflow = Overflow::kHeavy, .sinks = 65}}),
            ErrorCode::kInvalidArgument);
}

// P38: a window within a window.
TEST_F(RefusalTest, SlidingLayersGoOnWithTheirOwnWindow) {
  model_ = Open(TinyGemma(100));
  const std::vector<TokenId> ids = SomeIds(900);
  std::vector<float> expected;
  for (const int64_t batch : {1, 7, 64}) {
    const std::vector<float> logits =
        After(*Make({.kv = {.context_length = 256, .batch = batch, .overflow = Overflow::kWindow}}), ids);
    if (expected.empty()) expected = logits;
    EXPECT_EQ(logits, expected) << batch;
  }
}

}  // namespace
}  // namespace sluice
