// Products with F32, F16 and BF16 weights: for few activation rows, 16 lanes of fma for each pair of rows
// (docs/arithmetic.md, section 2); for many, panels.
#include "kernels/arm/float_panels.h"
#include "kernels/arm/math.h"
#include "kernels/arm/neon.h"

namespace sluice::kernels::neon {
namespace {

using namespace arm;

// kRows weight rows against kBatch activation rows; kRows · kBatch reductions of four registers each.
template <typename Element, int kRows, int kBatch>
inline void Products(const std::byte* const* row, const float* const* x, int64_t columns,
                     float (*out)[kBatch]) {
  Sixteen lanes[kRows][kBatch];
  for (auto& of_row : lanes) {
    for (Sixteen& l : of_row) l = Zeros();
  }
  int64_t i = 0;
  for (; i + 16 <= columns; i += 16) {
    Sixteen xs[kBatch];
    for (int b = 0; b < kBatch; ++b) xs[b] = Load16Floats(x[b] + i);
    for (int r = 0; r < kRows; ++r) {
      const Sixteen w = Element::Load(row[r] + i * Element::kBytes);
      for (int b = 0; b < kBatch; ++b) AddProduct(lanes[r][b], w, xs[b]);
    }
  }
  if (i < columns) {
    for (int r = 0; r < kRows; ++r) {
      const Sixteen w = LoadElements<Element>(row[r] + i * Element::kBytes, columns - i);
      for (int b = 0; b < kBatch; ++b) AddProduct(lanes[r][b], w, LoadTail(x[b] + i, columns - i));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int b = 0; b < kBatch; ++b) out[r][b] = FoldLanes(lanes[r][b]);
  }
}

// All activation rows, kBatch at a time, against kRows weight rows from r on. Where the matrix or the batch
// ends, its last row is taken again and the result dropped.
template <typename Element, int kRows, int kBatch>
void RowsAgainstBatch(const MatmulArgs& args, int64_t r) {
  const std::byte* row[kRows];
  for (int j = 0; j < kRows; ++j) {
    const int64_t index = r + j < args.rows ? r + j : args.rows - 1;
    row[j] = args.weights + static_cast<size_t>(index) * args.row_bytes;
  }
  for (int64_t b = 0; b < args.x.batch; b += kBatch) {
    const float* x[kBatch];
    for (int t = 0; t < kBatch; ++t) {
      x[t] = args.x.f32 + (b + t < args.x.batch ? b + t : args.x.batch - 1) * args.x.columns;
    }
    float out[kRows][kBatch];
    Products<Element, kRows, kBatch>(row, x, args.x.columns, out);
    for (int j = 0; j < kRows && r + j < args.rows; ++j) {
      for (int t = 0; t < kBatch && b + t < args.x.batch; ++t) {
        args.y[(b + t) * args.y_stride + r + j] = out[j][t];
      }
    }
  }
}

// From here on, unpacking a panel costs less than widening a row for each pair of activation rows.
constexpr int64_t kFloatBatch = 7;

template <typename Element>
void MatmulFloats(const MatmulArgs& args) {
  if (args.x.batch == 1) {
    for (int64_t r = 0; r < args.rows; r += 4) RowsAgainstBatch<Element, 4, 1>(args, r);
  } else if (args.x.batch >= kFloatBatch) {
    MatmulFloatBatch<Element>(args);
  } else {
    for (int64_t r = 0; r < args.rows; r += 2) RowsAgainstBatch<Element, 2, 2>(args, r);
  }
}

}  // namespace

void MatmulF32(const MatmulArgs& args) { MatmulFloats<FromF32>(args); }
void MatmulF16(const MatmulArgs& args) { MatmulFloats<FromF16>(args); }
void MatmulBf16(const MatmulArgs& args) { MatmulFloats<FromBf16>(args); }

// What FMLA multiplies at best.
int64_t F32Peak(int64_t rounds) {
  constexpr int kChains = 16;
  const float32x4_t x = vdupq_n_f32(0.5f);
  float32x4_t acc[kChains];
  for (float32x4_t& a : acc) a = vdupq_n_f32(0);
  for (int64_t round = 0; round < rounds; ++round) {
    for (float32x4_t& a : acc) a = vfmaq_f32(x, a, x);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = vaddq_f32(acc[0], acc[i]);
  volatile float sink = vaddvq_f32(acc[0]);
  static_cast<void>(sink);
  return rounds * kChains * 4;
}

}  // namespace sluice::kernels::neon
