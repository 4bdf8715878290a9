// RandomBlocks: blocks of any weight format with random codes, scaled so that the weights have a wanted
// spread. For files that must have the size and the look of a model, but no encoder and no data.
//
// Owns nothing but its state; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/dtype.h"

namespace sluice::quantize {

// Eight interleaved xoshiro256++ generators (Blackman and Vigna, public domain), so that compilers fill
// vectors.
class RandomBytes {
 public:
  explicit RandomBytes(uint64_t seed);
  void Fill(std::span<std::byte> out);

 private:
  static constexpr int kLanes = 8;
  uint64_t state_[4][kLanes];
};

class RandomBlocks {
 public:
  // Weights of mean about 0 and standard deviation `deviation`. dtype: any but the integers and F64. Takes
  // some milliseconds, to find the scales: worth keeping for tensors alike.
  RandomBlocks(formats::DType dtype, float deviation);

  // Begins a sequence of bytes that depends on nothing but the seed, on any machine.
  void Reseed(uint64_t seed) { random_ = RandomBytes(seed); }

  // `out` is whole blocks.
  void Fill(std::span<std::byte> out);

 private:
  // Eight bytes of a block that hold its scale; `values` are the bits that replace those outside of `keep`.
  struct ScaleWindow {
    size_t offset;
    uint64_t keep;
    std::array<uint64_t, 64> values;
  };
  void FillElements(std::span<std::byte> out);
  void ScaleBlocks(std::span<std::byte> out) const;

  const formats::DTypeTraits& traits_;
  RandomBytes random_{0};
  ScaleWindow scale_{};
  std::vector<std::byte> elements_;  // plain types: 4096 values to choose from
};

}  // namespace sluice::quantize
