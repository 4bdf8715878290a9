// Pages: sharing, copying before a write, giving back, and the refusals when something is full.
#include "kv/sequence.h"

#include <gtest/gtest.h>

#include <cstring>

namespace sluice::kv {
namespace {

class CacheTest : public testing::Test {
 protected:
  void SetUp() override { Make(/*context=*/256, /*sequences=*/2); }

  void Make(int64_t context, int sequences) {
    auto cache = Cache::Create(
        {.layers = {{.n_kv_heads = 2, .k_dim = 16, .v_dim = 8}, {.n_kv_heads = 1, .k_dim = 4, .v_dim = 4}},
         .k_type = KvType::kF16,
         .v_type = KvType::kF32,
         .context_length = context,
         .n_sequences = sequences},
        ledger_);
    ASSERT_TRUE(cache) << cache.error().message;
    cache_ = *std::move(cache);
  }

  // Marks a position of a sequence, in the last layer's values, so that a test can see whose memory it is.
  void Mark(const Sequence& sequence, int64_t position, float mark) {
    std::memcpy(Slot(sequence, position), &mark, sizeof(mark));
  }
  float MarkOf(const Sequence& sequence, int64_t position) {
    float mark;
    std::memcpy(&mark, Slot(sequence, position), sizeof(mark));
    return mark;
  }

  memory::Ledger ledger_{uint64_t{1} << 30};
  std::unique_ptr<Cache> cache_;

 private:
  std::byte* Slot(const Sequence& sequence, int64_t position) {
    return cache_->Values(1, sequence.page(1, position / kPagePositions), 0) +
           static_cast<size_t>(position % kPagePositions) * cache_->v_row_bytes(1);
  }
};

TEST_F(CacheTest, BytesAreChargedOnceAndPlannedExactly) {
  // Each page: layer 0 has 2·64·16 f16 keys and 2·64·8 f32 values; layer 1 64·4 of each.
  const uint64_t page = 2 * 64 * 16 * 2 + 2 * 64 * 8 * 4 + 64 * 4 * 2 + 64 * 4 * 4;
  EXPECT_EQ(CacheBytes(cache_->config()), page * 4 * 2);
  EXPECT_EQ(cache_->pool(Pool::kFull).count(), 8);
}

// Rows of blocks: a head that is no multiple of 32 fills its last block.
TEST_F(CacheTest, BytesOfQuantisedTypes) {
  const CacheConfig config{.layers = {{.n_kv_heads = 2, .k_dim = 128, .v_dim = 80}},
                           .k_type = KvType::kQ8_0,
                           .v_type = KvType::kQ4_0,
                           .context_length = 64};
  EXPECT_EQ(CacheBytes(config), 2 * 64 * (4 * 34 + 3 * 18));
}

TEST_F(CacheTest, SlotsDoNotOverlap) {
  Sequence a(*cache_);
  ASSERT_TRUE(a.Append(256));
  for (int64_t p = 0; p < 256; ++p) Mark(a, p, static_cast<float>(p));
  for (int64_t p = 0; p < 256; ++p) EXPECT_EQ(MarkOf(a, p), static_cast<float>(p));
}

TEST_F(CacheTest, ForkSharesUntilOneWrites) {
  Sequence a(*cache_);
  ASSERT_TRUE(a.Append(100));
  for (int64_t p = 0; p < 100; ++p) Mark(a, p, static_cast<float>(p));
  EXPECT_EQ(cache_->pool(Pool::kFull).free(), 6);

  Sequence b = a.Fork();
  EXPECT_EQ(cache_->pool(Pool::kFull).free(), 6);  // nothing copied yet
  ASSERT_TRUE(b.Append(1));                        // the half-filled page is
  EXPECT_EQ(cache_->pool(Pool::kFull).free(), 5);
  EXPECT_EQ(a.page(0, 0), b.page(0, 0));
  EXPECT_NE(a.page(0, 1), b.page(0, 1));
  Mark(b, 100, -1.0f);
  ASSERT_TRUE(a.Append(1));  // alone now: no copy
  EXPECT_EQ(cache_->pool(Pool::kFull).free(), 5);
  Mark(a, 100, -2.0f);
  EXPECT_EQ(MarkOf(b, 100), -1.0f);
  EXPECT_EQ(MarkOf(a, 100), -2.0f);
  EXPECT_EQ(MarkOf(b, 99), 99.0f);
}

TEST_F(CacheTest, TruncateInsideASharedPageThenAppendCopies) {
  Sequence a(*cache_);
  ASSERT_TRUE(a.Append(128));
  for (int64_t p = 0; p < 128; ++p) Mark(a, p, static_cast<float>(p));
  Sequence b = a.Fork();
  b.Truncate(70);
  ASSERT_TRUE(b.Append(1));
  Mark(b, 70, -1.0f);
  EXPECT_EQ(MarkOf(a, 70), 70.0f);
  EXPECT_EQ(MarkOf(b, 69), 69.0f);
}

TEST_F(CacheTest, CheckpointRestoresThePast) {
  Sequence a(*cache_);
  ASSERT_TRUE(a.Append(70));
  for (int64_t p = 0; p < 70; ++p) Mark(a, p, static_cast<float>(p));
  const Sequence checkpoint = a.Checkpoint();
  a.Truncate(10);
  ASSERT_TRUE(a.Append(20));
  for (int64_t p = 10; p < 30; ++p) Mark(a, p, -1.0f);
  a.Restore(checkpoint);
  ASSERT_EQ(a.length(), 70);
  for (int64_t p = 0; p < 70; ++p) EXPECT_EQ(MarkOf(a, p), static_cast<float>(p));
}

TEST_F(CacheTest, EverythingComesBack) {
  {
    Sequence a(*cache_);
    ASSERT_TRUE(a.Append(200));
    Sequence b = a.Fork();
    Sequence c = std::move(b);
    ASSERT_TRUE(c.Append(1));
  }
  EXPECT_EQ(cache_->pool(Pool::kFull).free(), cache_->pool(Pool::kFull).count());
}

TEST_F(CacheTest, RefusesMoreThanTheContextWithBothNumbers) {
  Sequence a(*cache_);
  ASSERT_TRUE(a.Append(250));
  const Status full = a.Append(7);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kDoesNotFit);
  EXPECT_NE(full.error().message.find("250"), std::string::npos) << full.error().message;
  EXPECT_NE(full.error().message.find("256"), std::string::npos) << full.error().message;
  EXPECT_EQ(a.length(), 250);
  EXPECT_TRUE(a.Append(6));
}

TEST_F(CacheTest, RefusesWhenThePoolIsEmptyAndChangesNothing) {
  Sequence a(*cache_), b(*cache_), c(*cache_);
  ASSERT_TRUE(a.Append(256));
  ASSERT_TRUE(b.Append(193));
  EXPECT_FALSE(c.Append(1));
  EXPECT_EQ(c.length(), 0);
  b.Clear();
  EXPECT_TRUE(c.Append(256));
}

TEST_F(CacheTest, RefusesACacheThatTheLedgerHasNoRoomFor) {
  memory::Ledger small(1 << 20);
  const auto cache = Cache::Create(
      {.layers = {{.n_kv_heads = 8, .k_dim = 128, .v_dim = 128}}, .context_length = 1 << 20}, small);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, ErrorCode::kDoesNotFit);
}

}  // namespace
}  // namespace sluice::kv
