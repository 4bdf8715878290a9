// PackedMatrix: a matrix of four-bit codes as GPTQ and AWQ checkpoints hold it, and the same codes as rows of
// Q4_0 or Q4_1. Nothing is quantised again: the codes are kept, scales become f16 (most are), and of Q4_1 the
// minimum, −scale · zero, is rounded to f16 once.
//
// Three tensors stand for one weight [out, in], with eight codes in each 32-bit number, the first in the low
// bits:
//   GPTQ  qweight [in / 8, out]   qzeros [groups, out / 8]   scales [groups, out]   g_idx [in]: the group of
//   a column AWQ   qweight [in, out / 8]   qzeros [groups, out / 8]   scales [groups, out]
// weight = scale · (code − zero). GPTQ's first format stores zero − 1, its second ("gptq_v2") and AWQ zero
// itself. AWQ puts the columns of eight in the order 0 2 4 6 1 3 5 7. Source: the packing code of AutoGPTQ
// and AutoAWQ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/checkpoint.h"
#include "convert/json_file.h"
#include "formats/dtype.h"

namespace sluice::convert {

enum class Packing : uint8_t { kGptq, kGptqV2, kAwq };

// What quantization_config says. Errors: kUnsupported for another method, other than four bits, or a layout
// that is made for one kernel; kCorrupt.
struct PackingConfig {
  Packing packing = Packing::kGptq;
  uint64_t group_size = 0;  // columns; 0: all
};
Result<PackingConfig> ReadPackingConfig(const JsonObject& quantization);

// The tensors that stand for one weight.
struct PackedTensors {
  const SourceTensor* codes = nullptr;
  const SourceTensor* zeros = nullptr;
  const SourceTensor* scales = nullptr;
  const SourceTensor* groups = nullptr;  // null: by group_size
};
// The tensors STEM.qweight, STEM.qzeros … of a checkpoint. Error: kCorrupt when one is missing.
Result<PackedTensors> FindPacked(const Checkpoint& checkpoint, const std::string& stem);

// Holds the whole matrix, packed. Immutable after Load: any thread may read.
class PackedMatrix {
 public:
  // Errors: kCorrupt, naming the tensor, for shapes that don't belong together, a column in a group that is
  // not there, and scales that f16 can't hold; kIo.
  static Result<PackedMatrix> Load(const Checkpoint& checkpoint, const PackedTensors& tensors,
                                   const PackingConfig& config);

  uint64_t rows() const { return rows_; }
  uint64_t columns() const { return columns_; }

  // As floats: scale · (code − zero).
  void ReadRow(uint64_t row, std::span<float> out) const;

  // Q4_0 where every zero is 8, which is its own, else Q4_1. nullopt when neither can hold the codes: blocks
  // of 32 columns with several scales (act-order: the groups are no runs of columns).
  std::optional<formats::DType> BlockType() const;
  // The row as blocks of that type.
  void WriteBlocks(uint64_t row, formats::DType type, std::byte* blocks) const;

 private:
  uint32_t Code(uint64_t row, uint64_t column) const;
  float Scale(uint64_t group, uint64_t row) const { return scales_[group * rows_ + row]; }
  int Zero(uint64_t group, uint64_t row) const { return zeros_[group * rows_ + row]; }
  Status ReadScales(const Checkpoint& checkpoint, const PackedTensors& tensors);
  Status ReadZeros(const Checkpoint& checkpoint, const PackedTensors& tensors);
  Status ReadGroups(const Checkpoint& checkpoint, const PackedTensors& tensors, uint64_t group_size);

  Packing packing_ = Packing::kGptq;
  uint64_t rows_ = 0, columns_ = 0, n_groups_ = 0;
  std::vector<uint32_t> codes_;   // as stored
  std::vector<float> scales_;     // [n_groups, rows]
  std::vector<uint8_t> zeros_;    // [n_groups, rows]
  std::vector<uint32_t> groups_;  // [columns]
};

}  // namespace sluice::convert
