// OutputTensor: a tensor of the file that is made, and TensorReader, which reads its numbers from the
// checkpoint in the file's order and with the changes that the file wants.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/checkpoint.h"
#include "convert/packed_matrix.h"
#include "convert/row_order.h"
#include "formats/dtype.h"

namespace sluice::convert {

struct OutputTensor {
  std::string name;
  formats::DType dtype = formats::DType::kF32;
  uint64_t rows = 0, columns = 0;  // a vector that one number of each row makes has columns 1
  bool vector = false;             // one dimension

  // Where its numbers come from: a tensor of the checkpoint, the three of a packed one, or `values`.
  const SourceTensor* source = nullptr;
  std::optional<PackedTensors> packed;
  std::vector<float> values;

  Change change = Change::kNone;
  RowOrder order{0};

  // How they are named in messages.
  const SourceTensor& named() const { return packed ? *packed->codes : *source; }
  bool is_computed() const { return source == nullptr && !packed; }
  // Of the checkpoint that its numbers take.
  uint64_t source_bytes(uint64_t n_rows) const;
};

// Reads one tensor that is not computed. Rows stream through, but for those stored as columns and packed
// ones, which are held whole. Not for use by several threads.
class TensorReader {
 public:
  // Errors: those of PackedMatrix::Load; kIo.
  static Result<TensorReader> Open(const Checkpoint& checkpoint, const OutputTensor& tensor,
                                   const PackingConfig& packing);

  // Rows [first, first + out.size() / columns). Errors: kCorrupt for a number that is NaN or infinite, naming
  // tensor, row and element as the checkpoint has them; kIo.
  Status Read(uint64_t first, std::span<float> out);
  // Null unless the tensor is packed. Its rows are those of the checkpoint.
  const PackedMatrix* packed() const { return packed_ ? &*packed_ : nullptr; }

 private:
  TensorReader(const Checkpoint& checkpoint, const OutputTensor& tensor)
      : checkpoint_(&checkpoint), tensor_(&tensor) {}
  Status ReadRun(uint64_t source_row, std::span<float> out);
  Status HoldTransposed();
  // Finds the mean magnitude of all numbers.
  Status MeasureMagnitude();

  const Checkpoint* checkpoint_;
  const OutputTensor* tensor_;
  std::vector<float> held_;  // [rows, columns], of one stored as columns
  float magnitude_ = 0;      // of one that is made ternary: the mean
  std::optional<PackedMatrix> packed_;
};

}  // namespace sluice::convert
