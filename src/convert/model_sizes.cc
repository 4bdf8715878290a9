#include "convert/model_sizes.h"

#include <algorithm>

namespace sluice::convert {

namespace {

// The first BitNet checkpoints say "llama" and have code of their own.
bool IsBitnet(const JsonObject& config) {
  const nlohmann::json* classes = config.Find("architectures");
  return classes != nullptr && classes->is_array() && classes->size() == 1 &&
         classes->front() == "BitnetForCausalLM";
}

Result<const Family*> FamilyOf(const JsonObject& whole, const JsonObject& config) {
  if (IsBitnet(config)) return FindFamily("bitnet");
  SLUICE_TRY_ASSIGN(auto type, config.String("model_type"));
  if (!type) {
    SLUICE_TRY_ASSIGN(type, whole.String("model_type"));
  }
  if (!type) return Fail(ErrorCode::kNotFound, "{} has no model_type", config.name());
  if (const Family* family = FindFamily(*type)) return family;
  // The whole's type, where the text part has none of its own.
  if (const Family* family = FindFamily(*type + "_text")) return family;
  std::string names;
  for (const Family& family : AllFamilies())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family.model_type);
  return Fail(ErrorCode::kUnsupported, "{}: models of type '{}' are not known; these are: {}", config.name(),
              *type, names);
}

// Of the queries' heads, how many share a key.
Result<int64_t> KeyHeads(const JsonObject& config, const Family& family, int64_t heads) {
  if (family.multi_query) {
    SLUICE_TRY_ASSIGN(const auto shared, config.Bool("multi_query"));
    SLUICE_TRY_ASSIGN(const auto grouped, config.Bool("new_decoder_architecture"));
    if (shared.value_or(true) && !grouped.value_or(false)) return int64_t{1};
  }
  for (const std::string_view key : {"num_key_value_heads", "num_kv_heads", "n_head_kv"}) {
    SLUICE_TRY_ASSIGN(const auto value, config.Int(key, 1, kMaxHeads));
    if (!value) continue;
    if (heads % *value != 0)
      return config.Wrong(key, fmt::format("a number that divides the {} heads", heads));
    return *value;
  }
  return heads;
}

Result<int64_t> FeedForwardWidth(const JsonObject& config, int64_t d_model) {
  for (const std::string_view key : {"intermediate_size", "n_inner", "ffn_hidden_size"}) {
    SLUICE_TRY_ASSIGN(const auto value, config.Int(key, 1, kMaxWidth));
    if (value) return *value;
  }
  SLUICE_TRY_ASSIGN(const auto ratio, config.Number("expansion_ratio"));
  if (!ratio) return 4 * d_model;
  const double width = *ratio * static_cast<double>(d_model);
  if (!(width >= 1 && width <= kMaxWidth))
    return config.Wrong("expansion_ratio", "how much wider a layer becomes");
  return static_cast<int64_t>(width);
}

Result<std::optional<int64_t>> ContextLength(const JsonObject& config, const Family& family) {
  auto context = config.RequireInt(
      {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"}, 1, kMaxContext);
  if (context) return std::optional(*context);
  if (context.error().code != ErrorCode::kNotFound) return context.error();
  return family.context > 0 ? std::optional(family.context) : std::nullopt;
}

Result<Heads> ReadHeads(const JsonObject& config, const Family& family, ModelSizes& sizes) {
  SLUICE_TRY_ASSIGN(const int64_t queries,
                    config.RequireInt({"num_attention_heads", "n_head", "n_heads"}, 1, kMaxHeads));
  SLUICE_TRY_ASSIGN(const int64_t shared, KeyHeads(config, family, queries));
  SLUICE_TRY_ASSIGN(const auto width, config.Int("head_dim", 1, kMaxWidth));
  sizes.states_head_width = width.has_value();
  return Heads{.queries = static_cast<uint64_t>(queries),
               .keys = static_cast<uint64_t>(shared),
               .width = static_cast<uint64_t>(width.value_or(std::max<int64_t>(1, sizes.d_model / queries)))};
}

}  // namespace

Result<ModelSizes> ReadModelSizes(const JsonObject& whole) {
  // Models that also see keep their language part in an object of its own.
  SLUICE_TRY_ASSIGN(const auto inner, whole.Object("text_config"));
  const bool has_other_parts = inner && whole.Find("hidden_size") == nullptr;
  ModelSizes sizes{.config = has_other_parts ? *inner : whole, .has_other_parts = has_other_parts};
  const JsonObject& config = sizes.config;
  SLUICE_TRY_ASSIGN(sizes.family, FamilyOf(whole, config));
  SLUICE_TRY_ASSIGN(sizes.layers,
                    config.RequireInt({"num_hidden_layers", "n_layer", "n_layers"}, 1, kMaxLayers));
  SLUICE_TRY_ASSIGN(sizes.d_model,
                    config.RequireInt({"hidden_size", "n_embd", "n_embed", "d_model"}, 1, kMaxWidth));
  SLUICE_TRY_ASSIGN(sizes.d_ff, FeedForwardWidth(config, sizes.d_model));
  SLUICE_TRY_ASSIGN(sizes.heads, ReadHeads(config, *sizes.family, sizes));
  SLUICE_TRY_ASSIGN(sizes.context_length, ContextLength(config, *sizes.family));
  if (sizes.family->slides) {
    SLUICE_TRY_ASSIGN(sizes.sliding_window, config.Int("sliding_window", 1, kMaxContext));
    if (!sizes.sliding_window && sizes.family->window > 0) sizes.sliding_window = sizes.family->window;
  }
  SLUICE_TRY_ASSIGN(auto tied, config.Bool("tie_word_embeddings"));
  if (!tied) {
    SLUICE_TRY_ASSIGN(tied, whole.Bool("tie_word_embeddings"));
  }
  sizes.tied = tied.value_or(sizes.family->tied_by_default);
  return sizes;
}

}  // namespace sluice::convert
