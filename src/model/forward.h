// Forward: token ids to logits.
//
// Takes batches of rows that may belong to many sequences; each row's key and value join its sequence's
// cache, and the rows that ask for logits get them. What a row's logits are depends on its sequence's tokens
// only: not on how they were cut into batches, on the other rows, or on the number of workers
// (docs/arithmetic.md).
//
// All memory is taken at Create. One thread at a time calls Run; it works on the context's pool. Operators
// are fused as the options say (runtime/fusion.h), which changes memory and time, and no bit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/sequence.h"
#include "memory/arena.h"
#include "model/config.h"
#include "model/forward_buffers.h"
#include "model/weights.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/rope.h"
#include "runtime/context.h"
#include "runtime/tracer.h"

namespace sluice::model {

// The layers of a cache for this model.
std::vector<kv::LayerShape> CacheLayers(const Config& config);

// One token of one sequence. Rows of one sequence stand in the order of their positions.
struct BatchRow {
  int32_t token;
  kv::Sequence* sequence;
  bool wants_logits;
  // [d_model]: where the residual stream begins, instead of the token's embedding; null: there.
  const float* stream = nullptr;
};

// Layers [first, end) of a model.
struct LayerRange {
  int first, end;
};

// Called with the index of a row in the batch and its logits [vocab_size], valid during the call.
using LogitsSink = std::function<void(size_t row, std::span<const float> logits)>;

// Asked again and again while a batch is under way; false abandons it.
using GoOn = ops::GoOn;

// What an observer can look at: the inputs of the matrices, and the stages between. Each is a matrix with one
// row for each row of the batch.
enum class Stage {
  kEmbedding,        // [d_model], layer −1
  kAttentionInput,   // [d_model], what Q, K and V multiply
  kQuery,            // [n_heads · k_dim], after norm and rope
  kKey,              // [n_kv_heads · k_dim]
  kValue,            // [n_kv_heads · v_dim]
  kAttended,         // [n_heads · v_dim], what the output projection multiplies
  kAttentionOutput,  // [d_model], the residual stream after attention
  kFfnInput,         // [d_model], what gate and up multiply
  kFfnActivated,     // [d_ff], what the down projection multiplies
  kLayerOutput,      // [d_model], the residual stream after the layer
  kOutputInput,      // [d_model], normalised; layer −1; only rows that want logits
};
using Observer =
    std::function<void(Stage stage, int layer, const float* rows, int64_t n_rows, int64_t width)>;

class Forward {
 public:
  // Bytes of activations.
  static uint64_t ActivationBytes(const Config& config, const Weights& weights, const ForwardOptions& options,
                                  int workers);

  // config, weights, store and context outlive the result. Caches that Run is given have the layers of
  // CacheLayers(config). Error: kDoesNotFit when the ledger has no room for the activations.
  static Result<std::unique_ptr<Forward>> Create(const runtime::Context& context, const Config& config,
                                                 const Weights& weights, weights::WeightStore& store,
                                                 const ForwardOptions& options);

  ~Forward();

  int64_t max_batch() const { return options_.max_batch; }

  // For statistics and tests: called between the steps of a batch. Changes nothing. Needs Fusion::kNone:
  // fused operators leave nothing to be looked at.
  void set_observer(Observer observer);
  // Told of the steps of each pass; null for nobody.
  void set_tracer(runtime::Tracer* tracer) { tracer_ = tracer; }

  // How much of the pass under way is done, in layers: 0 … 1. For the `go_on` of Run.
  double pass_share() const {
    return static_cast<double>(layers_done_) / static_cast<double>(config_.layers.size());
  }

  // Runs 1 … max_batch rows. Errors, each leaving the sequences as they were: kInvalidArgument for a token
  // outside the vocabulary, kDoesNotFit when a sequence or the cache is full or the model has no such
  // position, kInterrupted when `go_on` says so; what the weight store says when weights could not be read.
  Status Run(std::span<const BatchRow> rows, kv::Cache& cache, const LogitsSink& sink,
             const GoOn& go_on = {});
  // A part of a pass: these layers alone, then the logits of the rows that want them. Where the range is to
  // begin with something else than embeddings, rows bring their stream. An observer sees what goes in and
  // comes out. Needs a store whose weights are mapped, in any order. With an empty sink, no logits.
  Status RunLayers(std::span<const BatchRow> rows, LayerRange layers, kv::Cache& cache,
                   const LogitsSink& sink, const GoOn& go_on = {});

 private:
  Forward(const runtime::Context& context, const Config& config, const Weights& weights,
          weights::WeightStore& store, const ForwardOptions& options);

  Status Admit(std::span<const BatchRow> rows);
  static void Withdraw(std::span<const BatchRow> rows);
  Status RunPart(std::span<const BatchRow> rows, LayerRange layers, kv::Cache& cache, const LogitsSink& sink,
                 const GoOn& go_on);
  Status RunAdmitted(std::span<const BatchRow> rows, LayerRange layers, kv::Cache& cache,
                     const LogitsSink& sink, const GoOn& go_on);
  Status Embed(std::span<const BatchRow> rows);
  void ExpectEmbeddings(std::span<const BatchRow> rows, int64_t first, int64_t count) const;
  // The i-th row of the batch: its residual stream, and the angles of its position.
  Status EmbedRow(const BatchRow& row, int64_t i, int worker);
  // The angles by which queries turn to tokens that are further away than the model knows (ops::Turns).
  void PrepareTurns(const kv::Cache& cache);
  ops::Turns TurnsOf(const LayerConfig& layer) const;
  Status RunLayer(int index, kv::Cache& cache, const GoOn& go_on);
  // Makes the input of an operation from the residual stream, through a norm where there is one.
  void SetInput(ops::Activations& input, int operation, const NormWeights& norm);
  Status Attend(int index, kv::Cache& cache, const GoOn& go_on);
  Status ProjectHeads(int index, kv::Cache& cache, const GoOn& go_on);
  // What lies between the Q, K, V products and attention, for one row of the batch.
  void NormalizeHeads(int index, int64_t row);
  void TurnHeads(int index, int64_t row);
  void StoreHeads(int index, int64_t row, kv::Cache& cache);
  Status FeedForward(int index, const GoOn& go_on);
  // The activated input of the down projection, into buffers_->ffn.
  Status GateAndUp(int index, const GoOn& go_on);
  // An output projection onto the residual stream, through a norm where there is one. `branch` may be null
  // where there is none.
  Status ProjectOntoStream(const ops::Linear& linear, int operation, const ops::Activations& input,
                           const NormWeights& norm, float* branch, const GoOn& go_on);
  Status Output(std::span<const BatchRow> rows, const LogitsSink& sink, const GoOn& go_on);
  // The row of a table of embeddings, as f32 [d_model].
  Status LookUp(const weights::Matrix& table, int64_t row, int worker, std::span<float> out);

  runtime::StepTimer Steps(int layer) const { return {tracer_, context_.clock, layer}; }
  const ops::Operation& OperationAt(int index) const { return operations_[static_cast<size_t>(index)]; }

  bool Fuses(runtime::Fusion what) const { return options_.fusion >= what; }

  // y = norm(x), one row. weight and bias may be null. x may be y.
  void NormalizeRow(const float* weight, const float* bias, const float* x, int64_t width, float* y) const;
  // x = norm(x), row by row, rows of `width`; nothing where there is no norm.
  void Normalize(const NormWeights& norm, int64_t width, float* x);
  void Observe(Stage stage, int layer, const float* rows, int64_t width) const {
    if (observer_) observer_(stage, layer, rows, static_cast<int64_t>(rows_.size()), width);
  }

  const runtime::Context& context_;
  const Config& config_;
  const Weights& weights_;
  weights::WeightStore& store_;
  const ForwardOptions options_;
  memory::Arena arena_;
  std::vector<ops::Rope> ropes_;            // full layers, sliding layers
  std::vector<float> alibi_slopes_;         // [n_heads] or empty
  std::vector<ops::Operation> operations_;  // by index in the schedule
  ForwardBuffers buffers_;
  std::vector<ops::AttentionRow> rows_;  // of the batch under way
  size_t layers_done_ = 0;               // of the pass under way
  Observer observer_;
  runtime::Tracer* tracer_ = nullptr;
};

}  // namespace sluice::model
