#include "convert/packed_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/half.h"
#include "formats/blocks.h"

namespace sluice::convert {

namespace {

using formats::DType;

constexpr uint64_t kCodesInAWord = 8;
constexpr uint64_t kBlock = 32;
constexpr int kZeroOfQ4_0 = 8;
constexpr float kMaxF16 = 65504.0f;
// Where AWQ keeps each of eight columns.
constexpr std::array<uint32_t, kCodesInAWord> kAwqPlace{0, 4, 1, 5, 2, 6, 3, 7};

uint32_t Nibble(uint32_t word, uint64_t place) { return word >> 4 * place & 15; }

Status CheckShape(const SourceTensor& tensor, ElementType type, std::initializer_list<uint64_t> shape) {
  const bool right = std::ranges::equal(tensor.shape, shape) && tensor.type == type;
  if (right) return {};
  return Fail(ErrorCode::kCorrupt, "tensor {} has {} of shape [{}]; expected {} of [{}]", tensor.name,
              Name(tensor.type), fmt::join(tensor.shape, ", "), Name(type), fmt::join(shape, ", "));
}

// A tensor of 32-bit words as stored.
Result<std::vector<uint32_t>> ReadWords(const Checkpoint& checkpoint, const SourceTensor& tensor) {
  std::vector<uint32_t> words(static_cast<size_t>(tensor.elements()));
  SLUICE_TRY(checkpoint.ReadBytes(tensor, std::as_writable_bytes(std::span(words))));
  return words;
}

}  // namespace

Result<PackingConfig> ReadPackingConfig(const JsonObject& quantization) {
  SLUICE_TRY_ASSIGN(const auto method, quantization.String("quant_method"));
  // The method's layout: named so by AutoGPTQ, so by its successor, so by AutoAWQ.
  std::string layout;
  for (const char* key : {"checkpoint_format", "format", "version"}) {
    if (const nlohmann::json* found = quantization.Find(key);
        found != nullptr && found->is_string() && layout.empty())
      layout = found->get<std::string>();
  }
  constexpr std::tuple<std::string_view, std::string_view, Packing> kKnown[] = {
      {"gptq", "", Packing::kGptq}, {"gptq", "gptq", Packing::kGptq}, {"gptq", "gptq_v2", Packing::kGptqV2},
      {"awq", "", Packing::kAwq},   {"awq", "gemm", Packing::kAwq},   {"awq", "GEMM", Packing::kAwq}};
  const auto* known = std::ranges::find_if(kKnown, [&](const auto& entry) {
    return std::get<0>(entry) == method && std::get<1>(entry) == layout;
  });
  if (known == std::end(kKnown)) {
    return Fail(ErrorCode::kUnsupported,
                "{}: the checkpoint is quantised by '{}'{}{}, which is not converted; GPTQ (formats gptq and "
                "gptq_v2) "
                "and AWQ (version gemm) are. Convert the checkpoint it was made from",
                quantization.name(), method.value_or(""), layout.empty() ? "" : ", layout ", layout);
  }
  PackingConfig config{.packing = std::get<2>(*known)};
  int64_t bits = 4;
  for (const char* key : {"bits", "w_bit"}) {
    SLUICE_TRY_ASSIGN(const auto value, quantization.Int(key, 1, 64));
    bits = value.value_or(bits);
  }
  if (bits != 4)
    return Fail(ErrorCode::kUnsupported, "{}: weights of {} bits; only 4 are converted", quantization.name(),
                bits);
  for (const char* key : {"group_size", "q_group_size"}) {
    SLUICE_TRY_ASSIGN(const auto size, quantization.Int(key, -1, INT32_MAX));
    if (size) config.group_size = static_cast<uint64_t>(std::max<int64_t>(*size, 0));
  }
  return config;
}

Result<PackedTensors> FindPacked(const Checkpoint& checkpoint, const std::string& stem) {
  PackedTensors tensors{.codes = checkpoint.Find(stem + ".qweight"),
                        .zeros = checkpoint.Find(stem + ".qzeros"),
                        .scales = checkpoint.Find(stem + ".scales"),
                        .groups = checkpoint.Find(stem + ".g_idx")};
  if (tensors.codes == nullptr || tensors.zeros == nullptr || tensors.scales == nullptr)
    return Fail(ErrorCode::kCorrupt, "{} lacks one of qweight, qzeros and scales", stem);
  return tensors;
}

Result<PackedMatrix> PackedMatrix::Load(const Checkpoint& checkpoint, const PackedTensors& tensors,
                                        const PackingConfig& config) {
  PackedMatrix matrix;
  matrix.packing_ = config.packing;
  const SourceTensor& codes = *tensors.codes;
  if (codes.shape.size() != 2 || codes.type != ElementType::kI32)
    return Fail(ErrorCode::kCorrupt, "tensor {} has {} of {} dimensions; expected I32 of 2", codes.name,
                Name(codes.type), codes.shape.size());
  const bool awq = config.packing == Packing::kAwq;
  matrix.columns_ = codes.shape[0] * (awq ? 1 : kCodesInAWord);
  matrix.rows_ = codes.shape[1] * (awq ? kCodesInAWord : 1);
  if (tensors.scales->shape.size() != 2 || codes.elements() == 0 || matrix.rows_ % kCodesInAWord != 0)
    return Fail(ErrorCode::kCorrupt,
                "tensor {} has the shape [{}], its scales [{}]; expected two dimensions, of "
                "multiples of 8",
                codes.name, fmt::join(codes.shape, ", "), fmt::join(tensors.scales->shape, ", "));
  matrix.n_groups_ = tensors.scales->shape[0];
  SLUICE_TRY(matrix.ReadScales(checkpoint, tensors));
  SLUICE_TRY(matrix.ReadZeros(checkpoint, tensors));
  SLUICE_TRY(matrix.ReadGroups(checkpoint, tensors, config.group_size));
  SLUICE_TRY_ASSIGN(matrix.codes_, ReadWords(checkpoint, codes));
  return matrix;
}

Status PackedMatrix::ReadScales(const Checkpoint& checkpoint, const PackedTensors& tensors) {
  SLUICE_TRY(CheckShape(*tensors.scales, tensors.scales->type, {n_groups_, rows_}));
  scales_.resize(static_cast<size_t>(n_groups_ * rows_));
  SLUICE_TRY(checkpoint.Read(*tensors.scales, 0, scales_));
  // With room for the minimum, scale · 16.
  const auto unfit =
      std::ranges::find_if(scales_, [](float scale) { return !(std::fabs(scale) <= kMaxF16 / 16); });
  if (unfit == scales_.end()) return {};
  return Fail(ErrorCode::kCorrupt, "tensor {} has the scale {}; expected at most {}", tensors.scales->name,
              *unfit, kMaxF16 / 16);
}

Status PackedMatrix::ReadZeros(const Checkpoint& checkpoint, const PackedTensors& tensors) {
  SLUICE_TRY(CheckShape(*tensors.zeros, ElementType::kI32, {n_groups_, rows_ / kCodesInAWord}));
  SLUICE_TRY_ASSIGN(const std::vector<uint32_t> words, ReadWords(checkpoint, *tensors.zeros));
  zeros_.resize(scales_.size());
  for (size_t i = 0; i < zeros_.size(); ++i) {
    const uint32_t word = words[i / kCodesInAWord];
    const size_t place = i % kCodesInAWord;
    switch (packing_) {
      case Packing::kGptq:  // 15 is what 0 − 1 became: zeros are 0 to 15
        zeros_[i] = static_cast<uint8_t>((Nibble(word, place) + 1) & 15);
        break;
      case Packing::kGptqV2:
        zeros_[i] = static_cast<uint8_t>(Nibble(word, place));
        break;
      case Packing::kAwq:
        zeros_[i] = static_cast<uint8_t>(Nibble(word, kAwqPlace[place]));
        break;
    }
  }
  return {};
}

Status PackedMatrix::ReadGroups(const Checkpoint& checkpoint, const PackedTensors& tensors,
                                uint64_t group_size) {
  if (group_size == 0) group_size = columns_;
  if ((columns_ + group_size - 1) / group_size != n_groups_)
    return Fail(ErrorCode::kCorrupt, "tensor {} has {} groups; expected {} of {} columns each",
                tensors.scales->name, n_groups_, (columns_ + group_size - 1) / group_size, group_size);
  if (tensors.groups != nullptr) {
    SLUICE_TRY(CheckShape(*tensors.groups, ElementType::kI32, {columns_}));
    SLUICE_TRY_ASSIGN(groups_, ReadWords(checkpoint, *tensors.groups));
  } else {
    for (uint64_t column = 0; column < columns_; ++column)
      groups_.push_back(static_cast<uint32_t>(column / group_size));
  }
  const auto beyond = std::ranges::find_if(groups_, [&](uint32_t group) { return group >= n_groups_; });
  if (beyond == groups_.end()) return {};
  return Fail(ErrorCode::kCorrupt, "tensor {}: column {} is in group {}; there are {}", tensors.groups->name,
              beyond - groups_.begin(), *beyond, n_groups_);
}

uint32_t PackedMatrix::Code(uint64_t row, uint64_t column) const {
  if (packing_ == Packing::kAwq)
    return Nibble(codes_[column * (rows_ / kCodesInAWord) + row / kCodesInAWord],
                  kAwqPlace[row % kCodesInAWord]);
  return Nibble(codes_[column / kCodesInAWord * rows_ + row], column % kCodesInAWord);
}

void PackedMatrix::ReadRow(uint64_t row, std::span<float> out) const {
  for (uint64_t column = 0; column < columns_; ++column) {
    const uint32_t group = groups_[column];
    out[column] =
        Scale(group, row) * static_cast<float>(static_cast<int>(Code(row, column)) - Zero(group, row));
  }
}

std::optional<DType> PackedMatrix::BlockType() const {
  if (columns_ % kBlock != 0) return std::nullopt;
  for (uint64_t column = 0; column < columns_; ++column) {
    if (groups_[column] != groups_[column - column % kBlock]) return std::nullopt;
  }
  const bool symmetric = std::ranges::all_of(zeros_, [](uint8_t zero) { return zero == kZeroOfQ4_0; });
  return symmetric ? DType::kQ4_0 : DType::kQ4_1;
}

void PackedMatrix::WriteBlocks(uint64_t row, DType type, std::byte* blocks) const {
  const bool has_minimum = type == DType::kQ4_1;
  auto* out = reinterpret_cast<formats::Byte*>(blocks);
  for (uint64_t first = 0; first < columns_; first += kBlock) {
    const uint32_t group = groups_[first];
    const float scale = F16ToF32(F32ToF16(Scale(group, row)));
    formats::Store16(F32ToF16(scale), out);
    out += 2;
    if (has_minimum) {
      formats::Store16(F32ToF16(-scale * static_cast<float>(Zero(group, row))), out);
      out += 2;
    }
    for (uint64_t i = 0; i < kBlock / 2; ++i)
      *out++ = static_cast<formats::Byte>(Code(row, first + i) | Code(row, first + i + kBlock / 2) << 4);
  }
}

}  // namespace sluice::convert
