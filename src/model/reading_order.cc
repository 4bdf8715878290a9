#include "model/reading_order.h"

#include <set>
#include <span>

#include "model/config.h"
#include "model/weights.h"

namespace sluice::model {

Result<std::vector<const gguf::Tensor*>> ReadingOrder(const gguf::GgufFile& file) {
  SLUICE_TRY_ASSIGN(Config config, ReadConfig(file.metadata()));
  SLUICE_TRY_ASSIGN(const Weights weights, BindDirectory(config, file.tensors()));
  std::vector<const gguf::Tensor*> swept;
  std::set<const gguf::Tensor*> seen;
  for (const weights::Operation& operation : weights.schedule.operations) {
    for (const weights::Matrix& matrix :
         std::span(operation.matrices).first(static_cast<size_t>(operation.count))) {
      if (seen.insert(matrix.tensor).second) swept.push_back(matrix.tensor);
    }
  }
  std::vector<const gguf::Tensor*> order;
  const auto add_rest = [&](auto wanted) {
    for (const gguf::Tensor& tensor : file.tensors()) {
      if (!seen.contains(&tensor) && wanted(tensor)) order.push_back(&tensor);
    }
  };
  const auto is_embedding = [&](const gguf::Tensor& tensor) {
    return &tensor == weights.token_embedding.tensor || &tensor == weights.position_embedding.tensor;
  };
  add_rest([&](const gguf::Tensor& tensor) { return !is_embedding(tensor); });
  add_rest(is_embedding);
  order.insert(order.end(), swept.begin(), swept.end());
  return order;
}

}  // namespace sluice::model
