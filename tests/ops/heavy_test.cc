// Overflow against plain models of what is visible: `window` against a mask over a cache that keeps
// everything, bit for bit; `heavy` against a list of kept positions and sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops/attention.h"
#include "parallel/thread_pool.h"

namespace sluice::ops {
namespace {

constexpr int kHeads = 4, kKvHeads = 2, kDim = 8;

std::vector<float> Random(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random() % 2001) / 500.0f - 2.0f;
  return values;
}

// One layer of attention over given queries, keys and values, without rope.
class Layer {
 public:
  Layer(const kv::CacheConfig& config, int64_t length, int threads = 2)
      : length_(length),
        pool_(threads),
        q_(Random(Size(kHeads), 1)),
        k_(Random(Size(kKvHeads), 2)),
        v_(Random(Size(kKvHeads), 3)) {
    context_ = {
        .kernels = &kernels::BestKernels(platform::DetectCpuFeatures()), .pool = &pool_, .ledger = &ledger_};
    auto cache = kv::Cache::Create(config, ledger_);
    SLUICE_CHECK(cache.has_value());
    cache_ = *std::move(cache);
    const AttentionSize size{kHeads / kKvHeads, kDim, kDim, 64};
    const uint64_t bytes = AttentionScratch::Bytes(threads, size) + 64;
    arena_ = *memory::Arena::Create(bytes, memory::Account::kActivations, ledger_);
    scratch_ = std::make_unique<AttentionScratch>(size, arena_.bytes());
    spec_ = {.n_heads = kHeads,
             .n_kv_heads = kKvHeads,
             .k_dim = kDim,
             .v_dim = kDim,
             .view = cache_->view(0),
             .scale = 0.4f};
  }

  kv::Cache& cache() { return *cache_; }
  AttentionSpec& spec() { return spec_; }
  const float* q(int64_t p, int h) const { return q_.data() + (p * kHeads + h) * kDim; }
  const float* k(int64_t p, int h) const { return k_.data() + (p * kKvHeads + h) * kDim; }
  const float* v(int64_t p, int h) const { return v_.data() + (p * kKvHeads + h) * kDim; }

  // Reads positions up to `end` in batches; returns the outputs.
  std::vector<float> Read(kv::Sequence& sequence, int64_t end, int64_t batch) {
    std::vector<float> outputs;
    while (sequence.length() < end) {
      const int64_t first = sequence.length(), n = std::min({batch, end - first, sequence.BatchRoom()});
      std::vector<AttentionRow> rows;
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_TRUE(sequence.Append(1));
        rows.push_back({&sequence, first + i});
        StoreKeyValue(context_, *cache_, 0, rows.back(), k(first + i, 0), v(first + i, 0));
      }
      std::vector<float> out(static_cast<size_t>(n * kHeads * kDim)),
          weights(static_cast<size_t>(n * kHeads * 2));
      spec_.weights = sequence.keeps_heavy() ? weights.data() : nullptr;
      Attention(context_, *scratch_, spec_, *cache_, rows, q(first, 0), out.data());
      if (sequence.keeps_heavy()) AddScores(context_, *scratch_, spec_, *cache_, rows, q(first, 0));
      sequence.Commit();
      outputs.insert(outputs.end(), out.begin(), out.end());
    }
    return outputs;
  }

 private:
  size_t Size(int heads) const { return static_cast<size_t>(length_ * heads * kDim); }

  const int64_t length_;
  memory::Ledger ledger_{uint64_t{1} << 30};
  parallel::ThreadPool pool_;
  runtime::Context context_;
  std::unique_ptr<kv::Cache> cache_;
  memory::Arena arena_;
  std::unique_ptr<AttentionScratch> scratch_;
  AttentionSpec spec_;
  std::vector<float> q_, k_, v_;
};

kv::CacheConfig Config(kv::Overflow overflow, int64_t context, int64_t sinks, int sequences = 1) {
  return {.layers = {{kKvHeads, kDim, kDim}},
          .k_type = kv::KvType::kF32,
          .v_type = kv::KvType::kF32,
          .context_length = context,
          .n_sequences = sequences,
          .overflow = overflow,
          .sinks = sinks,
          .max_batch = 100};
}

TEST(WindowTest, EqualsAMaskOverAnUnboundedCache) {
  constexpr int64_t kLength = 2000;
  for (const int64_t sinks : {0, 4, 70}) {
    Layer everything(Config(kv::Overflow::kStop, kLength, 0), kLength);
    kv::Sequence all(everything.cache());
    everything.spec().view = {.window = 300 - sinks, .sinks = sinks};
    const std::vector<float> expected = everything.Read(all, kLength, 100);
    for (const int64_t batch : {1, 7, 64, 100}) {
      Layer ring(Config(kv::Overflow::kWindow, 300, sinks), kLength, batch == 7 ? 3 : 2);
      kv::Sequence sequence(ring.cache());
      EXPECT_EQ(ring.Read(sequence, kLength, batch), expected) << sinks << " sinks, batches of " << batch;
    }
  }
}

// What is kept, and what comes out, by the definition.
class SlowHeavy {
 public:
  SlowHeavy(const Layer& layer, const kv::HeavyShape& shape) : layer_(layer), shape_(shape) {}

  std::vector<double> Next() {
    const int64_t p = length_;
    if (static_cast<int64_t>(kept_.size()) == shape_.slots) Evict();
    kept_.push_back({p, 0});
    std::vector<double> out(kHeads * kDim);
    for (int h = 0; h < kHeads; ++h) {
      const int g = h / (kHeads / kKvHeads);
      std::vector<double> weights;
      double sum = 0;
      for (const Kept& kept : kept_) {
        double s = 0;
        for (int i = 0; i < kDim; ++i)
          s += static_cast<double>(layer_.q(p, h)[i]) * layer_.k(kept.position, g)[i];
        weights.push_back(std::exp(s * 0.4f));
        sum += weights.back();
      }
      for (size_t j = 0; j < kept_.size(); ++j) {
        kept_[j].score += weights[j] / sum;
        for (int i = 0; i < kDim; ++i)
          out[h * kDim + i] += weights[j] / sum * layer_.v(kept_[j].position, g)[i];
      }
    }
    ++length_;
    return out;
  }
  std::vector<int64_t> Positions() const {
    std::vector<int64_t> positions;
    for (const Kept& kept : kept_) positions.push_back(kept.position);
    return positions;
  }

 private:
  struct Kept {
    int64_t position;
    double score;
  };
  void Evict() {
    std::vector<Kept> candidates;
    for (const Kept& kept : kept_) {
      if (kept.position >= shape_.sinks && kept.position < length_ - shape_.recent())
        candidates.push_back(kept);
    }
    std::ranges::stable_sort(candidates, {}, &Kept::score);
    candidates.resize(static_cast<size_t>(shape_.evicted()));
    std::erase_if(kept_, [&](const Kept& kept) {
      return std::ranges::find(candidates, kept.position, &Kept::position) != candidates.end();
    });
  }

  const Layer& layer_;
  const kv::HeavyShape shape_;
  std::vector<Kept> kept_;
  int64_t length_ = 0;
};

std::vector<int64_t> Positions(const kv::Sequence& sequence) {
  const int64_t slots = sequence.slot(sequence.length());
  std::vector<int64_t> positions;
  for (const int32_t position : sequence.set().positions(0).first(static_cast<size_t>(slots)))
    positions.push_back(position);
  return positions;
}

TEST(HeavyTest, KeepsWhatTheDefinitionKeeps) {
  constexpr int64_t kLength = 1500;
  Layer layer(Config(kv::Overflow::kHeavy, 256, 4), kLength);
  kv::Sequence sequence(layer.cache());
  SlowHeavy slow(layer, layer.cache().heavy());
  for (int64_t p = 0; p < kLength; ++p) {
    const std::vector<float> out = layer.Read(sequence, p + 1, 1);
    const std::vector<double> expected = slow.Next();
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-4) << "position " << p;
    ASSERT_EQ(Positions(sequence), slow.Positions()) << "position " << p;
  }
  EXPECT_GT(Positions(sequence).front() + Positions(sequence)[200], 0);
}

TEST(HeavyTest, NothingDependsOnBatchesOrWorkers) {
  constexpr int64_t kLength = 1500;
  std::vector<float> expected;
  for (const int64_t batch : {1, 7, 64, 100}) {
    Layer layer(Config(kv::Overflow::kHeavy, 512, 4), kLength, batch == 7 ? 1 : 3);
    kv::Sequence sequence(layer.cache());
    const std::vector<float> out = layer.Read(sequence, kLength, batch);
    if (expected.empty()) expected = out;
    EXPECT_EQ(out, expected) << batch;
  }
}

// P40: shared pages are copied before anything moves in them.
TEST(HeavyTest, ForksDoNotSeeEachOther) {
  constexpr int64_t kLength = 1200;
  Layer alone(Config(kv::Overflow::kHeavy, 256, 4), kLength);
  kv::Sequence only(alone.cache());
  const std::vector<float> expected = alone.Read(only, kLength, 50);
  for (const int64_t at : {100, 256, 400, 700}) {
    Layer layer(Config(kv::Overflow::kHeavy, 256, 4, /*sequences=*/3), kLength);
    kv::Sequence first(layer.cache());
    std::vector<float> out = layer.Read(first, at, 50);
    kv::Sequence second = first.Fork();
    const kv::Sequence kept = first.Fork();
    const std::vector<float> more = layer.Read(first, kLength, 64), other = layer.Read(second, kLength, 13);
    EXPECT_EQ(more, other);
    first.Restore(kept);
    EXPECT_EQ(layer.Read(first, kLength, 100), more);
    out.insert(out.end(), more.begin(), more.end());
    EXPECT_EQ(out, expected) << "forked at " << at;
  }
}

// Positions of keys and queries by laps: no distance beyond the context, true ones in a query's own lap and
// the one before, and what was stored never changes.
TEST(HeavyTest, FramesKeepTrueDistances) {
  const kv::HeavyShape shape{.layers = 1, .slots = 512, .sinks = 4};
  for (int64_t p = 0; p < 5000; ++p) {
    ASSERT_LT(shape.FramePosition(p), 512);
    if (p < 512) {
      ASSERT_EQ(shape.FramePosition(p), p);
    }
    const int64_t own = p / shape.lap() * shape.lap();
    for (const int64_t key : {own, p}) ASSERT_EQ(shape.FramePosition(p) - shape.FramePosition(key), p - key);
  }
}

}  // namespace
}  // namespace sluice::ops
