#include "formats/refine.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/half.h"
#include "formats/freedom.h"
#include "formats/grid_choice.h"

namespace sluice::formats {
namespace {

float StepOf(const UnpackedBlock& block, int i) {
  return block.d * static_cast<float>(block.scales[i / kGroupLength]);
}
float OffsetOf(const UnpackedBlock& block, int i) {
  return block.dmin * static_cast<float>(block.mins[i / kGroupLength]);
}

// The level nearest to a value.
int NearestLevel(std::span<const int8_t> levels, float value) {
  const auto above = std::lower_bound(levels.begin(), levels.end(), value,
                                      [](int8_t level, float v) { return static_cast<float>(level) < v; });
  if (above == levels.begin()) return *above;
  if (above == levels.end()) return levels.back();
  const float up = static_cast<float>(*above) - value, down = value - static_cast<float>(above[-1]);
  return up < down ? *above : above[-1];
}

// The integer nearest to a value among those from low to high in steps.
int NearestScale(const Freedom& freedom, float value) {
  const auto low = static_cast<float>(freedom.scale_low), step = static_cast<float>(freedom.scale_step);
  const float steps = (std::clamp(value, low, static_cast<float>(freedom.scale_high)) - low) / step;
  return freedom.scale_low + freedom.scale_step * static_cast<int>(steps + 0.5f);
}

// As the block stores it: the nearest of 16 bits.
float Stored(float scale, float half_factor) {
  const float largest = 65504.0f;
  return F16ToF32(F32ToF16(std::clamp(scale * half_factor, -largest, largest))) / half_factor;
}

// Improves one block.
class Refiner {
 public:
  Refiner(const Freedom& freedom, SquareView metric, float* gradient, UnpackedBlock& block)
      : freedom_(freedom), metric_(metric), gradient_(gradient), block_(block) {}

  // One round over everything that there is to choose.
  float Round() {
    const float before = gained_;
    if (freedom_.grid.vector > 0) {
      for (int i = 0; i < freedom_.length; i += kUnit) ChangeUnit(i);
    } else {
      for (int i = 0; i < freedom_.length; ++i) ChangeCode(i);
    }
    for (int first = 0; first < freedom_.length; first += freedom_.group) {
      if (freedom_.scale_low < freedom_.scale_high) ChangeScale(first);
      if (freedom_.min_high > 0) ChangeMin(first);
    }
    if (freedom_.half_factor > 0) ChangeHalves();
    return gained_ - before;
  }
  float gained() const { return gained_; }

 private:
  // y_i grows by `change`.
  void Shift(int i, float change) {
    const float* row = metric_.row(i);
    for (int j = 0; j < freedom_.length; ++j) gradient_[j] -= change * row[j];
  }

  void ChangeCode(int i) {
    const float step = StepOf(block_, i), curve = metric_.row(i)[i];
    if (step == 0 || !(curve > 0)) return;
    const int code = block_.codes[i];
    const int next = NearestLevel(freedom_.levels, static_cast<float>(code) + gradient_[i] / (curve * step));
    if (next == code) return;
    const float change = step * static_cast<float>(next - code);
    const float gain = change * (2 * gradient_[i] - change * curve);
    if (!(gain > 0)) return;
    block_.codes[i] = static_cast<int8_t>(next);
    gained_ += gain;
    Shift(i, change);
  }

  void ChangeUnit(int first) {
    const float step = StepOf(block_, first);
    if (step == 0) return;
    const float s = std::fabs(step), sign = step < 0 ? -1.0f : 1.0f;
    float m[kUnit][kUnit], b[kUnit], y[kUnit], wanted[kUnit];
    for (int i = 0; i < kUnit; ++i) y[i] = step * static_cast<float>(block_.codes[first + i]);
    for (int i = 0; i < kUnit; ++i) {
      b[i] = gradient_[first + i];
      for (int j = 0; j < kUnit; ++j) {
        m[i][j] = metric_.row(first + i)[first + j];
        b[i] += m[i][j] * y[j];
      }
      wanted[i] = y[i] + (m[i][i] > 0 ? gradient_[first + i] / m[i][i] : 0);
    }
    int8_t codes[kUnit];
    ChooseUnit(freedom_.grid, m, b, wanted, s, codes);
    float change[kUnit], gain = 0;
    for (int i = 0; i < kUnit; ++i) change[i] = step * sign * static_cast<float>(codes[i]) - y[i];
    for (int i = 0; i < kUnit; ++i) {
      float bend = 0;
      for (int j = 0; j < kUnit; ++j) bend += m[i][j] * change[j];
      gain += change[i] * (2 * gradient_[first + i] - bend);
    }
    if (!(gain > 0)) return;
    gained_ += gain;
    for (int i = 0; i < kUnit; ++i) {
      if (change[i] == 0) continue;
      block_.codes[first + i] = static_cast<int8_t>(sign * static_cast<float>(codes[i]));
      Shift(first + i, change[i]);
    }
  }

  // Along a direction of the group's values: its slope (half of what the error falls by at first) and curve.
  struct Parabola {
    float slope = 0, curve = 0;
    float Best() const { return curve > 0 ? slope / curve : 0; }
    float Gain(float change) const { return change * (2 * slope - change * curve); }
  };
  Parabola Along(int first, const float* direction) const {
    Parabola parabola;
    for (int i = 0; i < freedom_.group; ++i) {
      const float* row = metric_.row(first + i) + first;
      float bend = 0;
      for (int j = 0; j < freedom_.group; ++j) bend += row[j] * direction[j];
      parabola.slope += direction[i] * gradient_[first + i];
      parabola.curve += direction[i] * bend;
    }
    return parabola;
  }

  void ChangeInteger(int first, const float* direction, int32_t* integers, int next) {
    const int now = integers[first / kGroupLength];
    const float change = static_cast<float>(next - now);
    const float gain = Along(first, direction).Gain(change);
    if (next == now || !(gain > 0)) return;
    gained_ += gain;
    for (int g = first / kGroupLength; g < (first + freedom_.group) / kGroupLength; ++g) integers[g] = next;
    for (int i = 0; i < freedom_.group; ++i) {
      if (direction[i] != 0) Shift(first + i, change * direction[i]);
    }
  }

  void ChangeScale(int first) {
    float direction[kMaxBlockLength];
    for (int i = 0; i < freedom_.group; ++i)
      direction[i] = block_.d * static_cast<float>(block_.codes[first + i]);
    const float now = static_cast<float>(block_.scales[first / kGroupLength]);
    const int next = NearestScale(freedom_, now + Along(first, direction).Best());
    ChangeInteger(first, direction, block_.scales, next);
  }

  void ChangeMin(int first) {
    float direction[kMaxBlockLength];
    std::fill(direction, direction + freedom_.group, -block_.dmin);
    const float now = static_cast<float>(block_.mins[first / kGroupLength]);
    const float wanted =
        std::clamp(now + Along(first, direction).Best(), 0.0f, static_cast<float>(freedom_.min_high));
    ChangeInteger(first, direction, block_.mins, static_cast<int>(wanted + 0.5f));
  }

  // A direction of all values of the block, and the metric's image of it.
  struct Direction {
    float values[kMaxBlockLength], image[kMaxBlockLength];
    float slope = 0, curve = 0;
  };
  void Prepare(Direction& direction) const {
    std::fill(direction.image, direction.image + freedom_.length, 0.0f);
    for (int i = 0; i < freedom_.length; ++i) {
      const float value = direction.values[i], *row = metric_.row(i);
      if (value == 0) continue;
      for (int j = 0; j < freedom_.length; ++j) direction.image[j] += value * row[j];
    }
    direction.slope = direction.curve = 0;
    for (int i = 0; i < freedom_.length; ++i) {
      direction.slope += direction.values[i] * gradient_[i];
      direction.curve += direction.values[i] * direction.image[i];
    }
  }

  // d and dmin by least squares, as far as 16 bits can follow.
  void ChangeHalves() {
    Direction scale, minimum;
    for (int i = 0; i < freedom_.length; ++i) {
      const int group = i / kGroupLength;
      scale.values[i] = static_cast<float>(block_.scales[group] * block_.codes[i]);
      minimum.values[i] = -static_cast<float>(block_.mins[group]);
    }
    Prepare(scale);
    float across = 0;
    if (freedom_.has_minimum) {
      Prepare(minimum);
      for (int i = 0; i < freedom_.length; ++i) across += scale.values[i] * minimum.image[i];
    } else {
      minimum.slope = minimum.curve = 0;
    }
    if (!(scale.curve > 0)) return;
    float d = scale.slope / scale.curve, m = 0;
    const float determinant = scale.curve * minimum.curve - across * across;
    if (determinant > 1e-6f * scale.curve * minimum.curve) {
      d = (scale.slope * minimum.curve - minimum.slope * across) / determinant;
      m = (minimum.slope * scale.curve - scale.slope * across) / determinant;
    }
    const float next_d = Stored(block_.d + d, freedom_.half_factor);
    const float next_dmin = m != 0 ? Stored(block_.dmin + m, 1) : block_.dmin;
    d = next_d - block_.d;
    m = next_dmin - block_.dmin;
    const float gain = d * (2 * scale.slope - d * scale.curve) + m * (2 * minimum.slope - m * minimum.curve) -
                       2 * d * m * across;
    if (!(gain > 0) || !std::isfinite(gain)) return;
    gained_ += gain;
    block_.d = next_d;
    block_.dmin = next_dmin;
    for (int j = 0; j < freedom_.length; ++j) {
      gradient_[j] -= d * scale.image[j];
      if (m != 0) gradient_[j] -= m * minimum.image[j];
    }
  }

  const Freedom& freedom_;
  const SquareView metric_;
  float* const gradient_;
  UnpackedBlock& block_;
  float gained_ = 0;
};

// The codes of eight elements of a grid, whose errors before them have left `carry` (what the factor's
// columns bring along).
void RoundUnit(const Freedom& freedom, std::span<const float> target, SquareView factor, const float* carry,
               int first, UnpackedBlock& block) {
  const float step = StepOf(block, first);
  // R = Uᵀ over these elements: the error that counts is R (t − y) + carry.
  float wanted[kUnit], m[kUnit][kUnit] = {}, b[kUnit];
  for (int i = 0; i < kUnit; ++i) {
    float shift = carry[first + i];
    for (int k = 0; k < i; ++k)
      shift -= factor.row(first + k)[first + i] * (wanted[k] - target[static_cast<size_t>(first + k)]);
    wanted[i] = target[static_cast<size_t>(first + i)] + shift / factor.row(first + i)[first + i];
  }
  for (int i = 0; i < kUnit; ++i) {
    for (int j = 0; j <= i; ++j) {
      for (int k = i; k < kUnit; ++k)
        m[i][j] += factor.row(first + i)[first + k] * factor.row(first + j)[first + k];
      m[j][i] = m[i][j];
    }
  }
  for (int i = 0; i < kUnit; ++i) {
    b[i] = 0;
    for (int j = 0; j < kUnit; ++j) b[i] += m[i][j] * wanted[j];
  }
  if (step == 0) return;
  const float sign = step < 0 ? -1.0f : 1.0f;
  for (int i = 0; i < kUnit; ++i) {
    b[i] *= sign;
    wanted[i] *= sign;
  }
  ChooseUnit(freedom.grid, m, b, wanted, std::fabs(step), block.codes + first);
}

}  // namespace

bool CanRefine(DType dtype) { return FreedomOf(dtype) != nullptr; }

void ValuesOf(const UnpackedBlock& block, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const int at = static_cast<int>(i);
    values[i] = StepOf(block, at) * static_cast<float>(block.codes[i]) - OffsetOf(block, at);
  }
}

void RoundWithFeedback(DType dtype, std::span<const float> target, SquareView factor, UnpackedBlock& block) {
  const Freedom* freedom = FreedomOf(dtype);
  SLUICE_CHECK(freedom != nullptr && target.size() == static_cast<size_t>(freedom->length));
  float carry[kMaxBlockLength] = {};
  const auto spread = [&](int i) {
    const float value = StepOf(block, i) * static_cast<float>(block.codes[i]) - OffsetOf(block, i);
    const float error = target[static_cast<size_t>(i)] - value, *row = factor.row(i);
    for (int j = i + 1; j < freedom->length; ++j) carry[j] += error * row[j];
  };
  if (freedom->grid.vector > 0) {
    for (int first = 0; first < freedom->length; first += kUnit) {
      RoundUnit(*freedom, target, factor, carry, first, block);
      for (int i = first; i < first + kUnit; ++i) spread(i);
    }
    return;
  }
  for (int i = 0; i < freedom->length; ++i) {
    const float step = StepOf(block, i);
    const float wanted = target[static_cast<size_t>(i)] + carry[i] / factor.row(i)[i] + OffsetOf(block, i);
    if (step != 0) block.codes[i] = static_cast<int8_t>(NearestLevel(freedom->levels, wanted / step));
    spread(i);
  }
}

float Refine(DType dtype, SquareView metric, int rounds, std::span<float> gradient, UnpackedBlock& block) {
  const Freedom* freedom = FreedomOf(dtype);
  SLUICE_CHECK(freedom != nullptr && gradient.size() == static_cast<size_t>(freedom->length));
  Refiner refiner(*freedom, metric, gradient.data(), block);
  for (int round = 0; round < rounds && refiner.Round() > 0; ++round) continue;
  return refiner.gained();
}

}  // namespace sluice::formats
