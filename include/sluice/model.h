// Model: a model file ready to talk: weights, tokenizer, chat template, and the sampling settings that its maker
// suggests.
//
// Immutable after Open and shared by the conversations that use it; the engine outlives it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "model/model.h"
#include "sample/options.h"
#include "sluice/engine.h"

namespace sluice {

using TokenId = text::TokenId;
using ModelOptions = model::ModelOptions;

class Model {
 public:
  // `path` leads to a GGUF file, or to the first part of a split one. Errors name the file and what is wrong with it.
  static Result<std::shared_ptr<const Model>> Open(const Engine& engine, const std::string& path,
                                                   const ModelOptions& options = {});
  ~Model();

  const std::string& path() const;
  const model::Model& parts() const;  // file, configuration, weights, tokenizer
  const model::Config& config() const { return parts().config(); }
  const text::Tokenizer& tokenizer() const { return parts().tokenizer(); }
  const chat::ChatTemplate& chat_template() const;
  const sample::SamplerOptions& sampling() const;  // the file's own settings over Sluice's defaults
  // Remarks about the file, each one sentence, fit to be shown once.
  const std::vector<std::string>& warnings() const;

  // Ids of plain text to be continued, with BOS where the model wants one. Control tokens in it stay text.
  Result<std::vector<TokenId>> EncodeText(std::string_view text) const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Ids of a rendered prompt: special tokens only where the template wrote them, exactly one BOS where the model wants one.
Result<std::vector<TokenId>> EncodePrompt(const text::Tokenizer& tokenizer, std::span<const chat::Segment> prompt);

// A model file's tokenizer and template without its weights, for tools. Errors: as Model::Open.
struct Vocabulary {
  text::Tokenizer tokenizer;
  chat::ChatTemplate chat_template;
};
Result<Vocabulary> OpenVocabulary(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace sluice
