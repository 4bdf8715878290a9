// Attention tiles: every table against scalar, bit for bit, and scalar against attention in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "kernels/support.h"

namespace sluice::kernels {
namespace {

const Kernels& Scalar() { return *FindKernels("scalar"); }

struct Shape {
  int heads, k_dim, v_dim, first, last;
  float softcap = 0;
  bool alibi = false;
  InputKind input = InputKind::kBell;
};

// A tile and the running state of its heads.
struct Tile {
  Tile(KvType kv_type, const Shape& tile_shape) : type(kv_type), shape(tile_shape) {
    const auto heads = static_cast<size_t>(shape.heads);
    q = MakeInput(shape.heads * shape.k_dim, shape.input, 1);
    k = Stored(64 * shape.k_dim, shape.input, 2);
    v = Stored(64 * shape.v_dim, InputKind::kBell, 3);
    slopes = MakeInput(shape.heads, InputKind::kBell, 4);
    m.assign(heads, -std::numeric_limits<float>::infinity());
    l.assign(heads, 0.0f);
    o.assign(heads * static_cast<size_t>(shape.v_dim), 0.0f);
  }

  size_t ElementBytes() const { return type == KvType::kF32 ? 4 : 2; }

  std::vector<std::byte> Stored(int64_t n, InputKind kind, uint64_t seed) const {
    const auto x = MakeInput(n, kind, seed);
    std::vector<std::byte> bytes(x.size() * ElementBytes());
    for (size_t i = 0; i < x.size(); ++i) {
      const uint16_t half = F32ToF16(x[i]);
      if (type == KvType::kF32) {
        std::memcpy(bytes.data() + 4 * i, &x[i], 4);
      } else {
        std::memcpy(bytes.data() + 2 * i, &half, 2);
      }
    }
    return bytes;
  }

  void Run(const Kernels& kernels, int first, int last) {
    kernels.attention_tile[static_cast<size_t>(type)](
        {.q = q.data(),
         .q_stride = shape.k_dim,
         .heads = shape.heads,
         .k_dim = shape.k_dim,
         .v_dim = shape.v_dim,
         .k = k.data(),
         .k_row_bytes = static_cast<size_t>(shape.k_dim) * ElementBytes(),
         .v = v.data(),
         .v_row_bytes = static_cast<size_t>(shape.v_dim) * ElementBytes(),
         .first = first,
         .last = last,
         .scale = 0.125f,
         .softcap = shape.softcap,
         .alibi_slopes = shape.alibi ? slopes.data() : nullptr,
         .first_distance = -100,
         .m = m.data(),
         .l = l.data(),
         .o = o.data()});
  }

  KvType type;
  Shape shape;
  std::vector<float> q, slopes, m, l, o;
  std::vector<std::byte> k, v;
};

class AttentionTest : public testing::TestWithParam<TableParam> {
 protected:
  void SetUp() override { SLUICE_SKIP_UNLESS_RUNS(*GetParam().kernels); }

  void ExpectSameAsScalar(const Shape& shape) {
    for (const KvType type : {KvType::kF32, KvType::kF16}) {
      Tile expected(type, shape), found(type, shape);
      for (int times = 0; times < 2; ++times) {  // the second time on what the first left
        expected.Run(Scalar(), shape.first, shape.last);
        found.Run(*GetParam().kernels, shape.first, shape.last);
        ASSERT_EQ(FirstDifference(expected.m, found.m), -1);
        ASSERT_EQ(FirstDifference(expected.l, found.l), -1);
        ASSERT_EQ(FirstDifference(expected.o, found.o), -1);
      }
    }
  }
};

TEST_P(AttentionTest, EveryShape) {
  for (const int heads : {1, 2, 3, 4, 5, 8}) {
    for (const auto& [k_dim, v_dim] :
         {std::pair{64, 64}, {128, 128}, {80, 80}, {72, 40}, {1, 1}, {33, 129}, {256, 256}}) {
      for (const auto& [first, last] : {std::pair{0, 64}, {0, 1}, {63, 64}, {5, 18}, {0, 33}, {16, 48}}) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar({heads, k_dim, v_dim, first, last}))
            << heads << " heads, " << k_dim << " × " << v_dim << ", slots " << first << " to " << last;
      }
    }
  }
}

TEST_P(AttentionTest, EveryKindOfNumber) {
  for (const InputKind kind : kInputKinds) {
    for (const float softcap : {0.0f, 20.0f}) {
      for (const bool alibi : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameAsScalar({3, 64, 48, 3, 50, softcap, alibi, kind}))
            << "input " << static_cast<int>(kind) << ", softcap " << softcap << ", alibi " << alibi;
      }
    }
  }
}

// What lies in invisible slots is of no consequence, be it NaN.
TEST_P(AttentionTest, InvisibleSlotsAreNotRead) {
  const Shape shape{2, 64, 64, 7, 21};
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    Tile plain(type, shape), poisoned(type, shape);
    for (int slot = 0; slot < 64; ++slot) {
      if (slot >= shape.first && slot < shape.last) continue;
      const size_t row = 64 * plain.ElementBytes();
      std::memset(poisoned.k.data() + static_cast<size_t>(slot) * row, 0xff, row);
      std::memset(poisoned.v.data() + static_cast<size_t>(slot) * row, 0xff, row);
    }
    plain.Run(*GetParam().kernels, shape.first, shape.last);
    poisoned.Run(*GetParam().kernels, shape.first, shape.last);
    EXPECT_EQ(FirstDifference(plain.l, poisoned.l), -1);
    EXPECT_EQ(FirstDifference(plain.o, poisoned.o), -1);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionTest, testing::ValuesIn(TestedTables()),
                         [](const auto& test) { return TableName(test.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionTest);

// Two tiles of one softmax, in double.
TEST(ScalarAttention, AgreesWithDoubles) {
  const Shape shape{4, 64, 32, 0, 64, 30.0f, true};
  Tile tile(KvType::kF32, shape);
  tile.Run(Scalar(), 0, 40);
  Tile rest = tile;
  rest.Run(Scalar(), 40, 64);
  const auto at = [](const std::vector<std::byte>& bytes, int64_t i) {
    float value;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    return double{value};
  };
  for (int h = 0; h < shape.heads; ++h) {
    double total = 0;
    std::vector<double> o(static_cast<size_t>(shape.v_dim));
    for (int slot = 0; slot < 64; ++slot) {
      double s = 0;
      for (int i = 0; i < shape.k_dim; ++i) {
        s += double{tile.q[static_cast<size_t>(h * shape.k_dim + i)]} * at(tile.k, slot * shape.k_dim + i);
      }
      s = 30 * std::tanh(s * 0.125 / 30);
      s += double{tile.slopes[static_cast<size_t>(h)]} * (-100 + slot - (slot < 40 ? 0 : 40));
      const double p = std::exp(s);
      total += p;
      for (int j = 0; j < shape.v_dim; ++j)
        o[static_cast<size_t>(j)] += p * at(tile.v, slot * shape.v_dim + j);
    }
    for (int j = 0; j < shape.v_dim; ++j) {
      const double found = rest.o[static_cast<size_t>(h * shape.v_dim + j)] / rest.l[static_cast<size_t>(h)];
      ASSERT_NEAR(found, o[static_cast<size_t>(j)] / total, 2e-4) << "head " << h << ", column " << j;
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
