// Random bytes as weights and as activations: every table that this processor runs must give scalar's bits.
// Input: type, blocks in a row, rows, batch (one byte each); then weights, repeated as often as needed, and
// floats.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "formats/dtype.h"
#include "kernels/kernels.h"
#include "platform/cpu_features.h"

namespace sluice::kernels {
namespace {

constexpr size_t kHeader = 4;

std::vector<std::byte> Repeat(const uint8_t* data, size_t size, size_t wanted) {
  std::vector<std::byte> bytes(wanted);
  for (size_t i = 0; i < wanted; ++i) bytes[i] = static_cast<std::byte>(data[i % size]);
  return bytes;
}

struct Activations {
  std::vector<int8_t> q;
  std::vector<float> scale;
  std::vector<int16_t> sums;

  bool operator==(const Activations& other) const {
    const bool same_scales = std::equal(
        scale.begin(), scale.end(), other.scale.begin(),
        [](float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b); });
    return same_scales && q == other.q && sums == other.sums;
  }
};

Activations Quantize(const Kernels& kernels, ActivationKind kind, const std::vector<float>& x,
                     int64_t batch) {
  const auto columns = static_cast<int64_t>(x.size()) / batch;
  Activations result{std::vector<int8_t>(x.size()),
                     std::vector<float>(x.size() / static_cast<size_t>(BlockLength(kind))),
                     std::vector<int16_t>(x.size() / 16)};
  for (int64_t b = 0; b < batch; ++b) {
    kernels.quantize_row(kind, x.data() + b * columns, columns, result.q.data() + b * columns,
                         result.scale.data() + b * columns / BlockLength(kind),
                         result.sums.data() + b * columns / 16);
  }
  return result;
}

void RunOne(const uint8_t* data, size_t size) {
  static const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
  static AlignedBuffer scratch(kMatmulScratchBytes);
  const Kernels& scalar = *FindKernels("scalar");
  const formats::DTypeTraits* traits = formats::FindDType(data[0] % formats::kDTypeLimit);
  if (traits == nullptr || scalar.matmul[static_cast<size_t>(traits->dtype)] == nullptr) return;
  const auto dtype = static_cast<size_t>(traits->dtype);
  const ActivationKind kind = ActivationKindFor(traits->dtype);
  const int64_t columns = (1 + data[1] % 12) * static_cast<int64_t>(traits->block_length);
  const int64_t rows = 1 + data[2] % 40;
  const int64_t batch = 1 + data[3] % 15;
  const size_t row_bytes = formats::RowBytes(traits->dtype, static_cast<uint64_t>(columns));
  const size_t weight_bytes = static_cast<size_t>(rows) * row_bytes;
  const size_t left = size - kHeader;
  const std::vector<std::byte> weights = Repeat(data + kHeader, left, weight_bytes);
  std::vector<float> x(static_cast<size_t>(columns * batch));
  const size_t used = std::min(weight_bytes, left - 1);
  const std::vector<std::byte> floats = Repeat(data + kHeader + used, left - used, x.size() * sizeof(float));
  std::memcpy(x.data(), floats.data(), floats.size());

  ActivationRows input{.kind = kind, .batch = batch, .columns = columns, .f32 = x.data()};
  Activations quantized;
  if (kind != ActivationKind::kF32) {
    quantized = Quantize(scalar, kind, x, batch);
    input = {.kind = kind,
             .batch = batch,
             .columns = columns,
             .q = quantized.q.data(),
             .scale = quantized.scale.data(),
             .sums = quantized.sums.data()};
  }
  std::vector<float> expected(static_cast<size_t>(rows * batch));
  scalar.matmul[dtype]({weights.data(), row_bytes, rows, input, expected.data(), rows, scratch.bytes()});
  for (const Kernels* table : AllKernels()) {
    if (table == &scalar || !table->supported(cpu)) continue;
    if (kind != ActivationKind::kF32) SLUICE_CHECK(Quantize(*table, kind, x, batch) == quantized);
    std::vector<Reach> reach(x.size() / 256);
    if (kind == ActivationKind::kQ8x256 && table->measure_reach != nullptr) {
      for (int64_t b = 0; b < batch; ++b)
        table->measure_reach(input.q + b * columns, columns, reach.data() + b * columns / 256);
      input.reach = reach.data();
    }
    std::vector<float> found(expected.size());
    table->matmul[dtype]({weights.data(), row_bytes, rows, input, found.data(), rows, scratch.bytes()});
    for (size_t i = 0; i < found.size(); ++i) {
      const bool same_bits = std::memcmp(&expected[i], &found[i], sizeof(float)) == 0;
      SLUICE_CHECK(same_bits || (expected[i] != expected[i] && found[i] != found[i]));
    }
  }
}

}  // namespace
}  // namespace sluice::kernels

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > sluice::kernels::kHeader + 1) sluice::kernels::RunOne(data, size);
  return 0;
}
