// With the int8 matrix multiplication (ARMv8.6, optional before): SMMLA multiplies two rows of 8 by two
// columns of 8.
#include "kernels/arm/table.h"

namespace sluice::kernels {
namespace {

struct I8mm {
  // The instruction of Int8Peak and the products that it makes.
  static constexpr int kPeakMacs = 32;
  static int32x4_t Peak(int32x4_t acc, int8x16_t w, int8x16_t q) { return vmmlaq_s32(acc, w, q); }

  // One activation row leaves half of SMMLA idle, so SDOT it is.
  static int32x4_t Dot(int32x4_t acc, int8x16_t w, int8x16_t q) { return vdotq_s32(acc, w, q); }

  // Columns 0 … 7 of rows 0 and 1, of rows 2 and 3; then columns 8 … 15 of the same.
  static void Pack(const int8x16_t* rows, int8_t* panel) {
    vst1q_s8(panel, Low(rows[0], rows[1]));
    vst1q_s8(panel + 16, Low(rows[2], rows[3]));
    vst1q_s8(panel + 32, High(rows[0], rows[1]));
    vst1q_s8(panel + 48, High(rows[2], rows[3]));
  }

  template <int kColumns, int kBatch>
  static void PanelDots(const int8_t* panel, const int8_t* const* q, int32x4_t* out) {
    static_assert(kBatch % 2 == 0);
    // Lanes: w0·x0, w0·x1, w1·x0, w1·x1 for weight rows 0 and 1 (then 2 and 3) and each pair of
    // activation rows.
    int32x4_t first[kBatch / 2] = {};
    int32x4_t second[kBatch / 2] = {};
    for (int c = 0; c < kColumns; c += 16) {
      const int8_t* w = panel + 4 * c;
      for (int pair = 0; pair < kBatch / 2; ++pair) {
        const int8x16_t x0 = vld1q_s8(q[2 * pair] + c);
        const int8x16_t x1 = vld1q_s8(q[2 * pair + 1] + c);
        const int8x16_t low = Low(x0, x1);
        const int8x16_t high = High(x0, x1);
        first[pair] = vmmlaq_s32(first[pair], vld1q_s8(w), low);
        second[pair] = vmmlaq_s32(second[pair], vld1q_s8(w + 16), low);
        first[pair] = vmmlaq_s32(first[pair], vld1q_s8(w + 32), high);
        second[pair] = vmmlaq_s32(second[pair], vld1q_s8(w + 48), high);
      }
    }
    for (int pair = 0; pair < kBatch / 2; ++pair) {
      out[2 * pair] = vuzp1q_s32(first[pair], second[pair]);
      out[2 * pair + 1] = vuzp2q_s32(first[pair], second[pair]);
    }
  }

 private:
  static int8x16_t Low(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
  }
  static int8x16_t High(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
  }
};

bool Supported(const platform::CpuFeatures& cpu) { return cpu.neon && cpu.dotprod && cpu.i8mm; }

}  // namespace

constinit const Kernels kI8mmKernels = arm::MakeTable<I8mm>("i8mm", Supported);

}  // namespace sluice::kernels
