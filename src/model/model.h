// Model: a model file, opened and checked, with its tokenizer and the store that its weights come from.
//
// Opened in two steps, so that memory can be planned between them: the header first, then the store.
//
// Owns everything that is read from the file. Immutable after Load, except that the store brings weights into memory as
// they are needed; any number of Forward objects may use it, one pass at a time. The context's ledger is charged while
// the model lives.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "memory/ledger.h"
#include "model/weights.h"
#include "plan/facts.h"
#include "runtime/context.h"
#include "text/tokenizer.h"
#include "weights/weight_store.h"

namespace sluice::model {

struct ModelOptions {
  std::vector<std::string> overrides;  // metadata, "key=type:value"
  weights::StoreOptions store;         // where the weights live
};

class Model {
 public:
  // Errors: those of gguf::GgufFile::Open, ReadConfig, ReadTokenizer, BindWeights and WeightStore::Create, with the path
  // in front.
  static Result<std::unique_ptr<Model>> Open(const runtime::Context& context, const std::string& path,
                                             const ModelOptions& options = {});
  // The two steps. After OpenHeader there are configuration, tokenizer and the places of the weights; Load takes the
  // memory for them.
  static Result<std::unique_ptr<Model>> OpenHeader(const std::string& path,
                                                   const std::vector<std::string>& overrides,
                                                   std::span<const gguf::Replacement> replacements = {});
  Status Load(const runtime::Context& context, const weights::StoreOptions& options);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // For the planner. Errors: those of FactsOf.
  Result<plan::ModelFacts> Facts() const;
  // What the tokenizer and the file's header take, as Load charges it.
  uint64_t TokenizerBytes() const;

  const gguf::GgufFile& file() const { return file_; }
  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  weights::WeightStore& store() const { return *store_; }

 private:
  Model(std::string path, gguf::GgufFile file, Config config, text::Tokenizer tokenizer)
      : path_(std::move(path)), file_(std::move(file)), config_(std::move(config)), tokenizer_(std::move(tokenizer)) {}

  std::string path_;
  gguf::GgufFile file_;
  Config config_;
  text::Tokenizer tokenizer_;
  memory::Reservation tokenizer_charge_;
  Weights weights_;
  std::unique_ptr<weights::WeightStore> store_;
};

}  // namespace sluice::model
