// Sessions and sequences over a model: whatever way a past came about, what follows is the same bits.
#include "session/session.h"

#include <cmath>

#include "api/fixture.h"

namespace sluice {
namespace {

using whole::TinyLlama;

std::vector<TokenId> SomeIds(int64_t count) {
  std::vector<TokenId> ids{1};
  for (int64_t i = 1; i < count; ++i) ids.push_back(static_cast<TokenId>((i * 37) % 280 + 3));
  return ids;
}

class SessionTest : public ApiTest {
 protected:
  std::unique_ptr<session::Session> MakeSession(session::SessionOptions options = {
                                                    .kv = {.context_length = 256}}) {
    if (model_ == nullptr) model_ = Open(TinyLlama(256));
    auto session = session::Session::Create(engine_->context(), model_->parts(), options);
    EXPECT_TRUE(session) << session.error().message;
    return *std::move(session);
  }
  // The logits after `ids`, read by a new session.
  std::vector<float> Fresh(std::span<const TokenId> ids,
                           session::SessionOptions options = {.kv = {.context_length = 256}}) {
    return After(*MakeSession(options), ids);
  }
  static std::vector<float> After(session::Session& session, std::span<const TokenId> ids) {
    const auto read = session.Read(ids);
    EXPECT_TRUE(read) << read.error().message;
    return {session.logits().begin(), session.logits().end()};
  }

  std::shared_ptr<const Model> model_;
};

TEST_F(SessionTest, ReadKeepsACommonBeginning) {
  const auto session = MakeSession();
  std::vector<TokenId> ids = SomeIds(150);
  ASSERT_EQ(*session->Read(ids), 0);
  ids.resize(100);
  ids.insert(ids.end(), {7, 8, 9});
  EXPECT_EQ(*session->Read(ids), 100);
  EXPECT_EQ(std::vector<float>(session->logits().begin(), session->logits().end()), Fresh(ids));
  EXPECT_EQ(*session->Read(ids), 103) << "nothing new: nothing is read";
  EXPECT_EQ(After(*session, std::span(ids).first(64)), Fresh(std::span(ids).first(64)));
}

TEST_F(SessionTest, AdvanceEqualsRead) {
  const std::vector<TokenId> ids = SomeIds(80);
  const auto session = MakeSession();
  ASSERT_TRUE(session->Read(std::span(ids).first(1)));
  for (size_t i = 1; i < ids.size(); ++i) ASSERT_TRUE(session->Advance(ids[i]));
  EXPECT_EQ(std::vector<float>(session->logits().begin(), session->logits().end()), Fresh(ids));
}

TEST_F(SessionTest, TruncateAndReadAgain) {
  const std::vector<TokenId> ids = SomeIds(130);
  const auto session = MakeSession();
  const std::vector<float> first = After(*session, ids);
  for (const int64_t length : {129, 128, 65, 64, 63, 1, 0}) {
    session->Truncate(length);
    EXPECT_TRUE(session->logits().empty());
    EXPECT_EQ(After(*session, ids), first) << length;
  }
}

TEST_F(SessionTest, ReadAllGivesTheSameAtAnyBatch) {
  const std::vector<TokenId> ids = SomeIds(70);
  std::vector<float> expected;
  for (const int64_t batch : {1, 7, 64, 256}) {
    const auto session = MakeSession({.kv = {.context_length = 256, .batch = batch}});
    std::vector<float> all;
    size_t next = 0;
    ASSERT_TRUE(session->ReadAll(ids, [&](size_t index, std::span<const float> logits) {
      EXPECT_EQ(index, next++);
      all.insert(all.end(), logits.begin(), logits.end());
    }));
    EXPECT_EQ(next, ids.size());
    if (expected.empty()) expected = all;
    EXPECT_EQ(all, expected) << batch;
    const auto last = std::span(all).last(all.size() / ids.size());
    EXPECT_TRUE(std::ranges::equal(last, session->logits()));
    EXPECT_TRUE(std::ranges::equal(last, Fresh(ids)));
  }
}

TEST_F(SessionTest, ErrorsLeaveThePastAsItWas) {
  const auto session = MakeSession({.kv = {.context_length = 64}});
  const std::vector<TokenId> ids = SomeIds(64);
  const std::vector<float> before = After(*session, ids);
  EXPECT_EQ(session->Advance(5).error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(session->Read(SomeIds(65)).error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(session->tokens().size(), 64u);
  session->Truncate(10);
  for (const TokenId outside : {-1, 1'000'000})
    EXPECT_EQ(session->Advance(outside).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(session->Advance(5, [] { return false; }).error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(session->tokens().size(), 10u);
  EXPECT_EQ(After(*session, ids), before);
}

// Keys and values of every pair of types: runs, comes back to the same logits, and stays near f32.
TEST_F(SessionTest, EveryPairOfCacheTypes) {
  model_ = Open(TinyLlama());
  const std::vector<TokenId> ids = SomeIds(40);
  const std::vector<float> exact = After(
      *MakeSession({.kv = {.context_length = 64, .k_type = kv::KvType::kF32, .v_type = kv::KvType::kF32}}),
      ids);
  for (size_t k = 0; k < kernels::kKvTypeCount; ++k) {
    for (size_t v = 0; v < kernels::kKvTypeCount; ++v) {
      const auto k_type = static_cast<kv::KvType>(k), v_type = static_cast<kv::KvType>(v);
      SCOPED_TRACE(fmt::format("keys {}, values {}", kv::Name(k_type), kv::Name(v_type)));
      const auto session = MakeSession({.kv = {.context_length = 64, .k_type = k_type, .v_type = v_type}});
      const std::vector<float> logits = After(*session, ids);
      session->Truncate(7);
      EXPECT_EQ(After(*session, ids), logits);
      double difference = 0, size = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        difference += std::pow(logits[i] - exact[i], 2);
        size += std::pow(exact[i], 2);
      }
      EXPECT_LT(difference, 0.01 * size);
    }
  }
}

// Several sequences in one cache, as a server will have them.
class SequenceTest : public SessionTest {
 protected:
  SequenceTest() {
    model_ = Open(TinyLlama(256));
    const model::Config& config = model_->config();
    cache_ = *kv::Cache::Create(
        {.layers = model::CacheLayers(config), .context_length = 256, .n_sequences = 4, .max_batch = 256},
        *engine_->context().ledger);
    forward_ = *model::Forward::Create(engine_->context(), config, model_->parts().weights(),
                                       model_->parts().store(), {.max_batch = 256, .context_length = 256});
  }
  // Reads more into a sequence; returns the last logits.
  std::vector<float> Append(kv::Sequence& sequence, std::span<const TokenId> ids) {
    std::vector<model::BatchRow> rows;
    for (const TokenId id : ids) rows.push_back({id, &sequence, false});
    rows.back().wants_logits = true;
    std::vector<float> last;
    const Status ran = forward_->Run(rows, *cache_, [&](size_t, std::span<const float> logits) {
      last.assign(logits.begin(), logits.end());
    });
    EXPECT_TRUE(ran) << ran.error().message;
    return last;
  }

  std::unique_ptr<kv::Cache> cache_;
  std::unique_ptr<model::Forward> forward_;
};

TEST_F(SequenceTest, ForksAndCheckpointsGiveTheBitsOfAFreshRun) {
  const std::vector<TokenId> past = SomeIds(100), one{5, 6, 7}, other{50, 60};
  const auto joined = [&](const std::vector<TokenId>& more) {
    std::vector<TokenId> ids = past;
    ids.insert(ids.end(), more.begin(), more.end());
    return Fresh(ids);
  };
  kv::Sequence sequence(*cache_);
  Append(sequence, past);
  kv::Sequence fork = sequence.Fork();
  const kv::Sequence checkpoint = sequence.Checkpoint();
  EXPECT_EQ(Append(sequence, one), joined(one));
  EXPECT_EQ(Append(fork, other), joined(other));
  sequence.Restore(checkpoint);
  EXPECT_EQ(sequence.length(), 100);
  EXPECT_EQ(Append(sequence, other), joined(other));
  fork.Truncate(100);
  EXPECT_EQ(Append(fork, one), joined(one));
}

TEST_F(SequenceTest, AnAbandonedBatchOfManySequencesLeavesAll) {
  kv::Sequence a(*cache_), b(*cache_);
  Append(a, SomeIds(10));
  Append(b, SomeIds(70));
  const std::vector<model::BatchRow> rows{{5, &a, true}, {6, &b, true}, {7, &a, true}};
  int calls = 0;
  const Status ran = forward_->Run(
      rows, *cache_, [](size_t, std::span<const float>) { FAIL(); }, [&] { return ++calls < 3; });
  EXPECT_EQ(ran.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(a.length(), 10);
  EXPECT_EQ(b.length(), 70);
  std::vector<TokenId> ids = SomeIds(70);
  ids.push_back(6);
  EXPECT_EQ(Append(b, std::vector<TokenId>{6}), Fresh(ids));
}

}  // namespace
}  // namespace sluice
