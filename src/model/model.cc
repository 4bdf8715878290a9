#include "model/model.h"

#include "gguf/overrides.h"
#include "model/facts.h"
#include "model/vocabulary.h"

namespace sluice::model {

namespace {

uint64_t HeaderBytes(const gguf::GgufFile& file) {
  uint64_t bytes = 0;
  for (const gguf::Shard& shard : file.shards()) bytes += shard.data_offset;
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::OpenHeader(const std::string& path,
                                                 const std::vector<std::string>& overrides,
                                                 std::span<const gguf::Replacement> replacements) {
  SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(path));
  for (const gguf::Replacement& replacement : replacements) SLUICE_TRY(file.Replace(replacement));
  for (const std::string& override : overrides) SLUICE_TRY(gguf::ApplyOverride(override, file.metadata()));
  auto config = ReadConfig(file.metadata());
  if (!config) return Annotate(std::move(config).error(), path);
  auto tokenizer = ReadTokenizer(file.metadata());
  if (!tokenizer) return Annotate(std::move(tokenizer).error(), path);
  std::unique_ptr<Model> model(new Model(path, std::move(file), *std::move(config), *std::move(tokenizer)));
  // Weights point to the file, so they are made when it has come to rest.
  auto weights = BindWeights(model->config_, model->file_);
  if (!weights) return Annotate(std::move(weights).error(), path);
  model->weights_ = *std::move(weights);
  return model;
}

Status Model::Load(const runtime::Context& context, const weights::StoreOptions& options) {
  auto charge = memory::Reservation::Take(*context.ledger, memory::Account::kTokenizer, TokenizerBytes());
  if (!charge) return Annotate(std::move(charge).error(), path_);
  tokenizer_charge_ = *std::move(charge);
  auto store = weights::WeightStore::Create(context, file_, weights_.schedule, options);
  if (!store) return Annotate(std::move(store).error(), path_);
  store_ = *std::move(store);
  return {};
}

Result<std::unique_ptr<Model>> Model::Open(const runtime::Context& context, const std::string& path,
                                           const ModelOptions& options) {
  SLUICE_TRY_ASSIGN(std::unique_ptr<Model> model, OpenHeader(path, options.overrides));
  SLUICE_TRY(model->Load(context, options.store));
  return model;
}

Result<plan::ModelFacts> Model::Facts() const {
  auto facts = FactsOf(config_, file_.tensors(), TokenizerBytes());
  if (!facts) return Annotate(std::move(facts).error(), path_);
  return facts;
}

uint64_t Model::TokenizerBytes() const { return tokenizer_.memory_bytes() + HeaderBytes(file_); }

}  // namespace sluice::model
