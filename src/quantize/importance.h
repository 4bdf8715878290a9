// Importance: how much each column of a weight matrix counts when it is quantised. Measured from what flows
// through the model (the mean square of the column's input), kept in a file, and looked up here by tensor.
//
// The quantiser asks from one thread, tensor by tensor, so that an implementation need not hold them all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/tensor_info.h"

namespace sluice::quantize {

class Importance {
 public:
  virtual ~Importance() = default;
  // Where it comes from, for messages.
  virtual const std::string& origin() const = 0;
  // The tensors that it knows, by their names in model files.
  virtual std::span<const std::string> tensors() const = 0;
  // [matrices, columns] of one of tensors(), as stored.
  virtual Result<std::vector<float>> Load(const std::string& tensor) const = 0;
};

// What is known about one tensor, checked.
struct TensorImportance {
  std::vector<float> weights;    // [matrices, columns]; empty: nothing is known
  uint64_t matrices = 0;         // experts; 1 for a plain matrix
  uint64_t unseen_matrices = 0;  // that had no weight above 0: all of theirs are 1 now

  // Of row `row` of the tensor, from `column` on; empty when nothing is known.
  std::span<const float> Of(const gguf::Tensor& tensor, uint64_t row, uint64_t column, uint64_t count) const;
};

// Errors: kInvalidArgument, naming the tensor and the place, for another number of columns, and for weights
// that are negative, infinite or NaN.
Result<TensorImportance> ImportanceOf(const Importance& importance, const gguf::Tensor& tensor);

// Refuses data for another model: kInvalidArgument when none of its tensors is among `tensors`.
Status CheckSameModel(const Importance& importance, std::span<const gguf::Tensor> tensors);

}  // namespace sluice::quantize
