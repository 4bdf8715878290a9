// Encoders for formats that name whole vectors by an index into a grid (IQ1, IQ2, IQ3).
//
// The error of a vector x under the scale f and the grid's entry g is Σ w x² − 2 f A(g) + f² B(g), with A = Σ
// w x g and B = Σ w g². A and B don't depend on f, so they are computed once, by adding up table entries for
// either half of the vector; every scale then looks at all entries of the grid, and its choice is exact.
//
// Signs: a format that stores all of them matches magnitudes. Where seven are stored and the eighth makes the
// number of minuses even, a vector of odd parity must flip one: whichever costs least with that entry, which
// takes 2 · min w|x|g off A. IQ1's entries have signs, and come in two variants, shifted by 1/8 up or down.
#include <memory>

#include "formats/codebook_tables.h"
#include "formats/codebooks.h"
#include "formats/encoders.h"
#include "formats/hull.h"

namespace sluice::formats {
namespace {

// What of a vector's second variant there is, and who chooses.
enum class Variants : uint8_t {
  kNone,
  kFlipped,        // one sign flipped: an odd number of vectors in each eight elements of odd parity
  kShiftOfGroup,   // shifted down instead of up, all vectors of a group alike
  kShiftOfVector,  // … each vector by itself
};

// Entries are numbers of kBits for each element, indices into kValues. d is stored times kHalfFactor.
// kTargets are the codes that a group's largest element is tried at; kSpread are two that lie apart, the
// largest first.
struct GridIQ2 {
  static constexpr int kBits = 2, kVector = 8, kScales = 16;
  static constexpr std::array<int, 4> kValues = {8, 25, 43, 0};
  static constexpr float kHalfFactor = 8;
  static constexpr std::array<float, 14> kTargets = {43, 40, 46, 37, 49, 34, 52, 31, 55, 28, 60, 66, 24, 8};
  static constexpr std::array<float, 2> kSpread = {52, 36};
};
struct GridIQ2_XXS : GridIQ2 {
  static constexpr auto& kCodes = kCodesIQ2_XXS;
  static constexpr int kGroup = 32;
  static constexpr Variants kVariants = Variants::kFlipped;
};
struct GridIQ2_XS : GridIQ2 {
  static constexpr auto& kCodes = kCodesIQ2_XS;
  static constexpr int kGroup = 16;
  static constexpr Variants kVariants = Variants::kFlipped;
};
struct GridIQ2_S : GridIQ2 {
  static constexpr auto& kCodes = kCodesIQ2_S;
  static constexpr int kGroup = 16;
  static constexpr Variants kVariants = Variants::kNone;
};
struct GridIQ3_XXS {
  static constexpr auto& kCodes = kCodesIQ3_XXS;
  static constexpr int kBits = 3, kVector = 4, kGroup = 32, kScales = 16;
  static constexpr std::array<int, 8> kValues = {4, 12, 20, 28, 36, 44, 52, 62};
  static constexpr float kHalfFactor = 4;
  static constexpr Variants kVariants = Variants::kFlipped;
  static constexpr std::array<float, 14> kTargets = {62, 60, 64, 58, 66, 56, 69, 54, 72, 51, 76, 48, 82, 4};
  static constexpr std::array<float, 2> kSpread = {70, 56};
};
struct GridIQ3_S {
  static constexpr auto& kCodes = kCodesIQ3_S;
  static constexpr int kBits = 3, kVector = 4, kGroup = 32, kScales = 16;
  static constexpr std::array<int, 8> kValues = {1, 3, 5, 7, 9, 11, 13, 15};
  static constexpr float kHalfFactor = 1;
  static constexpr Variants kVariants = Variants::kNone;
  static constexpr std::array<float, 14> kTargets = {15,    14.5f, 15.5f, 14,    16, 13.5f, 16.5f,
                                                     13.0f, 17,    12.5f, 17.7f, 12, 19,    1};
  static constexpr std::array<float, 2> kSpread = {16.5f, 13.5f};
};
struct GridIQ1 {
  static constexpr auto& kCodes = kCodesIQ1;
  static constexpr int kBits = 2, kVector = 8, kScales = 8;
  static constexpr std::array<int, 4> kValues = {-8, 0, 8, 0};  // in eighths, before the shift
  static constexpr float kHalfFactor = 8;
  static constexpr std::array<float, 14> kTargets = {12,    13, 11, 14, 10, 15,   9,
                                                     16.5f, 18, 20, 22, 25, 8.5f, 7};
  static constexpr std::array<float, 2> kSpread = {16, 10};
};
struct GridIQ1_S : GridIQ1 {
  static constexpr int kGroup = 32;
  static constexpr Variants kVariants = Variants::kShiftOfGroup;
};
struct GridIQ1_M : GridIQ1 {
  static constexpr int kGroup = 16;
  static constexpr Variants kVariants = Variants::kShiftOfVector;
};

// One group under one scale: the error of any scale, and the codes of one.
template <typename Grid>
class GridGroup {
 public:
  void Set(const float* x, const float* w) {
    x_ = x;
    w_ = w;
    const float largest = std::fabs(formats::Largest(x, Grid::kGroup));
    std::array<float, Grid::kSpread.size()> scales;
    std::ranges::transform(Grid::kSpread, scales.begin(), [=](float target) { return largest / target; });
    for (int v = 0; v < kVectors; ++v) {
      for (int variant = 0; variant < kTables; ++variant) {
        if (Needs(v, variant)) SetHull(v, variant, scales);
      }
    }
  }

  // Σ w (x − scale · code)² − Σ w x² with the best codes.
  float Error(float scale) const {
    int entries[2][kVectors], variants[kVectors];
    return Choose(scale, entries, variants);
  }

  // The codes that Error(scale) stands for.
  void Put(float scale, int8_t* codes) const {
    int entries[2][kVectors], variants[kVectors];
    Choose(scale, entries, variants);
    for (int v = 0; v < kVectors; ++v)
      PutVector(v, variants[v], entries[variants[v]][v], codes + Grid::kVector * v);
  }

  const float* x() const { return x_; }
  const float* w() const { return w_; }

 private:
  static constexpr int kVectors = Grid::kGroup / Grid::kVector;
  static constexpr bool kShifted =
      Grid::kVariants == Variants::kShiftOfGroup || Grid::kVariants == Variants::kShiftOfVector;
  static constexpr int kTables = Grid::kVariants == Variants::kNone ? 1 : 2;
  static constexpr size_t kEntries = std::size(Grid::kCodes);
  static constexpr int kHalfBits = Grid::kBits * Grid::kVector / 2;
  static constexpr int kHalfEntries = 1 << kHalfBits;

  struct Half {
    Pair pairs[kHalfEntries];   // what half an entry adds to A and B
    float least[kHalfEntries];  // the smallest w |x| g
  };

  // The value of an element of an entry.
  static int ValueOf(int code, int variant) {
    const int value = Grid::kValues[static_cast<size_t>(code)];
    if constexpr (kShifted) return value + (variant == 0 ? 1 : -1);
    return value;
  }
  float Target(int i) const { return kShifted ? x_[i] : std::fabs(x_[i]); }

  // All combinations of codes for the elements from `first` on, half a vector.
  static constexpr int kLevels = Grid::kBits == 2 ? 3 : 8;
  void SetHalf(int first, int variant, Half& half) const {
    half.pairs[0] = Pair{0, 0};
    half.least[0] = INFINITY;
    int size = 1;
    for (int i = first; i < first + Grid::kVector / 2; ++i, size <<= Grid::kBits) {
      for (int code = (1 << Grid::kBits) - 1; code >= 0;
           --code) {  // code 0 overwrites what the others start from
        const auto value = static_cast<float>(ValueOf(code, variant));
        const Pair more = {w_[i] * Target(i) * value, w_[i] * value * value};
        for (int k = 0; k < size; ++k) {
          half.pairs[code * size + k] = half.pairs[k] + more;
          half.least[code * size + k] = std::min(half.least[k], more[0]);
        }
      }
    }
  }

  void SetHull(int v, int variant, const std::array<float, Grid::kSpread.size()>& scales) {
    const int first = Grid::kVector * v;
    Half low, high;
    SetHalf(first, variant, low);
    SetHalf(first + Grid::kVector / 2, variant, high);
    std::array<Pair, kEntries> entries;
    const bool flipped = Grid::kVariants == Variants::kFlipped && variant == 1;
    for (size_t e = 0; e < kEntries; ++e) {
      const int code = Grid::kCodes[e], l = code & (kHalfEntries - 1), h = code >> kHalfBits;
      Pair sum = low.pairs[l] + high.pairs[h];
      if (flipped) sum -= Pair{2 * std::min(low.least[l], high.least[h]), 0};
      entries[e] = sum;
    }
    hulls_[variant][v].Set(entries, scales);
  }

  // Whether the eight elements that vector v belongs to have an odd number of minuses.
  bool Odd(int v) const {
    const int first = Grid::kVector * v / 8 * 8;
    bool odd = false;
    for (int i = first; i < first + 8; ++i) odd ^= x_[i] < 0;
    return odd;
  }

  // Whether vector v can take the variant at all.
  bool Needs(int v, int variant) const {
    if constexpr (Grid::kVariants != Variants::kFlipped) return true;
    if constexpr (Grid::kVector == 8) return Odd(v) == (variant == 1);
    return variant == 0 || Odd(v);
  }

  // The best entry of each vector in each variant, which variant it takes, and what that costs in sum.
  float Choose(float scale, int (&entries)[2][kVectors], int (&variants)[kVectors]) const {
    float costs[2][kVectors];
    for (int variant = 0; variant < kTables; ++variant) {
      for (int v = 0; v < kVectors; ++v) {
        costs[variant][v] = Needs(v, variant) ? hulls_[variant][v].LeastCost(scale, &entries[variant][v]) : 0;
      }
    }
    std::fill(variants, variants + kVectors, 0);
    float sum = 0;
    if constexpr (Grid::kVariants == Variants::kShiftOfGroup) {
      float down = 0;
      for (int v = 0; v < kVectors; ++v) {
        sum += costs[0][v];
        down += costs[1][v];
      }
      if (down < sum) std::fill(variants, variants + kVectors, 1);
      return std::min(sum, down);
    }
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (Grid::kVariants == Variants::kShiftOfVector)
        variants[v] = costs[1][v] < costs[0][v] ? 1 : 0;
      if constexpr (Grid::kVariants == Variants::kFlipped) variants[v] = Flips(costs, v) ? 1 : 0;
      sum += costs[variants[v]][v];
    }
    return sum;
  }

  bool Flips(const float (&costs)[2][kVectors], int v) const {
    if (!Odd(v)) return false;
    if constexpr (Grid::kVector == 8) return true;
    const int first = v & ~1, second = first + 1;
    const bool flip_first = costs[1][first] + costs[0][second] <= costs[0][first] + costs[1][second];
    return flip_first == (v == first);
  }

  void PutVector(int v, int variant, int entry, int8_t* codes) const {
    const int first = Grid::kVector * v;
    int cheapest = 0;
    float least = INFINITY;
    for (int j = 0; j < Grid::kVector; ++j) {
      const int value = ValueOf(Grid::kCodes[entry] >> (Grid::kBits * j) & ((1 << Grid::kBits) - 1), variant);
      const float x = x_[first + j], cost = w_[first + j] * Target(first + j) * static_cast<float>(value);
      codes[j] = static_cast<int8_t>(!kShifted && x < 0 ? -value : value);
      if (cost < least) {
        least = cost;
        cheapest = j;
      }
    }
    if (Grid::kVariants == Variants::kFlipped && variant == 1)
      codes[cheapest] = static_cast<int8_t>(-codes[cheapest]);
  }

  const float* x_ = nullptr;  // [kGroup]
  const float* w_ = nullptr;  // [kGroup]
  Hull hulls_[kTables][kVectors];
};

// How a group's codes and scale meet its values: Σ w x (s c) and Σ w (s c)².
struct Sums {
  float product = 0, curve = 0;
};
Sums SumsOf(const float* x, const float* w, const int8_t* codes, int length, float scale) {
  Sums sums;
  for (int i = 0; i < length; ++i) {
    const float value = scale * static_cast<float>(codes[i]);
    sums.product += w[i] * x[i] * value;
    sums.curve += w[i] * value * value;
  }
  return sums;
}

// A super-block: scales 1, 3 … 2 · kScales − 1 for each group under d.
template <typename Grid>
class GridFit {
 public:
  explicit GridFit(const FitBlock& block)
      : block_(block), groups_(std::make_unique_for_overwrite<GridGroup<Grid>[]>(kGroups)) {
    for (int g = 0; g < kGroups; ++g) {
      groups_[static_cast<size_t>(g)].Set(block.x + Grid::kGroup * g, block.w + Grid::kGroup * g);
      wanted_[g] = WantedScale(groups_[static_cast<size_t>(g)]);
    }
  }

  void Fit(UnpackedBlock& out) {
    const float largest = *std::max_element(wanted_, wanted_ + kGroups);
    if (largest > 0) {
      constexpr float kLargestScale = 2 * Grid::kScales - 1;
      for (const float less : {0.0f, 1.0f, 2.0f, 3.0f, -1.0f}) Try(HalfOf(largest / (kLargestScale - less)));
    }
    Put(out);
    for (int round = 0; round < 2; ++round) {
      Sums sums;
      for (int g = 0; g < kGroups; ++g) {
        const Sums group =
            SumsOf(block_.x + Grid::kGroup * g, block_.w + Grid::kGroup * g, out.codes + Grid::kGroup * g,
                   Grid::kGroup, static_cast<float>(best_.scales[g]));
        sums.product += group.product;
        sums.curve += group.curve;
      }
      const HalfScale d = HalfOf(sums.product / sums.curve);
      if (d.bits == best_.d.bits || !Try(d)) break;
      Put(out);
    }
  }

 private:
  static constexpr int kGroups = 256 / Grid::kGroup;
  struct Trial {
    HalfScale d{};
    int scales[kGroups];
    float error = 0;
    Trial() { std::fill(scales, scales + kGroups, 1); }
  };

  HalfScale HalfOf(float d) const { return ToGroupScale(d * Grid::kHalfFactor, block_); }

  static float WantedScale(const GridGroup<Grid>& group) {
    const float largest = std::fabs(Largest(group.x(), Grid::kGroup));
    if (largest < kNothing) return 0;
    float best = 0, best_error = 0;
    const auto consider = [&](float scale) {
      const float error = group.Error(scale);
      if (!(error < best_error)) return false;
      best = scale;
      best_error = error;
      return true;
    };
    for (const float target : Grid::kTargets) consider(largest / target);
    int8_t codes[Grid::kGroup];
    for (int round = 0; round < 2 && best > 0; ++round) {
      group.Put(best, codes);
      const Sums sums = SumsOf(group.x(), group.w(), codes, Grid::kGroup, 1);
      if (!consider(sums.product / sums.curve)) break;
    }
    return best;
  }

  bool Try(HalfScale d) {
    Trial trial;
    trial.d = d;
    const float step = d.value / Grid::kHalfFactor, inverse = Inverse(step);
    for (int g = 0; g < kGroups; ++g) {
      const int middle =
          static_cast<int>(UniformCodes<0, Grid::kScales - 1>::Nearest(0.5f * (wanted_[g] * inverse - 1)));
      float best = INFINITY;
      for (int s = std::max(middle - 1, 0); s <= std::min(middle + 1, Grid::kScales - 1); ++s) {
        const float error = groups_[static_cast<size_t>(g)].Error(step * static_cast<float>(2 * s + 1));
        if (!(error < best)) continue;
        best = error;
        trial.scales[g] = 2 * s + 1;
      }
      trial.error += best;
    }
    if (!(trial.error < best_.error)) return false;
    best_ = trial;
    return true;
  }

  void Put(UnpackedBlock& out) const {
    out.d = F16ToF32(best_.d.bits) / Grid::kHalfFactor;
    out.dmin = 0;
    for (int g = 0; g < kGroups; ++g) {
      const float step = best_.d.value / Grid::kHalfFactor * static_cast<float>(best_.scales[g]);
      groups_[static_cast<size_t>(g)].Put(step, out.codes + Grid::kGroup * g);
      for (int k = g * Grid::kGroup / kGroupLength; k < (g + 1) * Grid::kGroup / kGroupLength; ++k) {
        out.scales[k] = best_.scales[g];
        out.mins[k] = 0;
      }
    }
  }

  const FitBlock& block_;
  std::unique_ptr<GridGroup<Grid>[]> groups_;
  float wanted_[kGroups];  // the scale of each group by itself
  Trial best_;
};

}  // namespace

void FitIQ1_S(const FitBlock& block, UnpackedBlock& out) { GridFit<GridIQ1_S>(block).Fit(out); }
void FitIQ1_M(const FitBlock& block, UnpackedBlock& out) { GridFit<GridIQ1_M>(block).Fit(out); }
void FitIQ2_XXS(const FitBlock& block, UnpackedBlock& out) { GridFit<GridIQ2_XXS>(block).Fit(out); }
void FitIQ2_XS(const FitBlock& block, UnpackedBlock& out) { GridFit<GridIQ2_XS>(block).Fit(out); }
void FitIQ2_S(const FitBlock& block, UnpackedBlock& out) { GridFit<GridIQ2_S>(block).Fit(out); }
void FitIQ3_XXS(const FitBlock& block, UnpackedBlock& out) { GridFit<GridIQ3_XXS>(block).Fit(out); }
void FitIQ3_S(const FitBlock& block, UnpackedBlock& out) { GridFit<GridIQ3_S>(block).Fit(out); }

}  // namespace sluice::formats
