// Model: a model file, opened, checked and in memory, with its tokenizer.
//
// Owns everything that is read from the file. Immutable after Open; any number of Forward objects may use it. The
// context's ledger is charged while the model lives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/weights.h"
#include "runtime/context.h"
#include "text/tokenizer.h"
#include "weights/weight_store.h"

namespace sluice::model {

struct ModelOptions {
  std::vector<std::string> overrides;  // metadata, "key=type:value"
  weights::Progress progress;          // of reading the weights
};

class Model {
 public:
  // Errors: those of gguf::GgufFile::Open, ReadConfig, ReadTokenizer, BindWeights and WeightStore::Load, with the path
  // in front.
  static Result<std::unique_ptr<Model>> Open(const runtime::Context& context, const std::string& path,
                                             const ModelOptions& options = {});
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const gguf::GgufFile& file() const { return file_; }
  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  Model(gguf::GgufFile file, Config config, text::Tokenizer tokenizer)
      : file_(std::move(file)), config_(std::move(config)), tokenizer_(std::move(tokenizer)) {}

  gguf::GgufFile file_;
  Config config_;
  text::Tokenizer tokenizer_;
  weights::WeightStore store_;
  Weights weights_;
};

}  // namespace sluice::model
