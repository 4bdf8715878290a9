// Any 64-bit ARM: products by SMULL, pairs of products added up by SADALP.
#include "kernels/arm/table.h"

namespace sluice::kernels {
namespace {

struct Neon {
  // The instruction of Int8Peak and the products that it makes.
  static constexpr int kPeakMacs = 16;
  static int32x4_t Peak(int32x4_t acc, int8x16_t w, int8x16_t q) { return Dot(acc, w, q); }

  // Two products of at most 128 · 127 fit 16 bits.
  static int32x4_t Dot(int32x4_t acc, int8x16_t w, int8x16_t q) {
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(q));
    return vpadalq_s16(acc, vmlal_high_s8(low, w, q));
  }

  // Row by row: there is no product with one lane of 8-bit elements.
  static void Pack(const int8x16_t* rows, int8_t* panel) {
    for (int j = 0; j < 4; ++j) vst1q_s8(panel + 16 * j, rows[j]);
  }

  template <int kColumns, int kBatch>
  static void PanelDots(const int8_t* panel, const int8_t* const* q, int32x4_t* out) {
    int32x4_t sum[kBatch][4] = {};
    for (int c = 0; c < kColumns; c += 16) {
      for (int b = 0; b < kBatch; ++b) {
        const int8x16_t x = vld1q_s8(q[b] + c);
        for (int j = 0; j < 4; ++j) sum[b][j] = Dot(sum[b][j], vld1q_s8(panel + 4 * c + 16 * j), x);
      }
    }
    for (int b = 0; b < kBatch; ++b) out[b] = arm::SumEach(sum[b][0], sum[b][1], sum[b][2], sum[b][3]);
  }
};

bool Supported(const platform::CpuFeatures& cpu) { return cpu.neon; }

}  // namespace

constinit const Kernels kNeonKernels = arm::MakeTable<Neon>("neon", Supported);

}  // namespace sluice::kernels
