// With the dot product instructions (ARMv8.2 and later): SDOT adds four products to each 32-bit lane.
#include "kernels/arm/table.h"

namespace sluice::kernels {
namespace {

struct Dotprod {
  // The instruction of Int8Peak and the products that it makes.
  static constexpr int kPeakMacs = 16;
  static int32x4_t Peak(int32x4_t acc, int8x16_t w, int8x16_t q) { return Dot(acc, w, q); }

  static int32x4_t Dot(int32x4_t acc, int8x16_t w, int8x16_t q) { return vdotq_s32(acc, w, q); }

  // Register i of a panel: columns 4i … 4i + 3 of the four rows, one row to a lane. SDOT by element then
  // leaves the sums of the four rows in the lanes, with nothing to add across.
  static void Pack(const int8x16_t* rows, int8_t* panel) {
    int32x4x4_t words;
    for (int j = 0; j < 4; ++j) words.val[j] = vreinterpretq_s32_s8(rows[j]);
    vst4q_s32(reinterpret_cast<int32_t*>(panel), words);  // the transpose is the store's own order
  }

  template <int kColumns, int kBatch>
  static void PanelDots(const int8_t* panel, const int8_t* const* q, int32x4_t* out) {
    for (int b = 0; b < kBatch; ++b) out[b] = vdupq_n_s32(0);
    for (int c = 0; c < kColumns; c += 16) {
      const int8x16_t w0 = vld1q_s8(panel + 4 * c);
      const int8x16_t w1 = vld1q_s8(panel + 4 * c + 16);
      const int8x16_t w2 = vld1q_s8(panel + 4 * c + 32);
      const int8x16_t w3 = vld1q_s8(panel + 4 * c + 48);
      for (int b = 0; b < kBatch; ++b) {
        const int8x16_t x = vld1q_s8(q[b] + c);
        out[b] = vdotq_laneq_s32(out[b], w0, x, 0);
        out[b] = vdotq_laneq_s32(out[b], w1, x, 1);
        out[b] = vdotq_laneq_s32(out[b], w2, x, 2);
        out[b] = vdotq_laneq_s32(out[b], w3, x, 3);
      }
    }
  }
};

bool Supported(const platform::CpuFeatures& cpu) { return cpu.neon && cpu.dotprod; }

}  // namespace

constinit const Kernels kDotprodKernels = arm::MakeTable<Dotprod>("dotprod", Supported);

}  // namespace sluice::kernels
