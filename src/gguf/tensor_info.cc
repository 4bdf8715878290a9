#include "gguf/tensor_info.h"

#include <limits>
#include <span>

#include "base/units.h"

namespace sluice::gguf {

Status ComputeSize(Tensor& tensor) {
  const auto too_large = [&] {
    return Fail(ErrorCode::kCorrupt, "tensor {}: dimensions [{}] are too large to multiply", tensor.name,
                fmt::join(std::span(tensor.dims).first(tensor.n_dims), ", "));
  };
  uint64_t elements = 1;
  for (uint32_t i = 0; i < tensor.n_dims; ++i) {
    if (tensor.dims[i] == 0) return Fail(ErrorCode::kCorrupt, "tensor {}: dimension {} is 0", tensor.name, i);
    if (!CheckedMultiply(elements, tensor.dims[i], &elements)) return too_large();
  }
  if (elements > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return too_large();
  if (tensor.traits == nullptr) return {};
  const uint64_t length = tensor.traits->block_length;
  if (tensor.columns() % length != 0) {
    return Fail(ErrorCode::kCorrupt, "tensor {}: rows of {} elements are not whole blocks of {}'s {}",
                tensor.name, tensor.columns(), tensor.traits->name, length);
  }
  if (!CheckedMultiply(elements / length, tensor.traits->block_bytes, &tensor.size_bytes)) return too_large();
  return {};
}

}  // namespace sluice::gguf
