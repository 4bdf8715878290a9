// Model: a model file ready to talk: weights, tokenizer, chat template, and the sampling settings that its maker
// suggests.
//
// Immutable after Open and shared by the conversations that use it; the engine outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "model/model.h"
#include "plan/planner.h"
#include "sample/options.h"
#include "sluice/conversation_options.h"
#include "sluice/engine.h"
#include "weights/residency.h"

namespace sluice {

using TokenId = text::TokenId;

// How a model is opened, and what it is to be used for: all of the memory is planned before the first weight is read.
struct ModelOptions {
  std::vector<std::string> overrides;  // metadata, "key=type:value"

  ConversationOptions conversation;    // that room is made for
  int conversations = 1;               // at a time
  std::optional<weights::Residency> residency;  // unset: resident if everything fits, else pin
  weights::StoreOptions store;                  // ring, slabs and the like
  // Files whose tensors stand in for the model's, to try other weight types without writing the whole model.
  std::vector<gguf::Replacement> replacements;
  bool strict = false;                 // refuse what was not asked for: a shorter context, fewer bits, streaming
  uint64_t reserve_bytes = 0;          // of the budget, to be left for others
};

// The request that Model::Open plans by.
plan::Request RequestFor(const Engine& engine, const ModelOptions& options);

class Model {
 public:
  // `path` leads to a GGUF file, or to the first part of a split one. Errors name the file and what is wrong with it;
  // kDoesNotFit says what is needed and what would fit.
  static Result<std::shared_ptr<const Model>> Open(const Engine& engine, const std::string& path,
                                                   const ModelOptions& options = {});
  ~Model();

  const std::string& path() const;
  const model::Model& parts() const;  // file, configuration, weights, tokenizer
  const model::Config& config() const { return parts().config(); }
  const text::Tokenizer& tokenizer() const { return parts().tokenizer(); }
  const plan::Plan& plan() const;      // where the memory goes
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
