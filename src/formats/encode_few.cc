// Encoders for formats of two to four codes under one scale: the best scale is found exactly. As the scale
// shrinks, elements move to larger codes one after the other; between two such moves the best scale is a
// quotient of sums.
#include "formats/encoders.h"
#include "formats/families.h"

namespace sluice::formats {
namespace {

// Element `index` moves from the code before `code` to `code` when the inverse of the scale passes `at`.
struct Move {
  float at;
  int index;
  float code, before;
  bool operator<(const Move& other) const { return at != other.at ? at < other.at : index < other.index; }
};

// The exactly best positive scale for codes −1 … kHigh (a whole number at or above −1).
template <int kHigh>
Fit BestPositiveScale(const FitBlock& block, float sign) {
  std::array<Move, kMaxBlockLength * kHigh> moves;
  size_t count = 0;
  float squares = 0;
  for (int i = 0; i < block.length; ++i) {
    const float x = sign * block.x[i];
    squares += block.w[i] * x * x;
    const int codes = std::fabs(x) < kNothing ? 0 : x > 0 ? kHigh : 1;
    for (int c = 1; c <= codes; ++c) {
      const float direction = x > 0 ? 1.0f : -1.0f;
      const auto code = static_cast<float>(c);
      moves[count++] = {(code - 0.5f) / std::fabs(x), i, direction * code, direction * (code - 1)};
    }
  }
  std::sort(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(count));

  Fit best{0, squares};
  double product = 0, curve = 0;  // Σ w x c, Σ w c²: sums that many small steps change
  for (size_t m = 0; m < count; ++m) {
    const Move& move = moves[m];
    const double weight = block.w[move.index], x = sign * block.x[move.index];
    product += weight * x * (move.code - move.before);
    curve += weight * (move.code * move.code - move.before * move.before);
    const double error = squares - product * product / curve;
    if (error < best.error) best = {static_cast<float>(product / curve), static_cast<float>(error)};
  }
  return best;
}

struct SignCodes {
  template <typename Float>
  static Float Nearest(Float v) {
    return v < 0 ? Float() - 1.0f : Float() + 1.0f;
  }
};

template <typename Codes>
void PutPlain(const FitBlock& block, float scale, UnpackedBlock& out) {
  HalfScale best = ToHalfScale(scale, block);
  if (best.value == 0 && scale != 0) {  // perhaps the smallest scale is better than none
    const HalfScale smallest = FromBits(best.bits | 1, block);
    if (Measure<Codes>(block.x, block.w, block.length, smallest.value).error <
        Measure<Codes>(block.x, block.w, block.length, 0).error)
      best = smallest;
  }
  SetPlainScale(F16ToF32(best.bits), block.length, out);
  PutCodes<Codes>(block.x, block.length, best.value, out.codes);
}

}  // namespace

// Codes −1 and 1: the signs are the codes, and the best scale is the mean magnitude.
void FitQ1_0(const FitBlock& block, UnpackedBlock& out) {
  double sum = 0, weights = 0;
  for (int i = 0; i < block.length; ++i) {
    sum += block.w[i] * std::fabs(block.x[i]);
    weights += block.w[i];
  }
  PutPlain<SignCodes>(block, static_cast<float>(sum / weights), out);
}

void FitQ2_0(const FitBlock& block, UnpackedBlock& out) {
  const Fit positive = BestPositiveScale<2>(block, 1), negative = BestPositiveScale<2>(block, -1);
  PutPlain<UniformCodes<-1, 2>>(block, positive.error <= negative.error ? positive.scale : -negative.scale,
                                out);
}

void FitTernary(const FitBlock& block, UnpackedBlock& out) {
  PutPlain<UniformCodes<-1, 1>>(block, BestPositiveScale<1>(block, 1).scale, out);
}

}  // namespace sluice::formats
