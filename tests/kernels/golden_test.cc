// Golden hashes of kernel results, frozen: they were made on x86-64 and must come out the same on every
// machine and with every table. A change here is a change of the canonical arithmetic (docs/arithmetic.md),
// which changes the logits of every model: never update a value to make a test pass.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "base/hash.h"
#include "kernels/kv_rows.h"
#include "kernels/support.h"

namespace sluice::kernels {
namespace {

using formats::DType;

template <typename T>
uint64_t HashVector(const std::vector<T>& values, uint64_t hash) {
  return HashBytes(std::as_bytes(std::span(values)), hash);
}

// Ordinary weights and ones of all bits, odd numbers of blocks, one activation row and several.
uint64_t ProductHash(const Kernels& kernels, DType dtype) {
  const int64_t block = formats::Traits(dtype).block_length;
  const int64_t columns = block == 1 ? 1237 : block * (block >= 256 ? 5 : 27);
  uint64_t hash = kHashSeed;
  for (const WeightKind kind : {WeightKind::kSane, WeightKind::kAllBits}) {
    const auto weights = MakeWeights(dtype, 19, columns, kind, 1001);
    for (const int64_t batch : {1, 9}) {
      const Input input(kernels, dtype, MakeInput(columns * batch, InputKind::kBell, 1002), batch);
      hash = HashFloats(Multiply(kernels, dtype, weights, 19, input.View()), hash);
    }
  }
  return hash;
}

const std::map<std::string, uint64_t>& ProductHashes() {
  static const std::map<std::string, uint64_t> hashes = {
      {"F32", 0x09cfc9553ffc1cb8u},     {"F16", 0x1fb4facbafe96602u},    {"Q4_0", 0xb7de5076a913c7f5u},
      {"Q4_1", 0x36a242a2d91d25beu},    {"Q5_0", 0x211610c18db338f9u},   {"Q5_1", 0x1d1ef3e9e9adf998u},
      {"Q8_0", 0x8a8f21d5dd75f74fu},    {"Q2_K", 0xa06b89cea7ffb056u},   {"Q3_K", 0x38fc2c8aeaece3a6u},
      {"Q4_K", 0x06ea8d131db730a6u},    {"Q5_K", 0xe949d644ca49796fu},   {"Q6_K", 0xbe28d414936f59c8u},
      {"IQ2_XXS", 0xa472433c5f4f869eu}, {"IQ2_XS", 0xa79ecb387a676caeu}, {"IQ3_XXS", 0x104b8ed7c1dcc226u},
      {"IQ1_S", 0xd9cbbe284e5f8706u},   {"IQ4_NL", 0xe89051111200b6ceu}, {"IQ3_S", 0x76485fecbe1f866bu},
      {"IQ2_S", 0x938f17f843bdbbaeu},   {"IQ4_XS", 0x46a2b3b093fa2f2cu}, {"IQ1_M", 0x5107ee045dabbcf0u},
      {"BF16", 0xcefb801267355790u},    {"TQ1_0", 0xe58cdbfa05b9086cu},  {"TQ2_0", 0xbbc84f3d244a18c6u},
      {"MXFP4", 0x8bdd3fa7218a9597u},   {"NVFP4", 0x3bd7f1395eb3e631u},  {"Q1_0", 0xf8c3eeee4d201d45u},
      {"Q2_0", 0x6e44a84035daf37fu},
  };
  return hashes;
}

uint64_t QuantizeHash(const Kernels& kernels) {
  uint64_t hash = kHashSeed;
  for (const InputKind kind : kInputKinds) {
    for (const DType dtype : {DType::kQ8_0, DType::kQ2_0, DType::kQ1_0, DType::kQ4_K}) {
      const Input input(kernels, dtype, MakeInput(1024, kind, 1003), 1);
      hash = HashVector(input.q, HashVector(input.sums, HashFloats(input.scale, hash)));
    }
  }
  return hash;
}

uint64_t RowHash(const Kernels& kernels) {
  uint64_t hash = kHashSeed;
  for (const InputKind kind : kInputKinds) {
    const auto x = MakeInput(301, kind, 1004);
    const auto up = MakeInput(301, InputKind::kBell, 1005);
    std::vector<float> y(x.size());
    kernels.rms_norm(x.data(), up.data(), 301, 1e-6f, y.data());
    hash = HashFloats(y, hash);
    kernels.layer_norm(x.data(), up.data(), up.data(), 301, 1e-6f, y.data());
    hash = HashFloats(y, hash);
    for (const auto gate :
         {&Kernels::silu, &Kernels::gelu_tanh, &Kernels::gelu_erf, &Kernels::relu_squared}) {
      (kernels.*gate)(x.data(), up.data(), 301, y.data());
      hash = HashFloats(y, hash);
    }
    kernels.softcap(x.data(), 301, 2.5f, y.data());
    hash = HashFloats(y, hash);
    y = x;
    kernels.rope_interleaved(y.data(), up.data(), up.data() + 75, 75);
    kernels.rope_half(y.data() + 150, up.data(), up.data() + 75, 75);
    hash = HashFloats(y, hash);
  }
  return hash;
}

std::vector<std::byte> StoredRows(const Kernels& kernels, KvType type, int n, uint64_t seed) {
  const auto x = MakeInput(64 * n, InputKind::kBell, seed);
  const size_t row_bytes = KvRowBytes(type, n);
  std::vector<std::byte> rows(64 * row_bytes);
  for (size_t i = 0; i < 64; ++i)
    StoreKvRow(kernels, type, x.data() + i * static_cast<size_t>(n), n, rows.data() + i * row_bytes);
  return rows;
}

uint64_t AttentionHash(const Kernels& kernels, KvType k_type, KvType v_type) {
  constexpr int kHeads = 3, kKeyDim = 80, kValueDim = 72;
  const auto q = MakeInput(kHeads * kKeyDim, InputKind::kBell, 1006);
  const auto k = StoredRows(kernels, k_type, kKeyDim, 1007);
  const auto v = StoredRows(kernels, v_type, kValueDim, 1008);
  const float slopes[kHeads] = {0.5f, 0.25f, 0.125f};
  std::vector<float> m(kHeads, -std::numeric_limits<float>::infinity()), l(kHeads, 0.0f);
  std::vector<float> o(kHeads * kValueDim, 0.0f);
  for (const auto& [first, last] : {std::pair{0, 64}, {5, 30}}) {
    kernels.attention_tile({.q = q.data(),
                            .q_stride = kKeyDim,
                            .heads = kHeads,
                            .k_dim = kKeyDim,
                            .v_dim = kValueDim,
                            .k_type = k_type,
                            .v_type = v_type,
                            .k = k.data(),
                            .k_row_bytes = k.size() / 64,
                            .v = v.data(),
                            .v_row_bytes = v.size() / 64,
                            .first = first,
                            .last = last,
                            .scale = 0.11f,
                            .softcap = 30.0f,
                            .alibi_slopes = slopes,
                            .first_distance = -64,
                            .m = m.data(),
                            .l = l.data(),
                            .o = o.data()});
  }
  return HashFloats(o, HashFloats(l, HashFloats(m, kHashSeed)));
}

class GoldenTest : public testing::TestWithParam<TableParam> {
 protected:
  void SetUp() override { SLUICE_SKIP_UNLESS_RUNS(kernels()); }
  const Kernels& kernels() const { return *GetParam().kernels; }
};

TEST_P(GoldenTest, Products) {
  for (const DType dtype : WeightTypes()) {
    const std::string name(formats::Name(dtype));
    ASSERT_TRUE(ProductHashes().contains(name)) << name;
    EXPECT_EQ(ProductHash(kernels(), dtype), ProductHashes().at(name)) << name;
  }
}

TEST_P(GoldenTest, QuantizedActivations) { EXPECT_EQ(QuantizeHash(kernels()), 0x8ee099fd93b56a3cu); }
TEST_P(GoldenTest, Rows) { EXPECT_EQ(RowHash(kernels()), 0x211932ac474c9541u); }
TEST_P(GoldenTest, Attention) {
  using enum KvType;
  EXPECT_EQ(AttentionHash(kernels(), kF32, kF32), 0x005b2d384090594au);
  EXPECT_EQ(AttentionHash(kernels(), kF16, kF16), 0x3892150c683bfa01u);
  EXPECT_EQ(AttentionHash(kernels(), kQ8_0, kQ8_0), 0xb4f5db4dacfa9a5eu);
  EXPECT_EQ(AttentionHash(kernels(), kQ8_0, kQ4_0), 0x0bdd01b1e7a3deceu);
  EXPECT_EQ(AttentionHash(kernels(), kQ5_0, kQ5_0), 0xf8f2d037804e8dd9u);
  EXPECT_EQ(AttentionHash(kernels(), kQ4_0, kF16), 0xe8ce52d6e85962bfu);
}

std::vector<TableParam> AllTables() {
  std::vector<TableParam> tables;
  for (const Kernels* table : AllKernels()) tables.push_back({table});
  return tables;
}

INSTANTIATE_TEST_SUITE_P(Tables, GoldenTest, testing::ValuesIn(AllTables()),
                         [](const auto& test) { return TableName(test.param); });

}  // namespace
}  // namespace sluice::kernels
