#include "quantize/random_blocks.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "formats/decode.h"
#include "formats/unpack.h"

namespace sluice::quantize {

using formats::DType;

namespace {

constexpr size_t kElementChoices = 4096;

uint64_t SplitMix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t RotateLeft(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

// Where the scale of a block lies, and how its minimum must follow it for weights with a mean of 0:
// `min_ratio` is (mean of scale · code) / (mean of the minimum's factor) over random bits.
struct ScalePlace {
  size_t d;        // byte offset of the f16 (MXFP4, NVFP4: of their own kind of scale)
  size_t min = 0;  // byte offset of the minimum's f16; 0: none
  float min_ratio = 0;
};

ScalePlace PlaceOf(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
      return {0, 2, -7.5f};
    case DType::kQ5_1:
      return {0, 2, -15.5f};
    case DType::kQ2_K:
      return {80, 82, 1.5f};
    case DType::kQ4_K:
      return {0, 2, 7.5f};
    case DType::kQ5_K:
      return {0, 2, 15.5f};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    case DType::kTQ1_0:
      return {52};
    case DType::kTQ2_0:
      return {64};
    case DType::kIQ1_M:
      return {48};  // in the top nibbles of four words
    default:
      return {0};
  }
}

// The largest code of the scale's own type that is a finite number.
uint32_t LargestScaleCode(DType dtype) {
  if (dtype == DType::kMXFP4) return 254;
  if (dtype == DType::kNVFP4) return 0x7e;
  return 0x7bff;
}

// The bits of a scale, at their places in the eight bytes from `offset` on. All bits set gives the mask.
uint64_t ScaleBits(DType dtype, size_t offset, uint32_t code, uint32_t min_code) {
  const ScalePlace place = PlaceOf(dtype);
  switch (dtype) {
    case DType::kMXFP4:
      return code & 0xff;
    case DType::kNVFP4:
      return (code & 0xff) * uint64_t{0x01010101};
    case DType::kIQ1_M: {
      uint64_t bits = 0;
      for (int w = 0; w < 4; ++w) bits |= static_cast<uint64_t>((code >> (4 * w)) & 15) << (16 * w + 12);
      return bits;
    }
    default: {
      uint64_t bits = static_cast<uint64_t>(code & 0xffff) << (8 * (place.d - offset));
      if (place.min_ratio != 0)
        bits |= static_cast<uint64_t>(min_code & 0xffff) << (8 * (place.min - offset));
      return bits;
    }
  }
}

size_t WindowOffset(const formats::DTypeTraits& traits) {
  return std::min<size_t>(PlaceOf(traits.dtype).d, traits.block_bytes - sizeof(uint64_t));
}

// The window's bits for a scale code, the minimum in its place beside it; negative turns both signs.
uint64_t WindowValue(const formats::DTypeTraits& traits, uint32_t code, bool negative) {
  const DType dtype = traits.dtype;
  if (dtype == DType::kMXFP4 || dtype == DType::kNVFP4)
    return ScaleBits(dtype, WindowOffset(traits), code, 0);
  const uint32_t sign = negative ? 0x8000 : 0;
  const uint32_t min_code = F32ToF16(F16ToF32(static_cast<uint16_t>(code)) * PlaceOf(dtype).min_ratio);
  return ScaleBits(dtype, WindowOffset(traits), code | sign, min_code ^ sign);
}

// TQ2_0 has codes 0 … 2 only: makes every 3 among four 2-bit codes a 1.
void ClearThrees(std::byte* qs, size_t size) {
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t x;
    std::memcpy(&x, qs + i, sizeof(x));
    x &= ~((x & (x << 1)) & 0xaaaaaaaaaaaaaaaaull);
    std::memcpy(qs + i, &x, sizeof(x));
  }
}

}  // namespace

RandomBytes::RandomBytes(uint64_t seed) {
  for (auto& word : state_) {
    for (uint64_t& lane : word) lane = SplitMix(seed);
  }
}

void RandomBytes::Fill(std::span<std::byte> out) {
  uint64_t results[kLanes];
  for (size_t i = 0; i < out.size(); i += sizeof(results)) {
    for (int k = 0; k < kLanes; ++k) {
      results[k] = RotateLeft(state_[0][k] + state_[3][k], 23) + state_[0][k];
      const uint64_t t = state_[1][k] << 17;
      state_[2][k] ^= state_[0][k];
      state_[3][k] ^= state_[1][k];
      state_[1][k] ^= state_[2][k];
      state_[0][k] ^= state_[3][k];
      state_[2][k] ^= t;
      state_[3][k] = RotateLeft(state_[3][k], 45);
    }
    std::memcpy(out.data() + i, results, std::min(sizeof(results), out.size() - i));
  }
}

RandomBlocks::RandomBlocks(DType dtype, float deviation) : traits_(formats::Traits(dtype)) {
  if (!formats::IsQuantised(dtype)) {
    // A uniform distribution, by its quantiles: half its width is √3 deviations.
    elements_.resize(kElementChoices * traits_.block_bytes);
    for (size_t i = 0; i < kElementChoices; ++i) {
      const float position = (static_cast<float>(i) + 0.5f) * (2.0f / kElementChoices) - 1.0f;
      const float value = 1.7320508f * deviation * position;
      const uint16_t half = dtype == DType::kF16 ? F32ToF16(value) : F32ToBf16(value);
      SLUICE_CHECK(dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16);
      std::memcpy(elements_.data() + i * traits_.block_bytes,
                  dtype == DType::kF32 ? static_cast<const void*>(&value) : &half, traits_.block_bytes);
    }
    return;
  }

  // The root mean square of some random blocks, as a function of the scale's code: it grows with the code in
  // every format, so the wanted one is found by bisection, whatever the format does with its scale.
  scale_.offset = WindowOffset(traits_);
  scale_.keep = ~ScaleBits(dtype, scale_.offset, 0xffff, 0xffff);
  constexpr size_t kSamples = 256;
  std::vector<std::byte> blocks(kSamples * traits_.block_bytes);
  std::vector<float> values(kSamples * traits_.block_length);
  const auto mean_square = [&](uint32_t code) {
    scale_.values.fill(WindowValue(traits_, code, false));
    ScaleBlocks(blocks);
    formats::DecodeRow(dtype, blocks.data(), values);
    double sum = 0;
    for (const float value : values) sum += double{value} * value;
    return sum / static_cast<double>(values.size());
  };
  random_.Fill(blocks);
  const double wanted = double{deviation} * deviation;
  uint32_t low = 0, high = LargestScaleCode(dtype);
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (mean_square(middle) <= wanted ? low : high) = middle;
  }

  // Between two codes: some blocks get the one, some the other. Half of all blocks turn their sign, so that
  // codes which are not balanced around 0 leave no mean.
  const double below = mean_square(low), above = mean_square(high);
  const size_t half = scale_.values.size() / 2;
  const double share = std::clamp((wanted - below) / (above - below), 0.0, 1.0);
  const auto upper = static_cast<size_t>(share * static_cast<double>(half) + 0.5);
  for (size_t k = 0; k < scale_.values.size(); ++k) {
    scale_.values[k] = WindowValue(traits_, k % half < upper ? high : low, k >= half);
  }
}

void RandomBlocks::Fill(std::span<std::byte> out) {
  SLUICE_CHECK(out.size() % traits_.block_bytes == 0);
  if (!elements_.empty()) return FillElements(out);
  random_.Fill(out);
  ScaleBlocks(out);
}

void RandomBlocks::FillElements(std::span<std::byte> out) {
  const size_t size = traits_.block_bytes;  // 2 or 4
  std::array<uint16_t, 2048> choices;
  for (size_t i = 0; i < out.size(); i += choices.size() * size) {
    random_.Fill(std::as_writable_bytes(std::span(choices)));
    const size_t count = std::min(choices.size(), (out.size() - i) / size);
    std::byte* to = out.data() + i;
    if (size == 2) {
      for (size_t k = 0; k < count; ++k)
        std::memcpy(to + 2 * k, &elements_[2 * (choices[k] % kElementChoices)], 2);
    } else {
      for (size_t k = 0; k < count; ++k)
        std::memcpy(to + 4 * k, &elements_[4 * (choices[k] % kElementChoices)], 4);
    }
  }
}

void RandomBlocks::ScaleBlocks(std::span<std::byte> out) const {
  for (size_t i = 0; i < out.size(); i += traits_.block_bytes) {
    std::byte* at = out.data() + i + scale_.offset;
    uint64_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    // The random bits that give way choose which scale takes their place.
    const uint64_t choice = ((bits & ~scale_.keep) * 0x9e3779b97f4a7c15ull) >> 58;
    bits = (bits & scale_.keep) | scale_.values[choice];
    std::memcpy(at, &bits, sizeof(bits));
    if (traits_.dtype == DType::kTQ2_0) ClearThrees(out.data() + i, 64);
  }
}

}  // namespace sluice::quantize
