// Attention against the plain formula in double, and its independence from everything but positions.
#include "ops/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>

#include "ops/rotation.h"
#include "parallel/thread_pool.h"

namespace sluice::ops {
namespace {

struct Shape {
  int n_heads, n_kv_heads, k_dim, v_dim;
  int64_t length, window;
  float softcap;
  bool alibi;
};

class AttentionTest : public testing::TestWithParam<Shape> {};

std::vector<float> Random(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  return values;
}

TEST_P(AttentionTest, EqualsTheFormulaAndDoesNotDependOnWorkers) {
  const Shape s = GetParam();
  memory::Ledger ledger(uint64_t{1} << 30);
  const auto cache = kv::Cache::Create({.layers = {{s.n_kv_heads, s.k_dim, s.v_dim}},
                                        .k_type = kv::KvType::kF32,
                                        .v_type = kv::KvType::kF32,
                                        .context_length = s.length},
                                       ledger);
  ASSERT_TRUE(cache);
  kv::Sequence sequence(**cache);
  ASSERT_TRUE(sequence.Append(s.length));
  const std::vector<float> k = Random(static_cast<size_t>(s.length * s.n_kv_heads * s.k_dim), 1);
  const std::vector<float> v = Random(static_cast<size_t>(s.length * s.n_kv_heads * s.v_dim), 2);
  std::vector<float> slopes;
  for (int h = 0; h < s.n_heads; ++h) slopes.push_back(0.01f * static_cast<float>(h + 1));

  std::vector<AttentionRow> rows;
  for (const int64_t position : {int64_t{0}, s.length / 2, s.length - 1})
    rows.push_back({&sequence, position});
  const std::vector<float> q = Random(rows.size() * static_cast<size_t>(s.n_heads * s.k_dim), 3);
  const size_t out_width = static_cast<size_t>(s.n_heads * s.v_dim);
  const float scale = 1.0f / std::sqrt(static_cast<float>(s.k_dim));

  const AttentionSize size{s.n_heads / s.n_kv_heads, s.k_dim, s.v_dim, 3};
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    parallel::ThreadPool pool(threads);
    runtime::Context context{
        .kernels = &kernels::BestKernels(platform::DetectCpuFeatures()), .pool = &pool, .ledger = &ledger};
    auto arena = memory::Arena::Create(AttentionScratch::Bytes(threads, size) + 64,
                                       memory::Account::kActivations, ledger);
    ASSERT_TRUE(arena);
    const AttentionScratch scratch(size, arena->bytes());
    for (int64_t p = 0; p < s.length; ++p)
      StoreKeyValue(context, **cache, 0, {&sequence, p}, k.data() + p * s.n_kv_heads * s.k_dim,
                    v.data() + p * s.n_kv_heads * s.v_dim);
    const AttentionSpec spec{.layer = 0,
                             .n_heads = s.n_heads,
                             .n_kv_heads = s.n_kv_heads,
                             .k_dim = s.k_dim,
                             .v_dim = s.v_dim,
                             .view = {.window = s.window},
                             .scale = scale,
                             .softcap = s.softcap,
                             .alibi_slopes = s.alibi ? slopes.data() : nullptr};
    std::vector<float> out(rows.size() * out_width);
    Attention(context, scratch, spec, **cache, rows, q.data(), out.data());
    if (first.empty()) first = out;
    EXPECT_EQ(out, first) << threads << " workers";
  }

  for (size_t r = 0; r < rows.size(); ++r) {
    for (int h = 0; h < s.n_heads; ++h) {
      const int g = h / (s.n_heads / s.n_kv_heads);
      const int64_t position = rows[r].position;
      const int64_t from = s.window > 0 ? std::max<int64_t>(0, position - s.window + 1) : 0;
      std::vector<double> output(static_cast<size_t>(s.v_dim));
      double sum = 0;
      for (int64_t p = from; p <= position; ++p) {
        double score = 0;
        for (int i = 0; i < s.k_dim; ++i)
          score += static_cast<double>(q[(r * s.n_heads + h) * s.k_dim + i]) *
                   k[(p * s.n_kv_heads + g) * s.k_dim + i];
        score *= scale;
        if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
        if (s.alibi) score += static_cast<double>(slopes[h]) * static_cast<double>(p - position);
        const double weight = std::exp(score);
        sum += weight;
        for (int i = 0; i < s.v_dim; ++i) output[i] += weight * v[(p * s.n_kv_heads + g) * s.v_dim + i];
      }
      for (int i = 0; i < s.v_dim; ++i)
        EXPECT_NEAR(first[r * out_width + h * s.v_dim + i], output[i] / sum, 3e-6)
            << "row " << r << " head " << h;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(Shape{4, 4, 16, 16, 70, 0, 0, false}, Shape{8, 2, 64, 64, 1300, 0, 0, false},
                    Shape{6, 1, 40, 24, 600, 0, 5.0f, false}, Shape{4, 2, 100, 100, 1100, 130, 0, false},
                    Shape{3, 3, 16, 16, 520, 0, 0, true}, Shape{16, 2, 128, 128, 515, 64, 0, false},
                    Shape{14, 1, 64, 64, 1100, 0, 0, false}));

// Field case P39: every pair of KV types with head sizes that are and are not multiples of a block, keys and
// values apart. What comes out stays near what f32 gives, heads do not mix, and workers change nothing.
class QuantisedTest : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  static constexpr int kHeads = 4, kKvHeads = 2;
  static constexpr int64_t kLength = 150;

  // Attention of the last position over a cache of these types.
  std::vector<float> Attend(kv::KvType k_type, kv::KvType v_type, bool rotate, int threads) {
    const auto [k_dim, v_dim] = GetParam();
    memory::Ledger ledger(uint64_t{1} << 30);
    const auto cache = kv::Cache::Create({.layers = {{kKvHeads, k_dim, v_dim}},
                                          .k_type = k_type,
                                          .v_type = v_type,
                                          .rotate = rotate,
                                          .context_length = kLength},
                                         ledger);
    kv::Sequence sequence(**cache);
    EXPECT_TRUE(sequence.Append(kLength));
    parallel::ThreadPool pool(threads);
    const runtime::Context context{
        .kernels = &kernels::BestKernels(platform::DetectCpuFeatures()), .pool = &pool, .ledger = &ledger};
    const AttentionSize size{kHeads / kKvHeads, k_dim, v_dim};
    auto arena = memory::Arena::Create(AttentionScratch::Bytes(threads, size) + 64,
                                       memory::Account::kActivations, ledger);
    const AttentionScratch scratch(size, arena->bytes());
    std::vector<float> k = Random(static_cast<size_t>(kLength * kKvHeads * k_dim), 1);
    std::vector<float> v = Random(static_cast<size_t>(kLength * kKvHeads * v_dim), 2);
    for (size_t i = 0; i < v.size(); ++i)
      v[i] += i / static_cast<size_t>(v_dim) % kKvHeads == 0 ? -3.0f : 3.0f;
    for (int64_t p = 0; p < kLength; ++p)
      StoreKeyValue(context, **cache, 0, {&sequence, p}, k.data() + p * kKvHeads * k_dim,
                    v.data() + p * kKvHeads * v_dim);
    const std::vector<float> q = Random(static_cast<size_t>(kHeads * k_dim), 3);
    std::vector<float> out(static_cast<size_t>(kHeads * v_dim));
    const AttentionRow row{&sequence, kLength - 1};
    Attention(context, scratch,
              {.layer = 0,
               .n_heads = kHeads,
               .n_kv_heads = kKvHeads,
               .k_dim = k_dim,
               .v_dim = v_dim,
               .scale = 0.2f},
              **cache, {&row, 1}, q.data(), out.data());
    return out;
  }
};

TEST_P(QuantisedTest, EveryPairOfTypesStaysNearF32) {
  const std::vector<float> exact = Attend(kv::KvType::kF32, kv::KvType::kF32, true, 1);
  for (size_t k = 0; k < kernels::kKvTypeCount; ++k) {
    for (size_t v = 0; v < kernels::kKvTypeCount; ++v) {
      for (const bool rotate : {false, true}) {
        const auto k_type = static_cast<kv::KvType>(k), v_type = static_cast<kv::KvType>(v);
        SCOPED_TRACE(
            fmt::format("keys {}, values {}, rotate {}", kv::Name(k_type), kv::Name(v_type), rotate));
        const std::vector<float> out = Attend(k_type, v_type, rotate, 1);
        for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], exact[i], 0.2) << "element " << i;
        EXPECT_EQ(Attend(k_type, v_type, rotate, 3), out);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadSizes, QuantisedTest,
                         testing::Values(std::pair{40, 40}, std::pair{64, 64}, std::pair{80, 80},
                                         std::pair{96, 96}, std::pair{100, 100}, std::pair{112, 112},
                                         std::pair{192, 128}, std::pair{256, 256}, std::pair{80, 100}));

// Rows of a prompt together give each the bits that it has alone.
class PromptTest : public testing::TestWithParam<int> {  // query heads of a KV head
 protected:
  static constexpr int kKvHeads = 2;
  static constexpr int64_t kLength = 560;  // the last 64 rows see two chunks or, some of them, one
  static constexpr kv::Cache::View kViews[] = {
      {}, {.window = 100}, {.window = 30}, {.window = 500, .sinks = 5}};

  struct Layer {
    kv::KvType k_type, v_type;
    int dim;
    kv::Cache::View view;
  };

  // Counts what is shared.
  static inline std::atomic<int64_t> shared_tiles = 0;
  static kernels::Kernels CountingKernels() {
    kernels::Kernels kernels = Best();
    kernels.attention_rows = [](const kernels::AttentionRowsArgs& args) {
      ++shared_tiles;
      Best().attention_rows(args);
    };
    return kernels;
  }
  static const kernels::Kernels& Best() { return kernels::BestKernels(platform::DetectCpuFeatures()); }

  void ExpectSameAsAlone(const Layer& layer) {
    const int heads = GetParam() * kKvHeads;
    memory::Ledger ledger(uint64_t{1} << 30);
    const auto cache = kv::Cache::Create({.layers = {{kKvHeads, layer.dim, layer.dim}},
                                          .k_type = layer.k_type,
                                          .v_type = layer.v_type,
                                          .rotate = layer.k_type == kv::KvType::kQ4_0,
                                          .context_length = kLength,
                                          .n_sequences = 2},
                                         ledger);
    ASSERT_TRUE(cache);
    kv::Sequence a(**cache), b(**cache);
    parallel::ThreadPool alone_pool(1), pool(2);
    const kernels::Kernels counting = CountingKernels();
    const runtime::Context alone{.kernels = &Best(), .pool = &alone_pool, .ledger = &ledger};
    const runtime::Context together{.kernels = &counting, .pool = &pool, .ledger = &ledger};
    const auto per_position = static_cast<size_t>(kKvHeads * layer.dim);
    const std::vector<float> stored = Random(2 * kLength * per_position, 1);
    for (kv::Sequence* sequence : {&a, &b}) {
      ASSERT_TRUE(sequence->Append(kLength));
      for (int64_t p = 0; p < kLength; ++p) {
        const float* const x = stored.data() + static_cast<size_t>(2 * p + (sequence == &b)) * per_position;
        StoreKeyValue(alone, **cache, 0, {sequence, p}, x, x);
      }
    }
    const auto width = static_cast<size_t>(heads * layer.dim);
    std::vector<AttentionRow> rows;  // the newest of one sequence, then of the other
    for (int64_t p = kLength - 64; p < kLength; ++p) rows.push_back({&a, p});
    for (int64_t p = kLength - 3; p < kLength; ++p) rows.push_back({&b, p});
    const std::vector<float> q = Random(rows.size() * width, 3);
    // Sinks are seen from elsewhere: the query is turned.
    const std::vector<float> back = Random(rows.size() * 4, 4), other = Random(rows.size() * 4, 5);
    const Turns turns{
        .turn = Best().rope_half, .pairs = 4, .back_cos = back.data(), .back_sin = other.data()};
    const AttentionSpec spec{.layer = 0,
                             .n_heads = heads,
                             .n_kv_heads = kKvHeads,
                             .k_dim = layer.dim,
                             .v_dim = layer.dim,
                             .view = layer.view,
                             .scale = 0.2f,
                             .turns = turns};
    // From the r-th row on.
    const auto spec_from = [&](size_t r) {
      AttentionSpec from = spec;
      from.turns.back_cos += r * 4;
      from.turns.back_sin += r * 4;
      return from;
    };
    std::vector<float> expected(rows.size() * width);
    {
      const AttentionSize size{GetParam(), layer.dim, layer.dim};
      auto arena =
          memory::Arena::Create(AttentionScratch::Bytes(1, size) + 64, memory::Account::kActivations, ledger);
      const AttentionScratch scratch(size, arena->bytes());
      for (size_t r = 0; r < rows.size(); ++r)
        Attention(alone, scratch, spec_from(r), **cache, {&rows[r], 1}, q.data() + r * width,
                  expected.data() + r * width);
    }
    const AttentionSize size{GetParam(), layer.dim, layer.dim, 64};
    auto arena =
        memory::Arena::Create(AttentionScratch::Bytes(2, size) + 64, memory::Account::kActivations, ledger);
    const AttentionScratch scratch(size, arena->bytes());
    for (const size_t count : {1, 2, 3, 5, 8, 17, 64, 67}) {
      shared_tiles = 0;
      const size_t from = rows.size() - count;
      std::vector<float> out(count * width);
      Attention(together, scratch, spec_from(from), **cache, std::span(rows).subspan(from),
                q.data() + from * width, out.data());
      EXPECT_EQ(out,
                std::vector<float>(expected.begin() + static_cast<ptrdiff_t>(from * width), expected.end()))
          << count << " rows";
      if (layer.view.sinks == 0) {
        EXPECT_EQ(shared_tiles > 0, count > 1) << count << " rows";
      }
    }
  }
};

TEST_P(PromptTest, RowsTogetherAreRowsAlone) {
  using kv::KvType;
  for (const auto& [k_type, v_type] :
       {std::pair{KvType::kF16, KvType::kF16}, {KvType::kQ4_0, KvType::kQ8_0}}) {
    for (const int dim : {32, 64, 80, 128}) {
      for (const kv::Cache::View& view : kViews) {
        SCOPED_TRACE(fmt::format("keys {}, values {}, {} elements, window {}, {} sinks", kv::Name(k_type),
                                 kv::Name(v_type), dim, view.window, view.sinks));
        ExpectSameAsAlone({k_type, v_type, dim, view});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadsOfAGroup, PromptTest, testing::Values(1, 2, 3, 4, 8));

TEST(Rotation, IsOrthogonalAndCanBeUndone) {
  for (const int64_t n : {1, 2, 32, 80, 96, 100, 128, 1024}) {
    const std::vector<float> a = Random(static_cast<size_t>(n), 1), b = Random(static_cast<size_t>(n), 2);
    std::vector<float> ra = a, rb = b;
    Rotate(ra.data(), n);
    Rotate(rb.data(), n);
    double dot = 0, rotated = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      dot += double{a[i]} * b[i];
      rotated += double{ra[i]} * rb[i];
    }
    EXPECT_NEAR(rotated, dot, 1e-4) << n;
    RotateBack(ra.data(), n);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(ra[i], a[i], 1e-5) << n;
  }
}

TEST(Rotation, SpreadsAnElementOverItsRun) {
  std::vector<float> one(96, 0.0f);
  one[32] = 1.0f;  // the first of the second run of 32
  Rotate(one.data(), 96);
  for (size_t i = 0; i < 96; ++i) EXPECT_FLOAT_EQ(std::abs(one[i]), i / 32 == 1 ? 0.17677669f : 0.0f);
}

// The Hadamard matrix alone would put all of it into one element.
TEST(Rotation, SpreadsWhatElementsHaveInCommon) {
  for (const int64_t n : {32, 64, 128, 1024}) {
    std::vector<float> equal(static_cast<size_t>(n), 1.0f);
    Rotate(equal.data(), n);
    const double largest = std::abs(*std::ranges::max_element(equal, {}, [](float x) { return std::abs(x); }));
    EXPECT_LT(largest, 3.5) << n;  // √n without signs
  }
}

}  // namespace
}  // namespace sluice::ops
