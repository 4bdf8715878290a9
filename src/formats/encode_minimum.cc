// Encoders for formats with a minimum: x = d · code − m (Q4_1, Q5_1), or an f16 scale and an f16 minimum,
// each times a small integer for each group (Q2_K, Q4_K, Q5_K).
#include "formats/encoders.h"

namespace sluice::formats {
namespace {

// x ≈ d · code − m
struct Line {
  float d = 0, m = 0;
};

// What is left of x ≈ d · c − m with the nearest codes c, and how it depends on d and m.
struct LineResidual {
  float error;   // Σ w r²,  r = x − d · c + m
  float rest;    // Σ w r
  float slope;   // Σ w r c
  float codes;   // Σ w c
  float curve;   // Σ w c²
  float weight;  // Σ w
};

// weight: Σ w. length is a multiple of 4.
template <int kTop>
LineResidual MeasureLine(const float* x, const float* w, int length, float weight, const Line& line) {
  const float inverse = Inverse(line.d);
  Lanes error{}, rest{}, slope{}, codes{}, curve{};
  for (int i = 0; i < length; i += kLanes) {
    const Lanes value = Load(x + i) + line.m, w_lanes = Load(w + i);
    const Lanes code = UniformCodes<0, kTop>::Nearest(value * inverse);
    const Lanes r = value - line.d * code;
    const Lanes weighted = w_lanes * r, weighted_code = w_lanes * code;
    error += weighted * r;
    rest += weighted;
    slope += weighted * code;
    codes += weighted_code;
    curve += weighted_code * code;
  }
  return {Fold(error), Fold(rest), Fold(slope), Fold(codes), Fold(curve), weight};
}

float Sum(const float* values, int length) {
  Lanes sum{};
  for (int i = 0; i < length; i += kLanes) sum += Load(values + i);
  return Fold(sum);
}

struct LineFit {
  Line line;
  float error = INFINITY;
};

// The best line for the codes that `from` led to. Without free_minimum, m stays at 0 or above.
LineFit BestLine(const Line& from, const LineResidual& residual, bool free_minimum) {
  const float determinant = residual.weight * residual.curve - residual.codes * residual.codes;
  float step_d = 0, step_m = 0;
  if (determinant > 1e-6f * residual.weight * residual.curve) {
    step_d = (residual.weight * residual.slope - residual.codes * residual.rest) / determinant;
    step_m = -(residual.curve * residual.rest - residual.codes * residual.slope) / determinant;
  } else {
    step_m = -residual.rest / residual.weight;
  }
  if (!free_minimum && from.m + step_m < 0) {
    step_m = -from.m;
    if (residual.curve > 0) step_d = (residual.slope + step_m * residual.codes) / residual.curve;
  }
  // r changes by −step_d · c + step_m.
  const float error = residual.error - 2 * step_d * residual.slope + 2 * step_m * residual.rest +
                      step_d * step_d * residual.curve - 2 * step_d * step_m * residual.codes +
                      step_m * step_m * residual.weight;
  return {{from.d + step_d, from.m + step_m}, std::max(error, 0.0f)};
}

// How a line is looked for: the codes span the values' range less a bit at either end. `top` and `bottom` are
// in steps between codes: the largest value comes to code kTop + top, the smallest to code −bottom.
struct Search {
  std::span<const float> tops;
  std::span<const float> bottoms;
  bool free_minimum = false;
  bool thorough = false;  // all pairs of them; otherwise the bottoms with the best top only
};

template <int kTop>
LineFit FitLine(const float* x, const float* w, int length, const Search& search) {
  float low = x[0], high = x[0];
  for (int i = 1; i < length; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  if (!search.free_minimum) low = std::min(low, 0.0f);
  LineFit best;
  const float weight = Sum(w, length);
  const auto consider = [&](const Line& line) {
    const LineFit fit = BestLine(line, MeasureLine<kTop>(x, w, length, weight, line), search.free_minimum);
    if (!(fit.error < best.error)) return false;
    best = fit;
    return true;
  };
  const float range = high - low;
  if (range < kNothing) {
    consider({0, -low});
    return best;
  }
  const auto span = [&](float top, float bottom) {
    const float d = range / (kTop + top + bottom);
    return consider({d, -(low + bottom * d)});
  };
  float best_top = 0;
  for (const float top : search.tops) {
    if (span(top, 0)) best_top = top;
    if (!search.thorough) continue;
    for (const float bottom : search.bottoms) span(top, bottom);
  }
  if (!search.thorough) {
    for (const float bottom : search.bottoms) span(best_top, bottom);
  }
  for (int round = 0; round < 4 && consider(best.line); ++round) continue;
  return best;
}

// A block of 32 with d and m as they are.
template <int kTop>
void FitPlainLine(const FitBlock& block, const Search& search, UnpackedBlock& out) {
  const LineFit fit = FitLine<kTop>(block.x, block.w, block.length, search);
  const HalfScale middle_d = ToHalfScale(fit.line.d, block), middle_m = ToHalfScale(fit.line.m, block);
  HalfScale best_d = middle_d, best_m = middle_m;
  const float weight = Sum(block.w, block.length);
  float best_error = INFINITY;
  for (const int step_d : {0, 1, -1}) {
    const HalfScale d = Neighbour(middle_d, step_d, block);
    for (const int step_m : {0, 1, -1}) {
      const HalfScale m = Neighbour(middle_m, step_m, block);
      const float error = MeasureLine<kTop>(block.x, block.w, block.length, weight, {d.value, m.value}).error;
      if (!(error < best_error)) continue;
      best_error = error;
      best_d = d;
      best_m = m;
    }
  }
  out.d = F16ToF32(best_d.bits);
  out.dmin = F16ToF32(best_m.bits);
  for (int g = 0; g < 2; ++g) out.scales[g] = out.mins[g] = 1;
  float shifted[kMaxBlockLength];
  for (int i = 0; i < block.length; ++i) shifted[i] = block.x[i] + best_m.value;
  PutCodes<UniformCodes<0, kTop>>(shifted, block.length, best_d.value, out.codes);
}

// Super-blocks: groups of kGroup elements with codes 0 … kTop, scales and minimums 0 … kScales under d and
// dmin.
template <int kTop, int kGroup, int kScales>
class GroupLines {
 public:
  GroupLines(const FitBlock& block, const Search& search) : block_(block), reach_(search.thorough ? 1 : 0) {
    for (int g = 0; g < kGroups; ++g) {
      wanted_[g] = FitLine<kTop>(block.x + kGroup * g, block.w + kGroup * g, kGroup, search).line;
      weight_[g] = Sum(block.w + kGroup * g, kGroup);
    }
  }

  // `largest`: what the largest scale or minimum of a group is tried at.
  void Fit(std::span<const float> largest, UnpackedBlock& out) {
    Line most;
    for (const Line& line : wanted_) {
      most.d = std::max(most.d, line.d);
      most.m = std::max(most.m, line.m);
    }
    for (const float scale : largest) {
      for (const float min : largest) {
        Try(ToGroupScale(most.d / scale, block_), ToGroupScale(most.m / min, block_), reach_);
        if (most.m <= 0) break;
      }
    }
    if (reach_ == 0) Try(best_.d, best_.dmin, 1);
    for (int round = 0; round < 2; ++round) {
      const HalfScale d = ToHalfScale(best_.d.value + best_.step_d, block_);
      const HalfScale dmin = ToHalfScale(best_.dmin.value + best_.step_dmin, block_);
      if ((d.bits == best_.d.bits && dmin.bits == best_.dmin.bits) || !Try(d, dmin, 1)) break;
    }
    Try({0, 0}, {0, 0}, 0);  // where even the smallest scales are too large
    Put(out);
  }

 private:
  static constexpr int kGroups = 256 / kGroup;
  struct Trial {
    HalfScale d{}, dmin{};
    int scales[kGroups]{}, mins[kGroups]{};
    float error = INFINITY;
    float step_d = 0, step_dmin = 0;  // to the best ones for these codes
  };
  struct GroupTrial {
    int scale = 0, min = 0;
    LineResidual residual{.error = INFINITY};
  };

  static int NearestScale(float wanted) {
    return static_cast<int>(UniformCodes<0, kScales>::Nearest(wanted));
  }

  // The best scale and minimum of group g, looked for beside the wanted ones, with scales up to `reach` away.
  GroupTrial TryGroup(int g, HalfScale d, HalfScale dmin, int reach) const {
    const float* const x = block_.x + kGroup * g;
    const float* const w = block_.w + kGroup * g;
    const float inverse_d = Inverse(d.value), inverse_dmin = Inverse(dmin.value);
    GroupTrial best;
    const auto consider = [&](int scale, int min) {
      const Line line{d.value * static_cast<float>(scale), dmin.value * static_cast<float>(min)};
      const LineResidual residual = MeasureLine<kTop>(x, w, kGroup, weight_[g], line);
      if (residual.error < best.residual.error) best = {scale, min, residual};
      // The minimum that suits these codes.
      return NearestScale((line.m - residual.rest / residual.weight) * inverse_dmin);
    };
    const int middle = NearestScale(wanted_[g].d * inverse_d);
    const int wanted_min = NearestScale(wanted_[g].m * inverse_dmin);
    for (int scale = std::max(middle - reach, 0); scale <= std::min(middle + reach, kScales); ++scale) {
      const int better = consider(scale, wanted_min);
      if (better != wanted_min) consider(scale, better);
    }
    return best;
  }

  bool Try(HalfScale d, HalfScale dmin, int reach) {
    Trial trial{.d = d, .dmin = dmin, .error = 0};
    // Normal equations for steps of d and dmin: r changes by −step_d · (s c) + step_dmin · m.
    float dd = 0, dm = 0, mm = 0, rd = 0, rm = 0;
    for (int g = 0; g < kGroups; ++g) {
      const GroupTrial best = TryGroup(g, d, dmin, reach);
      trial.scales[g] = best.scale;
      trial.mins[g] = best.min;
      trial.error += best.residual.error;
      const auto s = static_cast<float>(best.scale), m = static_cast<float>(best.min);
      dd += s * s * best.residual.curve;
      dm += s * m * best.residual.codes;
      mm += m * m * best.residual.weight;
      rd += s * best.residual.slope;
      rm += m * best.residual.rest;
    }
    const float determinant = dd * mm - dm * dm;
    if (determinant > 1e-6f * dd * mm) {
      trial.step_d = (mm * rd - dm * rm) / determinant;
      trial.step_dmin = (dm * rd - dd * rm) / determinant;
    } else if (dd > 0) {
      trial.step_d = rd / dd;
    }
    if (!(trial.error < best_.error)) return false;
    best_ = trial;
    return true;
  }

  void Put(UnpackedBlock& out) const {
    out.d = F16ToF32(best_.d.bits);
    out.dmin = F16ToF32(best_.dmin.bits);
    for (int g = 0; g < kGroups; ++g) {
      const float m = best_.dmin.value * static_cast<float>(best_.mins[g]);
      float shifted[kGroup];
      for (int i = 0; i < kGroup; ++i) shifted[i] = block_.x[kGroup * g + i] + m;
      PutCodes<UniformCodes<0, kTop>>(shifted, kGroup, best_.d.value * static_cast<float>(best_.scales[g]),
                                      out.codes + kGroup * g);
      for (int k = g * kGroup / kGroupLength; k < (g + 1) * kGroup / kGroupLength; ++k) {
        out.scales[k] = best_.scales[g];
        out.mins[k] = best_.mins[g];
      }
    }
  }

  const FitBlock& block_;
  const int reach_;        // of the first trials: how far from the wanted scale integers are tried
  Line wanted_[kGroups];   // of each group by itself
  float weight_[kGroups];  // Σ w
  Trial best_;
};

constexpr std::array<float, 8> kTops16 = {0, -0.5f, 0.5f, 1, -0.9f, 0.25f, -0.25f, 0.75f};
constexpr std::array<float, 3> kBottoms16 = {0.5f, 0.25f, -0.3f};
constexpr std::array<float, 6> kTops32 = {0, -0.5f, 0.5f, 0.25f, -0.25f, 0.9f};
constexpr std::array<float, 2> kBottoms32 = {0.3f, -0.3f};

}  // namespace

void FitQ4_1(const FitBlock& block, UnpackedBlock& out) {
  FitPlainLine<15>(block, {kTops16, kBottoms16, true}, out);
}

void FitQ5_1(const FitBlock& block, UnpackedBlock& out) {
  FitPlainLine<31>(block, {kTops32, kBottoms32, true}, out);
}

void FitQ2_K(const FitBlock& block, UnpackedBlock& out) {
  static constexpr std::array<float, 4> kTops = {0.3f, -0.3f, 0, 0.6f};
  static constexpr std::array<float, 4> kBottoms = {0.15f, 0.3f, 0.6f, -0.3f};
  static constexpr std::array<float, 3> kLargest = {15, 14, 16};
  GroupLines<3, 16, 15>(block, {kTops, kBottoms, false, true}).Fit(kLargest, out);
}

void FitQ4_K(const FitBlock& block, UnpackedBlock& out) {
  static constexpr std::array<float, 2> kLargest = {63, 61.5f};
  GroupLines<15, 32, 63>(block, {kTops16, kBottoms16}).Fit(kLargest, out);
}

void FitQ5_K(const FitBlock& block, UnpackedBlock& out) {
  static constexpr std::array<float, 2> kLargest = {63, 61.5f};
  GroupLines<31, 32, 63>(block, {kTops32, kBottoms32}).Fit(kLargest, out);
}

}  // namespace sluice::formats
