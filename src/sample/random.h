// Random: the one source of chance in sampling, the same on every machine. The generator is xoshiro256** by
// D. Blackman and S. Vigna, its state filled from the seed by SplitMix64 (both public domain,
// https://prng.di.unimi.it); no std distribution is involved. A value; one thread at a time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace sluice::sample {

class Random {
 public:
  using State = std::array<uint64_t, 4>;

  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  // `state` must not be all zero.
  explicit Random(const State& state) : state_(state) {}

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, 1): a multiple of 2^−53.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace sluice::sample
