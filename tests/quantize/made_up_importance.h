// Importance data of a test's own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quantize/importance.h"

namespace sluice::quantize {

class MadeUpImportance final : public Importance {
 public:
  explicit MadeUpImportance(std::map<std::string, std::vector<float>> weights)
      : weights_(std::move(weights)) {
    for (const auto& [name, unused] : weights_) names_.push_back(name);
  }
  const std::string& origin() const override { return origin_; }
  std::span<const std::string> tensors() const override { return names_; }
  Result<std::vector<float>> Load(const std::string& tensor) const override { return weights_.at(tensor); }

 private:
  std::string origin_ = "made up";
  std::map<std::string, std::vector<float>> weights_;
  std::vector<std::string> names_;
};

}  // namespace sluice::quantize
