#include "quantize/importance.h"

#include <algorithm>
#include <cmath>

namespace sluice::quantize {

std::span<const float> TensorImportance::Of(const gguf::Tensor& tensor, uint64_t row, uint64_t column,
                                            uint64_t count) const {
  if (weights.empty()) return {};
  const uint64_t matrix = matrices == 1 ? 0 : row / tensor.dims[1];
  return std::span(weights).subspan(matrix * tensor.columns() + column, count);
}

Result<TensorImportance> ImportanceOf(const Importance& importance, const gguf::Tensor& tensor) {
  const auto known = std::ranges::find(importance.tensors(), tensor.name);
  if (known == importance.tensors().end()) return TensorImportance{};
  SLUICE_TRY_ASSIGN(std::vector<float> weights, importance.Load(*known));

  const uint64_t columns = tensor.columns(), matrices = tensor.dims[2] * tensor.dims[3];
  if (weights.size() != columns * matrices && weights.size() != columns) {
    return Fail(ErrorCode::kInvalidArgument, "{}: tensor {} has {} weights of columns, expected {} × {}",
                importance.origin(), tensor.name, weights.size(), matrices, columns);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0 && std::isfinite(weights[i])) continue;
    return Fail(ErrorCode::kInvalidArgument, "{}: tensor {}: the weight of column {} (matrix {}) is {}",
                importance.origin(), tensor.name, i % columns, i / columns, weights[i]);
  }
  TensorImportance result{.weights = std::move(weights)};
  result.matrices = result.weights.size() / columns;
  for (uint64_t m = 0; m < result.matrices; ++m) {
    const std::span<float> matrix = std::span(result.weights).subspan(m * columns, columns);
    if (std::ranges::any_of(matrix, [](float w) { return w > 0; })) continue;
    std::ranges::fill(matrix, 1.0f);
    ++result.unseen_matrices;
  }
  return result;
}

Status CheckSameModel(const Importance& importance, std::span<const gguf::Tensor> tensors) {
  for (const std::string& name : importance.tensors()) {
    if (std::ranges::find(tensors, name, &gguf::Tensor::name) != tensors.end()) return {};
  }
  return Fail(ErrorCode::kInvalidArgument,
              "{}: is for another model: none of its {} tensors is in this one{}", importance.origin(),
              importance.tensors().size(),
              importance.tensors().empty() ? "" : " (" + importance.tensors().front() + " …)");
}

}  // namespace sluice::quantize
