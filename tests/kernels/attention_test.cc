// Attention tiles: every table against scalar, bit for bit, and scalar against attention in double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "kernels/kv_rows.h"
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
  Tile(KvType keys, KvType values, const Shape& tile_shape)
      : k_type(keys), v_type(values), shape(tile_shape) {
    const auto heads = static_cast<size_t>(shape.heads);
    q = MakeInput(shape.heads * shape.k_dim, shape.input, 1);
    k = Stored(k_type, shape.k_dim, shape.input, 2);
    v = Stored(v_type, shape.v_dim, InputKind::kBell, 3);
    slopes = MakeInput(shape.heads, InputKind::kBell, 4);
    m.assign(heads, -std::numeric_limits<float>::infinity());
    l.assign(heads, 0.0f);
    o.assign(heads * static_cast<size_t>(shape.v_dim), 0.0f);
  }

  // 64 rows of n elements.
  static std::vector<std::byte> Stored(KvType type, int n, InputKind kind, uint64_t seed) {
    const auto x = MakeInput(64 * n, kind, seed);
    const size_t row_bytes = KvRowBytes(type, n);
    std::vector<std::byte> bytes(64 * row_bytes);
    for (size_t slot = 0; slot < 64; ++slot) {
      StoreKvRow(Scalar(), type, x.data() + slot * static_cast<size_t>(n), n,
                 bytes.data() + slot * row_bytes);
    }
    return bytes;
  }

  void Run(const Kernels& kernels, int first, int last) {
    kernels.attention_tile(Args(first, last, nullptr));
  }

  // The scores first, by way of memory.
  void RunInSteps(const Kernels& kernels, int first, int last) {
    std::vector<float> scores(static_cast<size_t>(shape.heads) * kTileSlots,
                              std::numeric_limits<float>::quiet_NaN());
    kernels.attention_scores(Args(first, last, scores.data()));
    kernels.attention_tile(Args(first, last, scores.data()));
  }

  AttentionTileArgs Args(int first, int last, float* scores) {
    return {.q = q.data(),
            .q_stride = shape.k_dim,
            .heads = shape.heads,
            .k_dim = shape.k_dim,
            .v_dim = shape.v_dim,
            .k_type = k_type,
            .v_type = v_type,
            .k = k.data(),
            .k_row_bytes = KvRowBytes(k_type, shape.k_dim),
            .v = v.data(),
            .v_row_bytes = KvRowBytes(v_type, shape.v_dim),
            .first = first,
            .last = last,
            .scale = 0.125f,
            .softcap = shape.softcap,
            .alibi_slopes = shape.alibi ? slopes.data() : nullptr,
            .first_distance = -100,
            .m = m.data(),
            .l = l.data(),
            .o = o.data(),
            .scores = scores,
            .next = k.data()};
  }

  KvType k_type, v_type;
  Shape shape;
  std::vector<float> q, slopes, m, l, o;
  std::vector<std::byte> k, v;
};

std::vector<std::pair<KvType, KvType>> TypePairs() {
  std::vector<std::pair<KvType, KvType>> pairs;
  for (size_t k = 0; k < kKvTypeCount; ++k) {
    for (size_t v = 0; v < kKvTypeCount; ++v)
      pairs.emplace_back(static_cast<KvType>(k), static_cast<KvType>(v));
  }
  return pairs;
}

class AttentionTest : public testing::TestWithParam<TableParam> {
 protected:
  void SetUp() override { SLUICE_SKIP_UNLESS_RUNS(*GetParam().kernels); }

  void ExpectSameAsScalar(const Shape& shape) {
    for (const auto& [k_type, v_type] : TypePairs()) {
      SCOPED_TRACE(fmt::format("keys {}, values {}", Name(k_type), Name(v_type)));
      Tile expected(k_type, v_type, shape), found(k_type, v_type, shape), in_steps(k_type, v_type, shape);
      for (int times = 0; times < 2; ++times) {  // the second time on what the first left
        expected.Run(Scalar(), shape.first, shape.last);
        found.Run(*GetParam().kernels, shape.first, shape.last);
        ASSERT_EQ(FirstDifference(expected.m, found.m), -1);
        ASSERT_EQ(FirstDifference(expected.l, found.l), -1);
        ASSERT_EQ(FirstDifference(expected.o, found.o), -1);
        in_steps.RunInSteps(*GetParam().kernels, shape.first, shape.last);
        ASSERT_EQ(FirstDifference(expected.m, in_steps.m), -1);
        ASSERT_EQ(FirstDifference(expected.l, in_steps.l), -1);
        ASSERT_EQ(FirstDifference(expected.o, in_steps.o), -1);
      }
    }
  }
};

TEST_P(AttentionTest, EveryShape) {
  for (const int heads : {1, 2, 3, 4, 5, 7, 8, 9}) {
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
  for (const auto& [k_type, v_type] : TypePairs()) {
    Tile plain(k_type, v_type, shape), poisoned(k_type, v_type, shape);
    for (int slot = 0; slot < 64; ++slot) {
      if (slot >= shape.first && slot < shape.last) continue;
      const auto poison = [&](std::vector<std::byte>& rows) {
        std::memset(rows.data() + static_cast<size_t>(slot) * rows.size() / 64, 0xff, rows.size() / 64);
      };
      poison(poisoned.k);
      poison(poisoned.v);
    }
    plain.Run(*GetParam().kernels, shape.first, shape.last);
    poisoned.Run(*GetParam().kernels, shape.first, shape.last);
    EXPECT_EQ(FirstDifference(plain.l, poisoned.l), -1);
    EXPECT_EQ(FirstDifference(plain.o, poisoned.o), -1);
  }
}

// Rows further apart than they are long give the same bits.
TEST_P(AttentionTest, RowsNeedNotTouch) {
  for (const int dim : {64, 128}) {
    for (const auto& [k_type, v_type] : TypePairs()) {
      SCOPED_TRACE(fmt::format("{} columns, keys {}, values {}", dim, Name(k_type), Name(v_type)));
      Tile close(k_type, v_type, {7, dim, dim, 2, 61}), apart = close;
      AttentionTileArgs args = apart.Args(2, 61, nullptr);
      const auto spread = [](const std::vector<std::byte>& rows, size_t bytes) {
        std::vector<std::byte> wide(64 * (bytes + 6), std::byte{0xff});
        for (size_t i = 0; i < 64; ++i) std::memcpy(&wide[i * (bytes + 6)], &rows[i * bytes], bytes);
        return wide;
      };
      const std::vector<std::byte> k = spread(apart.k, args.k_row_bytes),
                                   v = spread(apart.v, args.v_row_bytes);
      args.k = k.data();
      args.k_row_bytes += 6;
      args.v = v.data();
      args.v_row_bytes += 6;
      args.next = nullptr;
      GetParam().kernels->attention_tile(args);
      close.Run(*GetParam().kernels, 2, 61);
      EXPECT_EQ(FirstDifference(close.m, apart.m), -1);
      EXPECT_EQ(FirstDifference(close.l, apart.l), -1);
      EXPECT_EQ(FirstDifference(close.o, apart.o), -1);
    }
  }
}

// The queries of several rows and what they see of a tile.
struct TileOfRows {
  TileOfRows(KvType k_type, KvType v_type, int row_count, const Shape& shape)
      : rows(row_count), heads(shape.heads), tile(k_type, v_type, Of(shape, rows * shape.heads)) {
    scratch.assign(AttentionRowsScratch(rows * heads, shape.k_dim, shape.v_dim) + 16,
                   std::numeric_limits<float>::quiet_NaN());
  }
  static Shape Of(Shape shape, int queries) {
    shape.heads = queries;
    return shape;
  }

  AttentionTileArgs Args() {
    AttentionTileArgs args = tile.Args(0, kTileSlots, nullptr);
    args.heads = heads;
    return args;
  }
  void Run(const Kernels& kernels, const std::vector<VisibleSlots>& visible, bool new_queries) {
    void* aligned = scratch.data();
    size_t room = scratch.size() * sizeof(float);
    std::align(64, 1, aligned, room);
    kernels.attention_rows({.tile = Args(),
                            .rows = rows,
                            .q_row_stride = int64_t{heads} * tile.shape.k_dim,
                            .visible = visible.data(),
                            .scratch = static_cast<float*>(aligned),
                            .new_queries = new_queries});
  }
  void RunRowByRow(const Kernels& kernels, const std::vector<VisibleSlots>& visible) {
    for (int r = 0; r < rows; ++r) {
      AttentionTileArgs args = Args();
      const VisibleSlots& of_row = visible[static_cast<size_t>(r)];
      if (of_row.first == of_row.last) continue;
      args.first = of_row.first;
      args.last = of_row.last;
      args.first_distance = of_row.first_distance;
      const int64_t before = int64_t{r} * heads;
      args.q += before * args.k_dim;
      args.m += before;
      args.l += before;
      args.o += before * args.v_dim;
      kernels.attention_tile(args);
    }
  }

  int rows, heads;
  Tile tile;
  std::vector<float> scratch;
};

// What rows at consecutive positions see of a tile, the first of them up to `last`: with the whole past
// before them, or with so many slots.
std::vector<VisibleSlots> SeenByRows(int rows, int last, int window) {
  std::vector<VisibleSlots> visible;
  for (int r = 0; r < rows; ++r) {
    const int to = std::clamp(last + r, 0, kTileSlots);
    const int from = window == 0 ? 0 : std::clamp(last + r - window, 0, to);
    visible.push_back({from, to, from - (last + r - 1)});
  }
  return visible;
}

class AttentionRowsTest : public AttentionTest {
 protected:
  // Twice, the second time with the queries that are there.
  void ExpectSameAsRowByRow(int rows, const Shape& shape, const std::vector<VisibleSlots>& visible,
                            std::span<const std::pair<KvType, KvType>> types) {
    for (const auto& [k_type, v_type] : types) {
      SCOPED_TRACE(fmt::format("keys {}, values {}", Name(k_type), Name(v_type)));
      TileOfRows expected(k_type, v_type, rows, shape), found = expected;
      const std::vector<VisibleSlots> whole(static_cast<size_t>(rows), {0, kTileSlots, -200});
      for (const bool edge : {false, true}) {
        expected.RunRowByRow(*GetParam().kernels, edge ? visible : whole);
        found.Run(*GetParam().kernels, edge ? visible : whole, !edge);
        ASSERT_EQ(FirstDifference(expected.tile.m, found.tile.m), -1);
        ASSERT_EQ(FirstDifference(expected.tile.l, found.tile.l), -1);
        ASSERT_EQ(FirstDifference(expected.tile.o, found.tile.o), -1);
      }
    }
  }
};

TEST_P(AttentionRowsTest, EveryShape) {
  const std::pair<KvType, KvType> types[] = {
      {KvType::kF16, KvType::kF16}, {KvType::kQ8_0, KvType::kQ4_0}, {KvType::kQ5_0, KvType::kF32}};
  for (const int rows : {1, 2, 3, 5, 8, 15, 17, 64}) {
    for (const int heads : {1, 2, 4, 8}) {
      for (const auto& [k_dim, v_dim] :
           {std::pair{32, 32}, {64, 64}, {80, 80}, {128, 128}, {72, 40}, {33, 129}}) {
        for (const auto& [last, window] : {std::pair{1, 0}, {-3, 0}, {60, 0}, {40, 20}, {64, 63}}) {
          ASSERT_NO_FATAL_FAILURE(
              ExpectSameAsRowByRow(rows, {heads, k_dim, v_dim, 0, 64}, SeenByRows(rows, last, window), types))
              << rows << " rows, " << heads << " heads, " << k_dim << " × " << v_dim << ", last " << last
              << ", window " << window;
        }
      }
    }
  }
}

TEST_P(AttentionRowsTest, EveryPairOfTypesAndKindOfNumber) {
  for (const InputKind kind : kInputKinds) {
    for (const float softcap : {0.0f, 20.0f}) {
      for (const bool alibi : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameAsRowByRow(9, {3, 64, 48, 0, 64, softcap, alibi, kind},
                                                     SeenByRows(9, 57, 30), TypePairs()))
            << "input " << static_cast<int>(kind) << ", softcap " << softcap << ", alibi " << alibi;
      }
    }
  }
}

// What some of the rows don't see is of no consequence to them, be it NaN.
TEST_P(AttentionRowsTest, WhatOthersSeeIsNotRead) {
  constexpr int kRows = 12, kLast = 50;
  const Shape shape{2, 64, 64, 0, 64};
  for (const auto& [k_type, v_type] : TypePairs()) {
    SCOPED_TRACE(fmt::format("keys {}, values {}", Name(k_type), Name(v_type)));
    TileOfRows plain(k_type, v_type, kRows, shape), poisoned = plain;
    for (std::vector<std::byte>* rows : {&poisoned.tile.k, &poisoned.tile.v}) {
      const size_t bytes = rows->size() / kTileSlots;
      std::fill(rows->begin() + static_cast<ptrdiff_t>((kLast + 3) * bytes), rows->end(), std::byte{0xff});
    }
    plain.Run(*GetParam().kernels, SeenByRows(kRows, kLast, 0), true);
    poisoned.Run(*GetParam().kernels, SeenByRows(kRows, kLast, 0), true);
    for (size_t query = 0; query < kRows * 2; ++query) {
      const bool sees_poison = query / 2 > 3;
      EXPECT_EQ(std::isnan(poisoned.tile.l[query]), sees_poison) << query;
      if (sees_poison) continue;
      EXPECT_EQ(poisoned.tile.l[query], plain.tile.l[query]) << query;
      for (size_t i = query * 64; i < (query + 1) * 64; ++i)
        EXPECT_EQ(poisoned.tile.o[i], plain.tile.o[i]) << query;
    }
  }
}

TEST_P(AttentionTest, MergeIsThatOfScalar) {
  for (const InputKind kind : kInputKinds) {
    for (const int64_t n : {1, 7, 8, 64, 100, 129}) {
      std::vector<float> expected = MakeInput(n, kind, 1), found = expected;
      const std::vector<float> chunk = MakeInput(n, kind, 2);
      Scalar().attention_merge(expected.data(), 0.3f, chunk.data(), 0.7f, n);
      GetParam().kernels->attention_merge(found.data(), 0.3f, chunk.data(), 0.7f, n);
      EXPECT_EQ(FirstDifference(expected, found), -1) << "input " << static_cast<int>(kind) << ", " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionTest, testing::ValuesIn(TestedTables()),
                         [](const auto& test) { return TableName(test.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionTest);
INSTANTIATE_TEST_SUITE_P(Tables, AttentionRowsTest, testing::ValuesIn(TestedTables()),
                         [](const auto& test) { return TableName(test.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionRowsTest);

// Two tiles of one softmax, in double.
TEST(ScalarAttention, AgreesWithDoubles) {
  const Shape shape{4, 64, 32, 0, 64, 30.0f, true};
  Tile tile(KvType::kF32, KvType::kF32, shape);
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
