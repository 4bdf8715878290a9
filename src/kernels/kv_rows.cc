#include "kernels/kv_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "formats/blocks.h"
#include "formats/decode.h"
#include "kernels/lanes.h"

namespace sluice::kernels {
namespace {

constexpr int kBlock = 32;
constexpr std::array<std::string_view, kKvTypeCount> kNames = {"f32", "f16", "q8_0", "q5_0", "q4_0"};

static_assert(sizeof(formats::BlockQ8_0) == KvRowBytes(KvType::kQ8_0, kBlock));
static_assert(sizeof(formats::BlockQ5_0) == KvRowBytes(KvType::kQ5_0, kBlock));
static_assert(sizeof(formats::BlockQ4_0) == KvRowBytes(KvType::kQ4_0, kBlock));

// The scale of a block and what its elements are multiplied with to become codes.
struct Scale {
  float d;
  float inverse;
};

// The largest magnitude's value, with its sign (the first of equals), over `steps`. A block with a NaN or an
// infinity gets scale NaN, so that whatever meets it is NaN; scales below the smallest normal float count as
// zero.
Scale ScaleFor(const float* x, bool keep_sign, float steps) {
  uint32_t amax = 0;  // magnitudes order like their bits, NaNs above infinity
  for (int i = 0; i < kBlock; ++i) amax = std::max(amax, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  if (amax >= 0x7f800000u) return {std::bit_cast<float>(0x7fc00000u), 0.0f};
  float extreme = std::bit_cast<float>(amax);
  if (keep_sign) {
    extreme = *std::find_if(x, x + kBlock,
                            [&](float v) { return (std::bit_cast<uint32_t>(v) & 0x7fffffffu) == amax; });
  }
  const float d = extreme / steps;
  if ((std::bit_cast<uint32_t>(d) & 0x7fffffffu) < 0x00800000u) return {0.0f, 0.0f};
  return {d, 1.0f / d};
}

formats::Half ToHalf(float d) {
  const uint16_t bits = F32ToF16(d);
  return {{static_cast<formats::Byte>(bits & 0xff), static_cast<formats::Byte>(bits >> 8)}};
}

void Encode(const float* x, formats::BlockQ8_0& block) {
  const Scale scale = ScaleFor(x, false, 127.0f);
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer, half to even
  for (int i = 0; i < kBlock; ++i) {
    const float code = scale.inverse == 0.0f ? 0.0f : x[i] * scale.inverse;
    block.qs[i] = static_cast<int8_t>(static_cast<int>((code + kRound) - kRound));
  }
  block.d = ToHalf(scale.d);
}

// Codes 0 … 2 · kHalf − 1 around kHalf, and the scale. Three step lengths are tried: the one that gives the
// extreme element code 0, one that cuts it a little for finer steps, and a longer one. Each is measured by
// what remains of the block with the best scale for its codes, the least squares one: with c the codes less
// kHalf and y the elements in steps, (Σ y·c)² / Σ c² is what it explains.
template <int kHalf>
float Codes(const float* x, uint8_t codes[kBlock]) {
  const Scale scale = ScaleFor(x, true, -static_cast<float>(kHalf));
  std::fill_n(codes, kBlock, static_cast<uint8_t>(kHalf));
  if (scale.inverse == 0.0f) return scale.d;
  float most = -1.0f, d = scale.d;
  for (const float factor : {1.0f, 1.08f, 0.92f}) {
    uint8_t tried[kBlock];
    Lanes products;
    int squares = 0;
    for (int i = 0; i < kBlock; ++i) {
      const float y = x[i] * scale.inverse;
      const int code =
          std::min(static_cast<int>(y * factor + (kHalf + 0.5f)), 2 * kHalf - 1);  // above −1: never below 0
      const int c = code - kHalf;
      tried[i] = static_cast<uint8_t>(code);
      float& lane = products.lane[i % kLanes];
      lane = lane + y * static_cast<float>(c);
      squares += c * c;
    }
    const float product = products.Fold();
    const float explained =
        product * product / static_cast<float>(squares);  // the extreme element's c is not 0
    if (!(explained > most)) continue;
    most = explained;
    d = scale.d * (product / static_cast<float>(squares));
    std::copy_n(tried, kBlock, codes);
  }
  return d;
}

void PackNibbles(const uint8_t codes[kBlock], formats::Byte qs[kBlock / 2]) {
  for (int i = 0; i < kBlock / 2; ++i) {
    qs[i] = static_cast<formats::Byte>((codes[i] & 15) | ((codes[i + kBlock / 2] & 15) << 4));
  }
}

void Encode(const float* x, formats::BlockQ5_0& block) {
  uint8_t codes[kBlock];
  block.d = ToHalf(Codes<16>(x, codes));
  PackNibbles(codes, block.qs);
  for (int byte = 0; byte < 4; ++byte) {
    int bits = 0;
    for (int i = 0; i < 8; ++i) bits |= (codes[8 * byte + i] >> 4) << i;
    block.qh[byte] = static_cast<formats::Byte>(bits);
  }
}

void Encode(const float* x, formats::BlockQ4_0& block) {
  uint8_t codes[kBlock];
  block.d = ToHalf(Codes<8>(x, codes));
  PackNibbles(codes, block.qs);
}

template <typename Block>
void EncodeRow(const float* x, int64_t n, std::byte* row) {
  for (int64_t i = 0; i < n; i += kBlock, row += sizeof(Block)) {
    float padded[kBlock] = {};
    const float* part = x + i;
    if (n - i < kBlock) {
      std::copy_n(part, n - i, padded);
      part = padded;
    }
    Block block;
    Encode(part, block);
    std::memcpy(row, &block, sizeof(block));
  }
}

void DecodeRow(formats::DType dtype, size_t block_bytes, const std::byte* row, int64_t n, float* x) {
  const int64_t whole = n / kBlock * kBlock;
  formats::DecodeRow(dtype, row, {x, static_cast<size_t>(whole)});
  if (whole == n) return;
  float last[kBlock];
  formats::DecodeRow(dtype, row + static_cast<size_t>(whole / kBlock) * block_bytes, last);
  std::copy_n(last, n - whole, x + whole);
}

}  // namespace

std::string_view Name(KvType type) { return kNames[static_cast<size_t>(type)]; }

std::optional<KvType> KvTypeByName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<KvType>(i);
  }
  return std::nullopt;
}

std::string_view KvTypeNames() { return "f32, f16, q8_0, q5_0, q4_0"; }

void StoreKvRow(const Kernels& kernels, KvType type, const float* x, int64_t n, std::byte* row) {
  switch (type) {
    case KvType::kF32:
      std::memcpy(row, x, static_cast<size_t>(n) * sizeof(float));
      return;
    case KvType::kF16:
      kernels.f32_to_f16(x, n, reinterpret_cast<uint16_t*>(row));
      return;
    case KvType::kQ8_0:
      return EncodeRow<formats::BlockQ8_0>(x, n, row);
    case KvType::kQ5_0:
      return EncodeRow<formats::BlockQ5_0>(x, n, row);
    case KvType::kQ4_0:
      return EncodeRow<formats::BlockQ4_0>(x, n, row);
  }
}

void LoadKvRow(KvType type, const std::byte* row, int64_t n, float* x) {
  using enum formats::DType;
  switch (type) {
    case KvType::kF32:
      std::memcpy(x, row, static_cast<size_t>(n) * sizeof(float));
      return;
    case KvType::kF16:
      return formats::DecodeRow(kF16, row, {x, static_cast<size_t>(n)});
    case KvType::kQ8_0:
      return DecodeRow(kQ8_0, sizeof(formats::BlockQ8_0), row, n, x);
    case KvType::kQ5_0:
      return DecodeRow(kQ5_0, sizeof(formats::BlockQ5_0), row, n, x);
    case KvType::kQ4_0:
      return DecodeRow(kQ4_0, sizeof(formats::BlockQ4_0), row, n, x);
  }
}

}  // namespace sluice::kernels
