#include "sluice/model.h"

#include <algorithm>

#include "gguf/overrides.h"
#include "model/vocabulary.h"
#include "platform/file.h"

namespace sluice {

namespace {

chat::ChatTemplate ReadTemplate(const gguf::Metadata& metadata, const text::Tokenizer& tokenizer) {
  const auto text_of = [&](std::string_view key) {
    const auto value = metadata.GetStringOr(key, "");
    return value ? *value : std::string_view();
  };
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const auto token = [&](TokenId id) {
    return vocabulary.Contains(id) ? vocabulary.Text(id) : std::string_view();
  };
  return chat::ChatTemplate::Create(
      {.text = text_of("tokenizer.chat_template"),
       .bos_token = token(vocabulary.bos()),
       .eos_token = token(vocabulary.eos()),
       .architecture = text_of("general.architecture"),
       .model_name = text_of("general.name"),
       .has_token = [&](std::string_view text) { return vocabulary.Find(text) != text::kNoToken; }});
}

// A setting that is absent or of the wrong type is left to Sluice's default.
sample::GenerationDefaults ReadGenerationDefaults(const gguf::Metadata& metadata) {
  sample::GenerationDefaults defaults;
  const auto number = [&](std::string_view key, std::optional<double>& out) {
    if (const auto value = metadata.GetF32(key)) out = *value;
  };
  const auto integer = [&](std::string_view key, std::optional<int64_t>& out) {
    if (const auto value = metadata.GetI64(key)) out = *value;
  };
  number("general.sampling.temp", defaults.temperature);
  integer("general.sampling.top_k", defaults.top_k);
  number("general.sampling.top_p", defaults.top_p);
  number("general.sampling.min_p", defaults.min_p);
  number("general.sampling.penalty_repeat", defaults.repeat_penalty);
  integer("general.sampling.penalty_last_n", defaults.repeat_last_n);
  return defaults;
}

bool HasDirectReads(const std::string& path) {
  const auto file = platform::File::Open(path, platform::File::Caching::kDirect);
  return file || file.error().code != ErrorCode::kUnsupported;
}

}  // namespace

plan::Request RequestFor(const Engine& engine, const ModelOptions& options) {
  const ConversationOptions& conversation = options.conversation;
  const memory::LedgerSnapshot ledger = engine.context().ledger->Snapshot();
  // The engine keeps room for what no account has; the plan counts it anew.
  const uint64_t kept = plan::UnaccountedWithin(ledger.budget_bytes);
  return {.budget_bytes = ledger.budget_bytes,
          .used_bytes = ledger.total_bytes() - kept,
          .reserve_bytes = options.reserve_bytes,
          .threads = engine.threads(),
          .sequences = options.conversations,
          .strict = options.strict,
          .context_length = conversation.window != 0 ? conversation.window + conversation.sinks
                                                     : conversation.context_length,
          .batch = conversation.batch,
          .k_type = conversation.k_type,
          .v_type = conversation.v_type,
          .overflow = conversation.overflow,
          .sinks = conversation.sinks,
          .residency = options.residency,
          .store = options.store,
          .fusion = conversation.fusion};
}

struct Model::Impl {
  std::string path;
  std::unique_ptr<model::Model> parts;
  plan::Plan plan;
  chat::ChatTemplate chat_template;
  sample::SamplerOptions sampling;
  std::vector<std::string> warnings;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::Open(const Engine& engine, const std::string& path,
                                                 const ModelOptions& options) {
  SLUICE_TRY_ASSIGN(std::unique_ptr<model::Model> parts,
                    model::Model::OpenHeader(path, options.overrides, options.replacements));
  SLUICE_TRY_ASSIGN(const plan::ModelFacts facts, parts->Facts());
  plan::Request request = RequestFor(engine, options);
  if (request.store.page_cache != weights::PageCache::kEmptyBehind && !HasDirectReads(path)) {
    engine.context().log.Warn(
        "{} is on a file system without direct reads: weights are read through the page cache, which "
        "is emptied behind",
        path);
    request.store.page_cache = weights::PageCache::kEmptyBehind;
  }
  SLUICE_TRY_ASSIGN(plan::Plan plan, plan::MakePlan(facts, request));
  SLUICE_TRY(parts->Load(engine.context(), plan.store));
  const gguf::Metadata& metadata = parts->file().metadata();
  std::vector<std::string> warnings = parts->tokenizer().warnings();
  chat::ChatTemplate chat_template = ReadTemplate(metadata, parts->tokenizer());
  warnings.insert(warnings.end(), chat_template.warnings().begin(), chat_template.warnings().end());
  sample::SamplerOptions sampling = sample::DefaultOptions(ReadGenerationDefaults(metadata), &warnings);
  if (parts->config().synthetic)
    warnings.push_back("this model's weights are random numbers: its output means nothing");
  return std::shared_ptr<const Model>(new Model(
      std::unique_ptr<Impl>(new Impl{path, std::move(parts), std::move(plan), std::move(chat_template),
                                     std::move(sampling), std::move(warnings)})));
}

const std::string& Model::path() const { return impl_->path; }
const model::Model& Model::parts() const { return *impl_->parts; }
const plan::Plan& Model::plan() const { return impl_->plan; }
const chat::ChatTemplate& Model::chat_template() const { return impl_->chat_template; }
const sample::SamplerOptions& Model::sampling() const { return impl_->sampling; }
const std::vector<std::string>& Model::warnings() const { return impl_->warnings; }

Result<std::vector<TokenId>> EncodePrompt(const text::Tokenizer& tokenizer,
                                          std::span<const chat::Segment> prompt) {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const std::string_view bos = vocabulary.Contains(vocabulary.bos()) ? vocabulary.Text(vocabulary.bos()) : "";
  std::vector<TokenId> ids;
  if (chat::TokenizerAddsBos(vocabulary.add_bos(), bos, prompt)) ids.push_back(vocabulary.bos());
  std::vector<text::TextSpan> spans;
  for (const chat::Segment& segment : prompt) spans.push_back({segment.text, segment.trusted});
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> rest, tokenizer.EncodeSpans(spans));
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

Result<std::vector<TokenId>> Model::EncodeText(std::string_view text) const {
  SLUICE_TRY_ASSIGN(std::vector<TokenId> ids, tokenizer().Encode(text));
  const text::Vocabulary& vocabulary = tokenizer().vocabulary();
  // No EOS behind it, whatever the file says: the text goes on.
  if (vocabulary.add_bos()) ids.insert(ids.begin(), vocabulary.bos());
  return ids;
}

Result<Vocabulary> OpenVocabulary(const std::string& path, std::span<const std::string> overrides) {
  SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(path, gguf::Purpose::kInspect));
  for (const std::string& override : overrides) SLUICE_TRY(gguf::ApplyOverride(override, file.metadata()));
  SLUICE_TRY_ASSIGN(text::Tokenizer tokenizer, model::ReadTokenizer(file.metadata()));
  chat::ChatTemplate chat_template = ReadTemplate(file.metadata(), tokenizer);
  return Vocabulary{std::move(tokenizer), std::move(chat_template)};
}

}  // namespace sluice
