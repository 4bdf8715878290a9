#include "model/model.h"

#include "base/units.h"
#include "gguf/overrides.h"
#include "model/vocabulary.h"

namespace sluice::model {

namespace {

Error WithNextStep(Error error, const gguf::GgufFile& file, const memory::Ledger& ledger) {
  if (error.code != ErrorCode::kDoesNotFit) return error;
  uint64_t bytes = ledger.Snapshot().total_bytes();
  for (const gguf::Tensor& tensor : file.tensors()) bytes += tensor.size_bytes;
  error.message += fmt::format("; it takes a budget above {}, or a file with fewer bits per weight", FormatBytes(bytes));
  return error;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Open(const runtime::Context& context, const std::string& path,
                                           const ModelOptions& options) {
  SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(path));
  for (const std::string& override : options.overrides) SLUICE_TRY(gguf::ApplyOverride(override, file.metadata()));
  auto config = ReadConfig(file.metadata());
  if (!config) return Annotate(std::move(config).error(), path);
  auto tokenizer = ReadTokenizer(file.metadata());
  if (!tokenizer) return Annotate(std::move(tokenizer).error(), path);
  std::unique_ptr<Model> model(new Model(std::move(file), *std::move(config), *std::move(tokenizer)));
  // Weights and store point to the file, so they are made when it has come to rest.
  auto weights = BindWeights(model->config_, model->file_);
  if (!weights) return Annotate(std::move(weights).error(), path);
  model->weights_ = *std::move(weights);
  auto store = weights::WeightStore::Create(context, model->file_, model->weights_.schedule, options.store);
  if (!store) return Annotate(WithNextStep(std::move(store).error(), model->file_, *context.ledger), path);
  model->store_ = *std::move(store);
  return model;
}

}  // namespace sluice::model
