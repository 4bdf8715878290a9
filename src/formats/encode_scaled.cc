// Encoders for formats without a minimum: one scale for a block (Q4_0, Q5_0, Q8_0, IQ4_NL), or an f16 scale
// times a small integer for each group (Q3_K, Q6_K, IQ4_XS).
#include "formats/codebooks.h"
#include "formats/encoders.h"
#include "formats/families.h"

namespace sluice::formats {
namespace {

// Codes that the largest element is tried at, besides the last code at either end: from kFirst to kLast in
// kCount steps, on the negative and, where the codes are not symmetrical, on the positive side.
template <int kCount>
constexpr std::array<float, 2 * kCount> BothSides(float first, float last) {
  std::array<float, 2 * kCount> targets{};
  for (size_t i = 0; i < kCount; ++i) {
    const float target = first + (last - first) * static_cast<float>(i) / (kCount - 1);
    targets[2 * i] = -target;
    targets[2 * i + 1] = target;
  }
  return targets;
}

// A block with one scale.
template <typename Codes>
void FitPlain(const FitBlock& block, std::span<const float> targets, UnpackedBlock& out) {
  const Fit fit = FitScale<Codes>(block.x, block.w, block.length, targets);
  const HalfScale nearest = ToHalfScale(fit.scale, block);
  HalfScale best = nearest;
  float best_error = Measure<Codes>(block.x, block.w, block.length, best.value).error;
  for (const int step : {1, -1}) {
    const HalfScale scale = Neighbour(nearest, step, block);
    const float error = Measure<Codes>(block.x, block.w, block.length, scale.value).error;
    if (error < best_error) {
      best = scale;
      best_error = error;
    }
  }
  SetPlainScale(F16ToF32(best.bits), block.length, out);
  PutCodes<Codes>(block.x, block.length, best.value, out.codes);
}

// Super-blocks: groups of kGroup elements, scales from kLow to kHigh, d a half.
template <typename Codes, int kGroup, int kLow, int kHigh>
class GroupFit {
 public:
  GroupFit(const FitBlock& block, std::span<const float> targets) : block_(block) {
    for (int g = 0; g < kGroups; ++g)
      wanted_[g] = FitScale<Codes>(block.x + kGroup * g, block.w + kGroup * g, kGroup, targets).scale;
  }

  void Fit(std::span<const float> largest_scales, UnpackedBlock& out) {
    const float largest = Largest(wanted_, kGroups);
    Try(HalfScale{0, 0});
    if (largest != 0) {
      for (const float target : largest_scales) Try(ToGroupScale(largest / target, block_));
      for (int round = 0; round < 3; ++round) {
        const HalfScale d = ToHalfScale(best_.d.value + best_.step, block_);
        if (d.bits == best_.d.bits || !Try(d)) break;
      }
    }
    Put(out);
  }

 private:
  static constexpr int kGroups = 256 / kGroup;
  struct Trial {
    HalfScale d{};
    int scales[kGroups]{};
    float error = INFINITY;
    float step = 0;  // to the best d for these scales and codes
  };

  // The best scale of each group under d, looked for beside the wanted one; keeps the trial if it is the best
  // so far.
  bool Try(HalfScale d) {
    Trial trial{.d = d, .error = 0};
    const float inverse = Inverse(d.value);
    float slope = 0, curve = 0;
    for (int g = 0; g < kGroups; ++g) {
      const int middle = static_cast<int>(UniformCodes<kLow, kHigh>::Nearest(wanted_[g] * inverse));
      Residual best{.error = INFINITY};
      for (int scale = std::max(middle - 1, kLow); scale <= std::min(middle + 1, kHigh); ++scale) {
        const Residual residual = Measure<Codes>(block_.x + kGroup * g, block_.w + kGroup * g, kGroup,
                                                 d.value * static_cast<float>(scale));
        if (!(residual.error < best.error)) continue;
        best = residual;
        trial.scales[g] = scale;
      }
      const auto scale = static_cast<float>(trial.scales[g]);
      trial.error += best.error;
      slope += best.slope * scale;
      curve += best.curve * scale * scale;
    }
    trial.step = curve > 0 ? slope / curve : 0;
    if (!(trial.error < best_.error)) return false;
    best_ = trial;
    return true;
  }

  void Put(UnpackedBlock& out) const {
    out.d = F16ToF32(best_.d.bits);
    out.dmin = 0;
    for (int g = 0; g < kGroups; ++g) {
      const float step = best_.d.value * static_cast<float>(best_.scales[g]);
      PutCodes<Codes>(block_.x + kGroup * g, kGroup, step, out.codes + kGroup * g);
      for (int k = g * kGroup / kGroupLength; k < (g + 1) * kGroup / kGroupLength; ++k) {
        out.scales[k] = best_.scales[g];
        out.mins[k] = 0;
      }
    }
  }

  const FitBlock& block_;
  float wanted_[kGroups];  // the scale of each group by itself
  Trial best_;
};

using CodesIQ4_NL = TableCodes<kValuesIQ4_NL>;
constexpr auto kTargetsIQ4 = BothSides<12>(90, 156);

}  // namespace

void FitQ4_0(const FitBlock& block, UnpackedBlock& out) {
  static constexpr auto kTargets = BothSides<11>(6.5f, 9.0f);
  FitPlain<UniformCodes<-8, 7>>(block, kTargets, out);
}

void FitQ5_0(const FitBlock& block, UnpackedBlock& out) {
  static constexpr auto kTargets = BothSides<11>(14.5f, 17.0f);
  FitPlain<UniformCodes<-16, 15>>(block, kTargets, out);
}

void FitQ8_0(const FitBlock& block, UnpackedBlock& out) {
  static constexpr std::array<float, 7> kTargets = {127, 126.5f, 126, 127.25f, 125.5f, 125, 124.5f};
  FitPlain<UniformCodes<-127, 127>>(block, kTargets, out);
}

void FitIQ4_NL(const FitBlock& block, UnpackedBlock& out) { FitPlain<CodesIQ4_NL>(block, kTargetsIQ4, out); }

void FitQ3_K(const FitBlock& block, UnpackedBlock& out) {
  static constexpr auto kTargets = BothSides<9>(2.75f, 4.75f);
  static constexpr std::array<float, 5> kScales = {-32, -31, 31, -30, 30};
  GroupFit<UniformCodes<-4, 3>, 16, -32, 31>(block, kTargets).Fit(kScales, out);
}

void FitQ6_K(const FitBlock& block, UnpackedBlock& out) {
  static constexpr auto kTargets = BothSides<5>(31, 33);
  static constexpr std::array<float, 2> kScales = {-128, 127};
  GroupFit<UniformCodes<-32, 31>, 16, -128, 127>(block, kTargets).Fit(kScales, out);
}

void FitIQ4_XS(const FitBlock& block, UnpackedBlock& out) {
  static constexpr std::array<float, 4> kScales = {-32, 31, -31, -30};
  GroupFit<CodesIQ4_NL, 32, -32, 31>(block, kTargetsIQ4).Fit(kScales, out);
}

}  // namespace sluice::formats
