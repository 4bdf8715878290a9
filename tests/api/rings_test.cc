// Models with sliding windows keep the window only, and nobody can tell: the same bits as with a cache that
// keeps everything, however batches are cut and whatever was taken back. And a chat does not read its prompt
// again (P41).
#include "api/sessions.h"

namespace sluice {
namespace {

using session::Session;
using session::SessionOptions;
using whole::TinyGemma;

class RingsTest : public TinySessions {
 protected:
  RingsTest() { model_ = Open(TinyGemma(/*window=*/128, /*context=*/4096)); }

  // With a batch as long as the context no ring is smaller than the whole.
  std::vector<float> Reference(std::span<const TokenId> ids) {
    const int64_t length = static_cast<int64_t>(ids.size());
    return After(*Make({.kv = {.context_length = length, .batch = length}}), ids);
  }
  static constexpr SessionOptions kRing{.kv = {.context_length = 4096, .batch = 32}};
};

TEST_F(RingsTest, TakeWhatTheyShow) {
  const auto cache_bytes = [&](const SessionOptions& options) {
    return Session::Bytes(model_->parts(), options, 1) -
           model::Forward::ActivationBytes(model_->config(), model_->parts().weights(),
                                           {.max_batch = options.kv.batch, .context_length = 4096}, 1);
  };
  const uint64_t everything = cache_bytes({.kv = {.context_length = 4096, .batch = 4096}});
  const uint64_t ring = cache_bytes(kRing);
  EXPECT_LT(ring, everything * 6 / 10) << "one of two layers keeps 128 of 4096 positions";
}

TEST_F(RingsTest, SameBitsAtEveryBatch) {
  const std::vector<TokenId> ids = SomeIds(700);
  const std::vector<float> expected = Reference(ids);
  for (const int64_t batch : {1, 7, 64, 100}) {
    EXPECT_EQ(After(*Make({.kv = {.context_length = 4096, .batch = batch}}), ids), expected) << batch;
  }
}

TEST_F(RingsTest, WhatIsTakenBackAndReadAgain) {
  const auto session = Make(kRing);
  std::vector<TokenId> ids = SomeIds(700);
  ASSERT_TRUE(session->Read(ids));
  for (const int64_t kept : {690, 650, 636, 300, 10}) {
    ids.resize(static_cast<size_t>(kept));
    const std::vector<TokenId> other = SomeIds(60, kept);
    ids.insert(ids.end(), other.begin(), other.end());
    ASSERT_EQ(After(*session, ids), Reference(ids)) << kept;
  }
}

// P41: the next turn, then an edit near the end, then one near the beginning.
TEST_F(RingsTest, AChatDoesNotReadItsPromptAgain) {
  const auto session = Make(kRing);
  std::vector<TokenId> ids = SomeIds(1000);
  ASSERT_EQ(*session->Read(ids), 0);
  // A long answer, which is then replayed in other tokens.
  for (const TokenId id : SomeIds(400, 5)) ASSERT_TRUE(session->Advance(id));
  const std::vector<TokenId> replayed = SomeIds(420, 6);
  ids.insert(ids.end(), replayed.begin() + 1, replayed.end());
  EXPECT_EQ(*session->Read(ids), 1000);
  EXPECT_EQ(LogitsOf(*session), Reference(ids));
  // The header before the answer was replayed in other tokens, too.
  for (const TokenId id : SomeIds(400, 7)) ASSERT_TRUE(session->Advance(id));
  ids[ids.size() - 30] ^= 1;
  EXPECT_EQ(*session->Read(ids), static_cast<int64_t>(ids.size()) - 30);
  EXPECT_EQ(LogitsOf(*session), Reference(ids));
  // An edit at the beginning leaves nothing.
  ids[10] ^= 1;
  EXPECT_EQ(*session->Read(ids), 0);
  EXPECT_EQ(LogitsOf(*session), Reference(ids));
}

TEST_F(RingsTest, AnInterruptedBatchIsTakenBack) {
  const auto session = Make(kRing);
  std::vector<TokenId> ids = SomeIds(700);
  ASSERT_TRUE(session->Read(ids));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(session->Advance(9, [] { return false; }).error().code, ErrorCode::kInterrupted);
  }
  const std::vector<TokenId> more = SomeIds(800);
  int calls = 0;
  const auto stop_in_the_second = [&](int64_t done, int64_t) {
    return done < 700 + kRing.kv.batch || ++calls < 3;
  };
  EXPECT_EQ(session->Read(more, stop_in_the_second).error().code, ErrorCode::kInterrupted);
  EXPECT_GT(session->tokens().size(), 700u);
  EXPECT_EQ(After(*session, more), Reference(more));
}

TEST_F(RingsTest, ACheckpointGivesWayToTheAnswer) {
  const auto session = Make({.kv = {.context_length = 4096, .batch = 32, .checkpoint_positions = 0}});
  std::vector<TokenId> ids = SomeIds(1000);
  ASSERT_TRUE(session->Read(ids));
  for (const TokenId id : SomeIds(400, 5))
    ASSERT_TRUE(session->Advance(id)) << "a checkpoint stood in the way";
  ids.push_back(5);
  EXPECT_EQ(*session->Read(ids), 0) << "nothing to come back to";
  EXPECT_EQ(LogitsOf(*session), Reference(ids));
}

}  // namespace
}  // namespace sluice
