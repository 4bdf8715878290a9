// The part of `sluice quantize` that chooses types by measurement (--fit): the budget, the runs on sample
// text, and what is shown of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sluice/engine.h"
#include "sluice/eval.h"
#include "sluice/model.h"
#include "sluice/quantize.h"

namespace sluice::app {

// Bytes that the file may have: a size, or what a device has left for weights (`sluice plan --device`) beside
// keys and values of a context of that length (0: the plan's default) and everything else. Errors:
// kInvalidArgument, kDoesNotFit.
Result<uint64_t> FitBudget(const std::string& size_or_device, const std::string& model_path,
                           int64_t context_length);

// How far a model with other weights is from the one in a file, on a sample of text.
class SampleDivergence {
 public:
  // Runs the model on up to `windows` windows of 512 tokens of the text, read as ReadIds does; what it
  // predicts is kept in a file at `scratch` until this is gone. The engine outlives it.
  static Result<std::unique_ptr<SampleDivergence>> Create(const Engine& engine, const std::string& model_path,
                                                          const std::string& text_file, bool special,
                                                          int64_t windows, const std::string& scratch);
  ~SampleDivergence();

  // The same text with these tensors in the place of the model's.
  Result<eval::Divergence> Measure(std::span<const gguf::Replacement> replacements) const;
  int64_t positions() const { return windows_.scored(); }

 private:
  SampleDivergence(const Engine& engine, std::string model_path, std::string scratch)
      : engine_(engine), model_path_(std::move(model_path)), scratch_(std::move(scratch)) {}
  Result<std::shared_ptr<const Model>> Open(std::span<const gguf::Replacement> replacements) const;
  // Calls `sink` with the logits at each scored position, in order; it returns why to stop.
  using PositionSink = std::function<Status(int64_t index, std::span<const float> logits)>;
  Status Run(const std::shared_ptr<const Model>& model, const PositionSink& sink) const;

  const Engine& engine_;
  const std::string model_path_, scratch_;
  eval::TextWindows windows_;
};

// What was chosen, and what it costs by prediction and by measurement on the sample.
struct FitSummary {
  quantize::FitReport report;
  uint64_t budget_bytes = 0;
  eval::Divergence measured;
};
nlohmann::ordered_json FitJson(const FitSummary& fit);
void PrintFit(const FitSummary& fit);

}  // namespace sluice::app
