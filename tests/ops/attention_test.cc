// Attention against the plain formula in double, and its independence from everything but positions.
#include "ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
  for (const int64_t position : {int64_t{0}, s.length / 2, s.length - 1}) rows.push_back({&sequence, position});
  const std::vector<float> q = Random(rows.size() * static_cast<size_t>(s.n_heads * s.k_dim), 3);
  const size_t out_width = static_cast<size_t>(s.n_heads * s.v_dim);
  const float scale = 1.0f / std::sqrt(static_cast<float>(s.k_dim));

  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    parallel::ThreadPool pool(threads);
    runtime::Context context{
        .kernels = &kernels::BestKernels(platform::DetectCpuFeatures()), .pool = &pool, .ledger = &ledger};
    auto arena = memory::Arena::Create(
        AttentionScratch::Bytes(threads, s.n_heads / s.n_kv_heads, s.k_dim, s.v_dim) + 64,
        memory::Account::kActivations, ledger);
    ASSERT_TRUE(arena);
    const AttentionScratch scratch(threads, s.n_heads / s.n_kv_heads, s.k_dim, s.v_dim, *arena);
    for (int64_t p = 0; p < s.length; ++p)
      StoreKeyValue(context, **cache, 0, {&sequence, p}, k.data() + p * s.n_kv_heads * s.k_dim,
                    v.data() + p * s.n_kv_heads * s.v_dim);
    const AttentionSpec spec{.layer = 0,
                             .n_heads = s.n_heads,
                             .n_kv_heads = s.n_kv_heads,
                             .k_dim = s.k_dim,
                             .v_dim = s.v_dim,
                             .window = s.window,
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
          score += static_cast<double>(q[(r * s.n_heads + h) * s.k_dim + i]) * k[(p * s.n_kv_heads + g) * s.k_dim + i];
        score *= scale;
        if (s.softcap > 0) score = s.softcap * std::tanh(score / s.softcap);
        if (s.alibi) score += static_cast<double>(slopes[h]) * static_cast<double>(p - position);
        const double weight = std::exp(score);
        sum += weight;
        for (int i = 0; i < s.v_dim; ++i) output[i] += weight * v[(p * s.n_kv_heads + g) * s.v_dim + i];
      }
      for (int i = 0; i < s.v_dim; ++i)
        EXPECT_NEAR(first[r * out_width + h * s.v_dim + i], output[i] / sum, 3e-6) << "row " << r << " head " << h;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         testing::Values(Shape{4, 4, 16, 16, 70, 0, 0, false}, Shape{8, 2, 64, 64, 1300, 0, 0, false},
                                         Shape{6, 1, 40, 24, 600, 0, 5.0f, false},
                                         Shape{4, 2, 100, 100, 1100, 130, 0, false},
                                         Shape{3, 3, 16, 16, 520, 0, 0, true}, Shape{16, 2, 128, 128, 515, 64, 0, false}));

}  // namespace
}  // namespace sluice::ops
