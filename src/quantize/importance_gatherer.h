// ImportanceGatherer: how much each column of each matrix matters, from text: the squares of the inputs that
// the matrix meets while the model reads, summed over tokens. What quantising weighs its errors by
// (importance_file.h).
//
// Sums are kept in double and added token by token, so they do not depend on threads or on how the text was
// cut into batches. Takes a cache and activations for one chunk from the ledger. One thread at a time;
// context and model outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/byte_sink.h"
#include "kv/cache.h"
#include "model/forward.h"
#include "model/model.h"
#include "quantize/importance_file.h"
#include "runtime/context.h"

namespace sluice::quantize {

class ImportanceGatherer {
 public:
  // Errors: kInvalidArgument for a chunk of no tokens, or more than the model has positions for; kDoesNotFit.
  static Result<std::unique_ptr<ImportanceGatherer>> Create(const runtime::Context& context,
                                                            const model::Model& model, int64_t chunk);

  int64_t chunk() const { return chunk_; }
  int64_t tokens() const { return tokens_; }  // read so far, those of merged files not counted

  // Reads up to `chunk` tokens as a text of their own. Errors: those of model::Forward::Run; kCorrupt when an
  // input is NaN or infinite, naming the matrix.
  Status Read(std::span<const int32_t> ids, const model::GoOn& go_on = {});

  // Adds what a file has. Errors: kInvalidArgument for tensors that this model has not, or of another width;
  // kCorrupt for numbers that no sum of squares is.
  Status Merge(const ImportanceFile& file);

  // Writes a GGUF file of importance. `dataset` is a name for the text. Errors: kInvalidArgument when nothing
  // was read or merged; those of the sink.
  Status Write(std::string_view dataset, const gguf::SinkOpener& open) const;

 private:
  struct Sums {
    std::vector<double> squares;  // [columns]
    double count = 0;             // of tokens
  };
  ImportanceGatherer(const runtime::Context& context, const model::Model& model, int64_t chunk)
      : context_(context), model_(model), chunk_(chunk) {}
  void Observe(model::Stage stage, int layer, const float* rows, int64_t n_rows, int64_t width);
  void Add(const ops::Linear& linear, const float* rows, int64_t n_rows, int64_t width);

  const runtime::Context& context_;
  const model::Model& model_;
  const int64_t chunk_;
  std::unique_ptr<kv::Cache> cache_;
  std::unique_ptr<model::Forward> forward_;
  std::map<std::string, Sums, std::less<>> sums_;  // by tensor, all there from the start
  std::vector<model::BatchRow> rows_;
  int64_t tokens_ = 0;
};

}  // namespace sluice::quantize
