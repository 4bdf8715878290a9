// Error feedback: the matrices of a model's layers → blocks of other types, each matrix with regard to how
// its inputs are correlated, and to what quantising the layers before it did to them.
//
// A calibration text goes through the model layer by layer (calibration.h). In each layer the inputs of Q, K
// and V are gathered, then these are quantised; those of the attention's output projection, with Q, K and V
// as they now are; of gate and up; of down. Then the stream goes through the finished layer. At the end the
// output matrix. One Hessian is held at a time. What is done waits in files beside the output, in all as
// large as that, until it is put together (QuantizeOptions::encoded).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "quantize/calibration.h"
#include "quantize/type_choice.h"
#include "runtime/context.h"

namespace sluice::quantize {

struct FeedbackOptions {
  TextChunks text;
  // Columns whose correlations are known among one another; matrices with longer rows have them in several
  // stretches.
  int64_t widest = 4096;
  // Added to the diagonal of each Hessian, as a part of its mean.
  double damping = 0.01;
  // Told of the share that is done; false stops: kInterrupted, and nothing is left.
  std::function<bool(double share)> progress;
};

// Files of encoded tensors, which are removed with this.
class EncodedTensors {
 public:
  EncodedTensors() = default;
  EncodedTensors(EncodedTensors&& other) noexcept { *this = std::move(other); }
  EncodedTensors& operator=(EncodedTensors&& other) noexcept;
  ~EncodedTensors() { Remove(); }

  // Lets them stand in for the tensors of the file that they were made from. Errors: those of
  // GgufFile::Replace.
  Status ReplaceIn(gguf::GgufFile& file) const;

 private:
  friend class FeedbackRun;
  void Remove();
  std::vector<std::string> paths_;
};

// Encodes the matrices of `input` whose type is to change to a block format. choices: one for each tensor of
// the file. Files are named by `scratch` with something behind it. Errors: those of Calibration and
// FeedbackEncoder; kCorrupt and kUnsupported for weights that can't be encoded, as Recoder has them;
// kInterrupted; kIo.
Result<EncodedTensors> EncodeWithFeedback(const runtime::Context& context, const std::string& input,
                                          std::span<const TypeChoice> choices, FeedbackOptions options,
                                          const std::string& scratch);

}  // namespace sluice::quantize
