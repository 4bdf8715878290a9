#include "kernels/support.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace sluice::kernels {
namespace {

using formats::DType;

// Where the f16 floats of a block stand.
std::vector<int> HalfOffsets(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    case DType::kTQ1_0:
      return {52};
    case DType::kTQ2_0:
      return {64};
    case DType::kMXFP4:
    case DType::kNVFP4:
    case DType::kIQ1_M:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return {};
    default:
      return {0};
  }
}

void PutHalf(std::byte* block, int offset, uint16_t bits) {
  std::memcpy(block + offset, &bits, sizeof(bits));
}

uint16_t Scale(WeightKind kind, Numbers& numbers) {
  switch (kind) {
    case WeightKind::kLargest:
      return static_cast<uint16_t>(0x7bff | (numbers.Below(2) << 15));
    case WeightKind::kSubnormal:
      return static_cast<uint16_t>(numbers.Below(0x400) | (numbers.Below(2) << 15));
    default:
      return F32ToF16(numbers.Signed() * 0.05f);
  }
}

// IQ1_M keeps its f16 in the top nibbles of four 16-bit words; MXFP4 and NVFP4 have scales of 8 bits.
void PutOddScale(DType dtype, std::byte* block, WeightKind kind, Numbers& numbers) {
  const auto byte = [](uint32_t v) { return static_cast<std::byte>(v); };
  if (dtype == DType::kIQ1_M) {
    const uint16_t half = Scale(kind, numbers);
    for (int i = 0; i < 4; ++i) {
      std::byte& top = block[48 + 2 * i + 1];
      top = (top & byte(15)) | byte(((half >> (4 * i)) & 15u) << 4);
    }
  } else if (dtype == DType::kMXFP4) {
    block[0] = byte(kind == WeightKind::kLargest     ? 254
                    : kind == WeightKind::kSubnormal ? numbers.Below(3)
                                                     : 118 + numbers.Below(8));
  }
}

// Ordinary numbers, or for kAllBits any.
void PutFloats(DType dtype, std::byte* row, int64_t columns, WeightKind kind, Numbers& numbers) {
  for (int64_t i = 0; i < columns; ++i) {
    float value = numbers.Bell() * 0.1f;
    if (kind == WeightKind::kLowest) value = 0.0f;
    if (kind == WeightKind::kLargest) value = value * 1e6f;
    if (kind == WeightKind::kSubnormal) value = value * 1e-40f;
    if (kind == WeightKind::kAllBits) value = std::bit_cast<float>(static_cast<uint32_t>(numbers.Next()));
    if (dtype == DType::kF32) {
      std::memcpy(row + 4 * i, &value, 4);
    } else {
      PutHalf(row, static_cast<int>(2 * i), dtype == DType::kF16 ? F32ToF16(value) : F32ToBf16(value));
    }
  }
}

}  // namespace

std::vector<DType> WeightTypes() {
  std::vector<DType> types;
  for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
    switch (traits.dtype) {
      case DType::kI8:
      case DType::kI16:
      case DType::kI32:
      case DType::kI64:
      case DType::kF64:
        break;
      default:
        types.push_back(traits.dtype);
    }
  }
  return types;
}

std::vector<std::byte> MakeWeights(DType dtype, int64_t rows, int64_t columns, WeightKind kind,
                                   uint64_t seed) {
  const formats::DTypeTraits& traits = formats::Traits(dtype);
  const size_t row_bytes = formats::RowBytes(dtype, static_cast<uint64_t>(columns));
  std::vector<std::byte> bytes(static_cast<size_t>(rows) * row_bytes);
  Numbers numbers(seed);
  for (int64_t r = 0; r < rows; ++r) {
    std::byte* row = bytes.data() + static_cast<size_t>(r) * row_bytes;
    if (traits.block_length == 1) {
      PutFloats(dtype, row, columns, kind, numbers);
      continue;
    }
    for (size_t i = 0; i < row_bytes; ++i) {
      const uint32_t fill = kind == WeightKind::kLowest ? 0 : kind == WeightKind::kHighest ? 0xff : 0x80;
      const bool constant =
          kind == WeightKind::kLowest || kind == WeightKind::kHighest || kind == WeightKind::kMinus128;
      row[i] = static_cast<std::byte>(constant ? fill : numbers.Below(256));
    }
    if (kind == WeightKind::kAllBits) continue;
    for (size_t i = 0; i < row_bytes; i += traits.block_bytes) {
      for (const int offset : HalfOffsets(dtype)) PutHalf(row + i, offset, Scale(kind, numbers));
      PutOddScale(dtype, row + i, kind, numbers);
    }
  }
  return bytes;
}

std::vector<float> MakeInput(int64_t n, InputKind kind, uint64_t seed) {
  std::vector<float> x(static_cast<size_t>(n));
  Numbers numbers(seed);
  for (float& value : x) {
    value = numbers.Bell();
    switch (kind) {
      case InputKind::kBell:
      case InputKind::kOutlier:
      case InputKind::kNonFinite:
        break;
      case InputKind::kZeros:
        value = numbers.Below(2) == 0 ? 0.0f : -0.0f;
        break;
      case InputKind::kAlternating:
        value = value < 0 ? -1.0f : 1.0f;
        break;
      case InputKind::kOnes:
        value = 1.0f;
        break;
      case InputKind::kHuge:
        value = value * 1e38f;
        break;
      case InputKind::kTiny:
        value = value * std::ldexp(1.0f, -110 - static_cast<int>(numbers.Below(40)));
        break;
    }
  }
  const auto at = [&] { return static_cast<size_t>(numbers.Below(static_cast<uint32_t>(n))); };
  if (kind == InputKind::kOutlier) x[at()] = 4000.0f;
  if (kind == InputKind::kNonFinite) {
    x[at()] = std::numeric_limits<float>::quiet_NaN();
    x[at()] = -std::numeric_limits<float>::infinity();
  }
  return x;
}

Input::Input(const Kernels& kernels, DType weight, std::vector<float> x, int64_t batch_rows)
    : kind(ActivationKindFor(weight)),
      batch(batch_rows),
      columns(static_cast<int64_t>(x.size()) / batch_rows),
      f32(std::move(x)) {
  if (kind == ActivationKind::kF32) return;
  q.resize(f32.size());
  scale.resize(f32.size() / static_cast<size_t>(BlockLength(kind)));
  sums.resize(f32.size() / 16);
  for (int64_t b = 0; b < batch; ++b) {
    kernels.quantize_row(kind, f32.data() + b * columns, columns, q.data() + b * columns,
                         scale.data() + b * (columns / BlockLength(kind)), sums.data() + b * (columns / 16));
  }
  if (kind == ActivationKind::kQ8x256) reach = ReachOf(q);
}

std::vector<Reach> ReachOf(const std::vector<int8_t>& q) {
  std::vector<Reach> reach(q.size() / 256, Reach{0, 0});
  for (size_t first = 0; first < q.size(); first += 16) {
    int magnitudes = 0;
    for (size_t i = first; i < first + 16; ++i) magnitudes += std::abs(q[i]);
    int16_t& most = reach[first / 256].of_16;
    most = std::max(most, static_cast<int16_t>(magnitudes));
  }
  for (size_t first = 0; first < q.size(); first += 32) {
    int positive = 0, negative = 0;
    for (size_t i = first; i < first + 32; ++i) (q[i] > 0 ? positive : negative) += std::abs(q[i]);
    int16_t& most = reach[first / 256].of_32;
    most = std::max(most, static_cast<int16_t>(std::max(positive, negative)));
  }
  return reach;
}

ActivationRows Input::View() const {
  ActivationRows rows{.kind = kind, .batch = batch, .columns = columns};
  if (kind == ActivationKind::kF32) {
    rows.f32 = f32.data();
  } else {
    rows.q = q.data();
    rows.scale = scale.data();
    rows.sums = sums.data();
    if (!reach.empty()) rows.reach = reach.data();
  }
  return rows;
}

std::vector<float> Multiply(const Kernels& kernels, DType dtype, const std::vector<std::byte>& weights,
                            int64_t rows, const ActivationRows& x) {
  static AlignedBuffer scratch(kMatmulScratchBytes);
  std::vector<float> y(static_cast<size_t>(rows * x.batch), -12345.0f);
  kernels.matmul[static_cast<size_t>(dtype)]({.weights = weights.data(),
                                              .row_bytes = weights.size() / static_cast<size_t>(rows),
                                              .rows = rows,
                                              .x = x,
                                              .y = y.data(),
                                              .y_stride = rows,
                                              .scratch = scratch.bytes()});
  return y;
}

std::vector<TableParam> TestedTables() {
  std::vector<TableParam> tables;
  for (const Kernels* table : AllKernels()) {
    if (table->name != "scalar") tables.push_back({table});
  }
  return tables;
}

std::string TableName(const TableParam& param) { return std::string(param.kernels->name); }

bool Runs(const Kernels& kernels) {
  static const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
  return kernels.supported(cpu);
}

int64_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = a[i] != a[i] && b[i] != b[i];
    if (!both_nan && std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]))
      return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace sluice::kernels
