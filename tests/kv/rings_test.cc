// Rings against a plain model of what must still be there: for every position that a query may look at, the
// mark that was written when it was read. Forks, checkpoints and random cuts in between (P40).
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kv/sequence.h"

namespace sluice::kv {
namespace {

struct Case {
  int64_t window;  // of layer 0
  int64_t batch;
  Overflow overflow;
  int64_t sinks;
};

class RingsTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr int kSequences = 3;
  static constexpr int64_t kContext = 1000;

  void SetUp() override {
    const Case& c = GetParam();
    auto cache = Cache::Create({.layers = {{1, 4, 4, c.window}, {1, 4, 4}},
                                .k_type = KvType::kF32,
                                .v_type = KvType::kF32,
                                .context_length = kContext,
                                .n_sequences = kSequences,
                                .overflow = c.overflow,
                                .sinks = c.sinks,
                                .max_batch = c.batch},
                               ledger_);
    ASSERT_TRUE(cache) << cache.error().message;
    cache_ = *std::move(cache);
  }

  float* Slot(const Sequence& sequence, int layer, int64_t position) {
    return reinterpret_cast<float*>(cache_->Keys(layer, sequence.page(layer, position / kPagePositions), 0) +
                                    static_cast<size_t>(position % kPagePositions) *
                                        cache_->k_row_bytes(layer));
  }
  // A sequence and the marks that were written to it.
  struct Marked {
    Sequence sequence;
    std::vector<float> marks;
    bool grown = false;  // since something was taken back
  };
  void Append(Marked& marked, int64_t n) {
    const int64_t before = marked.sequence.length();
    marked.grown = n == GetParam().batch;
    for (int64_t i = 0; i < n; ++i) ASSERT_TRUE(marked.sequence.Append(1));
    for (int64_t p = before; p < before + n; ++p) {
      marked.marks.push_back(next_mark_ += 1);
      for (const int layer : {0, 1}) *Slot(marked.sequence, layer, p) = next_mark_;
    }
    for (int64_t p = before; p < before + n; ++p) Check(marked, p);  // every row of the batch looks back
  }
  void Check(const Marked& marked, int64_t query) {
    for (const int layer : {0, 1}) {
      const Cache::View view = cache_->view(layer);
      const int64_t first = view.window > 0 ? std::max<int64_t>(0, query - view.window + 1) : 0;
      for (int64_t p = 0; p <= query; ++p) {
        if (p >= view.sinks && p < first) continue;
        ASSERT_EQ(*Slot(marked.sequence, layer, p), marked.marks[static_cast<size_t>(p)])
            << "layer " << layer << " query " << query << " position " << p;
      }
    }
  }

  memory::Ledger ledger_{uint64_t{1} << 30};
  std::unique_ptr<Cache> cache_;
  float next_mark_ = 0;
};

TEST_P(RingsTest, HoldWhatIsSeenThroughForksAndCuts) {
  std::mt19937 random(7);
  std::vector<Marked> all;
  for (int i = 0; i < kSequences; ++i) all.push_back({Sequence(*cache_), {}});
  for (int step = 0; step < 400; ++step) {
    Marked& marked = all[random() % all.size()];
    const int64_t length = marked.sequence.length();
    const int action = static_cast<int>(random() % 8);
    if (action == 0) {
      Marked& from = all[random() % all.size()];
      if (&from == &marked) continue;
      marked = {from.sequence.Fork(), from.marks};
    } else if (action == 1 && length > 0) {
      // The last batch can always be taken back.
      int64_t to = std::max<int64_t>(0, length - static_cast<int64_t>(random() % (GetParam().batch + 1)));
      ASSERT_TRUE(marked.sequence.CanTruncate(to) || !marked.grown);
      if (random() % 4 == 0) to = static_cast<int64_t>(random() % static_cast<uint64_t>(length));
      if (!marked.sequence.CanTruncate(to)) to = 0;
      marked.sequence.Truncate(to);
      marked.marks.resize(static_cast<size_t>(to));
      marked.grown = false;
    } else {
      int64_t n = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(GetParam().batch));
      if (GetParam().overflow == Overflow::kStop) n = std::min(n, kContext - length);
      Append(marked, n);
    }
    if (HasFatalFailure()) return;
  }
  all.clear();
  for (const Pool pool : {Pool::kFull, Pool::kSliding})
    EXPECT_EQ(cache_->pool(pool).free(), cache_->pool(pool).count());
}

TEST_P(RingsTest, ACheckpointIsComeBackTo) {
  Marked marked{Sequence(*cache_), {}};
  for (int i = 0; i < 12; ++i) Append(marked, std::min<int64_t>(GetParam().batch, 40));
  Marked checkpoint{marked.sequence.Checkpoint(), marked.marks};
  const int64_t length = marked.sequence.length();
  for (int i = 0; i < 10; ++i) Append(marked, std::min<int64_t>(GetParam().batch, 40));
  for (const int64_t back : {0, 1, 64}) {
    const int64_t to = std::max<int64_t>(0, length - back);
    marked.sequence.Restore(checkpoint.sequence);
    ASSERT_TRUE(marked.sequence.CanTruncate(to)) << back;
    marked.sequence.Truncate(to);
    marked.marks.assign(checkpoint.marks.begin(), checkpoint.marks.begin() + to);
    Append(marked, 1);
    Check(checkpoint, length - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RingsTest,
                         testing::Values(Case{100, 1, Overflow::kStop, 0}, Case{64, 50, Overflow::kStop, 0},
                                         Case{130, 64, Overflow::kWindow, 4},
                                         Case{0, 30, Overflow::kWindow, 0}, Case{1, 7, Overflow::kWindow, 70},
                                         Case{990, 100, Overflow::kWindow, 64}));

TEST(RingsBytesTest, AreTheFormula) {
  const CacheConfig config{
      .layers = {{2, 8, 8, 200}, {1, 8, 8}}, .context_length = 4096, .n_sequences = 2, .max_batch = 64};
  const uint64_t page = 64 * 8 * 2 * 2;  // of one head: keys and values in f16
  const uint64_t ring = (200 + 64 + 63) / 64 + 1;
  EXPECT_EQ(CacheBytes(config), 2 * (4096 / 64 * page + ring * 2 * page));
  CacheConfig windowed = config;
  windowed.overflow = Overflow::kWindow;
  windowed.sinks = 4;
  EXPECT_EQ(CacheBytes(windowed), 2 * ((1 + (4092 + 64 + 63) / 64 + 1) * page + ring * 2 * page));
  memory::Ledger ledger(uint64_t{1} << 30);
  const auto cache = Cache::Create(windowed, ledger);
  ASSERT_TRUE(cache);
  EXPECT_EQ(ledger.Snapshot().used(memory::Account::kKv), (CacheBytes(windowed) + 4095) / 4096 * 4096);
}

}  // namespace
}  // namespace sluice::kv
