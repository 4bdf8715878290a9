// Rotary position embedding: which angle each pair of a head turns by at each position, for every scaling scheme.
//
// Sources: RoPE (arXiv 2104.09864); linear scaling; YaRN (2309.00071); LongRoPE (2402.13753); the llama 3 rule, which
// GGUF files carry as per-pair divisors in rope_freqs.weight. All constants are computed in double with base/math.h's
// own functions, so that every machine has the same tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::ops {

enum class RopeScaling { kNone, kLinear, kYarn, kLongRope };

struct RopeSpec {
  int dimensions = 0;  // elements of a head that turn; the rest stay. 0 = no rope
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                   // context extension, for linear and YaRN
  int64_t original_context = 0;          // for YaRN
  double beta_fast = 32.0, beta_slow = 1.0;
  double attention_factor = 1.0;         // multiplies cos and sin
  double yarn_log_multiplier = 0.0;      // mscale_all_dim in the original configurations; 0 = absent
  std::vector<float> divisors;           // [dimensions / 2] or empty
};

// The frequencies of a spec, and the cos and sin of one position. Immutable; any thread.
class Rope {
 public:
  explicit Rope(const RopeSpec& spec);
  int64_t pairs() const { return static_cast<int64_t>(frequencies_.size()); }
  // cos, sin: [pairs]
  void Angles(int64_t position, float* cos, float* sin) const;
  // The same for turning by `distance` positions, forth or back, what has been through Angles already.
  void Turn(int64_t distance, float* cos, float* sin) const;

 private:
  void Fill(int64_t position, double magnitude, float* cos, float* sin) const;

  std::vector<double> frequencies_;  // radians per position
  double magnitude_ = 1.0;
};

}  // namespace sluice::ops
