// Calibration: a text on its way through a model, layer by layer, so that each layer can be looked at,
// changed, and gone through as it then is.
//
// Holds the residual stream of all tokens between two layers. The layers are run by model::Forward from a
// file whose weights are mapped; which file, may be another one each time, as long as it is the same model in
// other weight types.
//
// Stream, cache and activations come from the ledger. One thread at a time; the context outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "memory/arena.h"
#include "model/forward.h"
#include "quantize/hessian.h"
#include "runtime/context.h"

namespace sluice::quantize {

// A text in pieces that are read each on its own.
using TextChunks = std::vector<std::vector<int32_t>>;

class Calibration {
 public:
  // Of the residual stream.
  static uint64_t StreamBytes(const TextChunks& text, int64_t d_model);

  // Errors: kInvalidArgument for a text without tokens; kDoesNotFit; those of model::ReadConfig.
  static Result<std::unique_ptr<Calibration>> Create(const runtime::Context& context,
                                                     const gguf::GgufFile& file, TextChunks text);
  ~Calibration();

  int64_t tokens() const { return tokens_; }
  // Asked now and then; false stops: kInterrupted.
  void set_go_on(model::GoOn go_on) { go_on_ = std::move(go_on); }

  // Each of these runs `file`. Errors: those of model::BindWeights, WeightStore::Create, Forward::Create and
  // Forward::Run.

  // The stream begins with the tokens' embeddings.
  Status Embed(const gguf::GgufFile& file);
  // What comes in at a stage of the layer joins the Hessian; the stream stays before the layer.
  Status Gather(const gguf::GgufFile& file, int layer, model::Stage stage, Hessian& hessian);
  // The stream goes through the layer.
  Status Advance(const gguf::GgufFile& file, int layer);
  // What comes in at the output matrix joins the Hessian. The stream is behind the last layer.
  Status GatherOutput(const gguf::GgufFile& file, Hessian& hessian);

 private:
  Calibration(const runtime::Context& context, TextChunks text) : context_(context), text_(std::move(text)) {}
  Status Run(const gguf::GgufFile& file, model::LayerRange layers, bool from_stream, bool to_logits,
             const model::Observer& observer);
  // What an observer of `stage` adds to the Hessian.
  model::Observer Watch(model::Stage stage, Hessian& hessian) const;

  const runtime::Context& context_;
  const TextChunks text_;
  int64_t tokens_ = 0, longest_ = 0, d_model_ = 0;
  model::GoOn go_on_;
  memory::Arena stream_memory_;
  float* stream_ = nullptr;  // [tokens, d_model], chunk after chunk
  float* next_ = nullptr;    // of the chunk that is being read, or null: where its new stream goes
};

}  // namespace sluice::quantize
