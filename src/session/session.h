// Session: one conversation with a model: the tokens it holds, their keys and values, and the logits that
// follow.
//
// Layers with a sliding window, and all layers once the context overflows (kv::Overflow), keep the newest
// tokens only. So the session can't always forget just the last few: it takes a checkpoint behind every
// prompt, and goes back to that one.
//
// Owns its KV cache and activations, all taken at Create. One thread at a time. The context and the model
// outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/byte_source.h"
#include "kv/sequence.h"
#include "model/forward.h"
#include "model/model.h"
#include "runtime/context.h"
#include "sample/sampler.h"
#include "text/vocabulary.h"

namespace sluice::session {

using text::TokenId;

struct SessionOptions {
  kv::Settings kv;  // one sequence; batch: tokens read in one go, > 0; context_length > 0
  runtime::Fusion fusion = runtime::Fusion::kAll;
};

// Called with tokens done and tokens in all, also again and again while a batch is under way (of which that part counts as
// done that its pass is through with); returns false to stop.
using ReadProgress = std::function<bool(int64_t done, int64_t total)>;

class Session {
 public:
  // Bytes that a session takes from the ledger: KV cache and activations.
  static uint64_t Bytes(const model::Model& model, const SessionOptions& options, int workers);

  // Whether this model goes on when its context overflows as the options want it to. Errors: kUnsupported
  // with the reason, kInvalidArgument for numbers out of range.
  static Status CheckOverflow(const model::Model& model, const SessionOptions& options);

  // Errors: those of CheckOverflow; kDoesNotFit when the ledger has no room, kUnsupported for a type of cache
  // that this model can't have, kInvalidArgument for a context beyond what the model has positions for.
  static Result<std::unique_ptr<Session>> Create(const runtime::Context& context, const model::Model& model,
                                                 const SessionOptions& options);

  const model::Model& model() const { return model_; }
  int64_t context_length() const { return options_.kv.context_length; }
  int64_t batch() const { return options_.kv.batch; }
  kv::Overflow overflow() const { return options_.kv.overflow; }
  // Whether no further token can be read.
  bool full() const { return tokens_.size() >= most_tokens_; }

  // Told of the steps of each pass from now on; null for nobody.
  void set_tracer(runtime::Tracer* tracer) { forward_->set_tracer(tracer); }
  // Passes over the model so far.
  int64_t passes() const { return passes_; }
  // Bytes of keys and values that a token sees when `length` tokens are held.
  uint64_t SeenBytes(int64_t length) const;

  // What has been read so far.
  std::span<const TokenId> tokens() const { return tokens_; }
  // Logits [vocab_size] of what follows the last token. Empty before anything was read.
  std::span<const float> logits() const { return logits_; }

  // Makes the session hold exactly `ids` (at least one): what it already holds of them is kept, the rest is
  // read. Returns how many were kept. Errors: kDoesNotFit when there are more than context_length;
  // kInvalidArgument for ids outside the vocabulary; kInterrupted when `progress` says so (what was read
  // until then is kept).
  Result<int64_t> Read(std::span<const TokenId> ids, const ReadProgress& progress = {});

  // Reads one more token. Errors: kDoesNotFit when the context is full; kInterrupted when `go_on` says so,
  // with nothing changed.
  Status Advance(TokenId id, const model::GoOn& go_on = {});

  // The logits after each of `ids`, which follow what the session holds: for perplexity and comparisons.
  Status ReadAll(std::span<const TokenId> ids,
                 const std::function<void(size_t index, std::span<const float>)>& sink);

  // Forgets the tokens from `length` on, and as many before as it takes to have what the model sees from
  // there: back to the last checkpoint, or all. Returns how many are still held. The logits are gone until
  // something is read.
  int64_t Truncate(int64_t length);

  // Writes what the session holds to a file, and a sampler's state if there is one: the file is there whole
  // or not at all, and one that was there before stays until then. Errors: kIo.
  Status Save(const std::string& path, const sample::SamplerState* sampler);
  // Holds what a file has, in place of what the session held; nothing is read again. The sampler's state is
  // none where the file has none. Errors, after which nothing is held: kInvalidArgument for a file of another
  // model or other options, with the reason; kCorrupt, kUnsupported, kDoesNotFit, kNotFound, kIo.
  Status Load(const std::string& path, std::optional<sample::SamplerState>* sampler);
  Status LoadFrom(const gguf::ByteSource& source, std::optional<sample::SamplerState>* sampler);

 private:
  Session(const model::Model& model, const SessionOptions& options);
  model::LogitsSink TakeLogits();
  // The first of `ids` that are read in one go.
  std::span<const TokenId> NextBatch(std::span<const TokenId> ids) const;
  void TakeCheckpoint();
  Result<uint64_t> ModelFingerprint();
  Status ReadSnapshot(const gguf::ByteSource& source, std::optional<sample::SamplerState>* sampler);
  // Reads more tokens; those from index `logits_from` on have their logits computed.
  Status Run(std::span<const TokenId> ids, size_t logits_from, const model::LogitsSink& sink,
             const model::GoOn& go_on = {});

  const model::Model& model_;
  const SessionOptions options_;
  const size_t most_tokens_;
  std::unique_ptr<kv::Cache> cache_;
  std::unique_ptr<kv::Sequence> sequence_;
  std::optional<kv::Sequence> checkpoint_;  // of the first tokens_
  std::unique_ptr<model::Forward> forward_;
  std::vector<float> checkpoint_logits_;
  std::optional<uint64_t> fingerprint_;  // of the model, once it was needed
  int64_t passes_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<float> logits_;
  std::vector<model::BatchRow> rows_;  // of the batch under way
};

}  // namespace sluice::session
