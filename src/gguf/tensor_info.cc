#include "gguf/tensor_info.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/units.h"

namespace sluice::gguf {

Status CheckLabel(std::string_view label, size_t max_bytes) {
  if (label.size() > max_bytes) {
    return Fail(ErrorCode::kCorrupt, "has {} bytes, expected at most {}", label.size(), max_bytes);
  }
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const auto at = std::ranges::find_if(label, control);
  if (at == label.end()) return {};
  return Fail(ErrorCode::kCorrupt, "has the control character {:#04x} at its byte {}",
              static_cast<unsigned char>(*at), at - label.begin());
}

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
