#include "convert/hyperparameters.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "convert/architecture_keys.h"
#include "convert/model_sizes.h"
#include "model/recipe.h"

namespace sluice::convert {

namespace {

// Which layers slide: a list of names, or every how many-th one does not.
Status WriteWindow(const ModelSizes& sizes, ArchitectureKeys& keys) {
  if (!sizes.sliding_window) return {};
  const JsonObject& config = sizes.config;
  const int64_t layers = sizes.layers;
  keys.U32("attention.sliding_window", *sizes.sliding_window);
  if (const nlohmann::json* types = config.Find("layer_types"); types != nullptr) {
    if (!types->is_array() || static_cast<int64_t>(types->size()) != layers)
      return config.Wrong("layer_types", fmt::format("a list of {} names", layers));
    // GGUF says it by a period; the last of one sees everything.
    int64_t period = 0;
    for (int64_t i = 0; i < layers; ++i) {
      const bool full = (*types)[static_cast<size_t>(i)] == "full_attention";
      if (full && period == 0) period = i + 1;
    }
    for (int64_t i = 0; i < layers; ++i) {
      const bool full = (*types)[static_cast<size_t>(i)] == "full_attention";
      if (period == 0 || full != (i % period == period - 1))
        return config.Wrong("layer_types", "every n-th layer, and no other, with full_attention");
    }
    keys.U32("attention.sliding_window_pattern", period);
    return {};
  }
  // "LLLG": local, local, local, global.
  if (const nlohmann::json* names = config.Find("sliding_window_pattern");
      names != nullptr && names->is_string()) {
    const auto text = names->get<std::string>();
    if (text.empty() || text.find('G') != text.size() - 1)
      return config.Wrong("sliding_window_pattern",
                          "a number, or letters of which the last, and no other, is G");
    keys.U32("attention.sliding_window_pattern", static_cast<int64_t>(text.size()));
    return {};
  }
  SLUICE_TRY_ASSIGN(const auto period, config.Int("sliding_window_pattern", 1, kMaxLayers));
  if (period) keys.U32("attention.sliding_window_pattern", *period);
  return {};
}

// Keys that are copied where config.json has them.
struct Copied {
  std::string_view theirs, ours;
};
constexpr Copied kCopied[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"embedding_multiplier", "embedding_scale"},
    {"residual_multiplier", "residual_scale"},
    {"attention_multiplier", "attention.scale"},
    {"logits_scaling", "logit_scale"},
    {"logit_scale", "logit_scale"},
    {"scale_emb", "embedding_scale"},
    {"clip_qkv", "attention.clamp_kqv"},
};

Status WriteScales(const JsonObject& config, int64_t layers, int64_t d_model, ArchitectureKeys& keys) {
  for (const Copied& copied : kCopied) {
    SLUICE_TRY_ASSIGN(const auto value, config.Number(copied.theirs));
    if (value) keys.F32(copied.ours, *value);
  }
  SLUICE_TRY_ASSIGN(const auto query_scale, config.Number("query_pre_attn_scalar"));
  if (query_scale && *query_scale > 0) keys.F32("attention.scale", 1 / std::sqrt(*query_scale));
  // MiniCPM's, relative to the number of layers and to a model of another width.
  SLUICE_TRY_ASSIGN(const auto depth, config.Number("scale_depth"));
  if (depth) keys.F32("residual_scale", *depth / std::sqrt(static_cast<double>(layers)));
  SLUICE_TRY_ASSIGN(const auto base_width, config.Int("dim_model_base", 1, kMaxWidth));
  if (base_width) keys.F32("logit_scale", static_cast<double>(d_model) / static_cast<double>(*base_width));
  return {};
}

// MPT keeps what attention does in an object of its own.
Status WriteAttentionConfig(const JsonObject& config, ArchitectureKeys& keys) {
  SLUICE_TRY_ASSIGN(const auto attention, config.Object("attn_config"));
  if (!attention) return {};
  SLUICE_TRY_ASSIGN(const auto alibi, attention->Bool("alibi"));
  if (!alibi.value_or(true))
    return attention->Wrong("alibi", "true: GGUF has no key for positions of another kind");
  SLUICE_TRY_ASSIGN(const auto bias, attention->Number("alibi_bias_max"));
  if (bias) keys.F32("attention.max_alibi_bias", *bias);
  SLUICE_TRY_ASSIGN(const auto clip, attention->Number("clip_qkv"));
  if (clip) keys.F32("attention.clamp_kqv", *clip);
  return {};
}

// What GGUF programs compute for an architecture can't be said in its file.
Status CheckActivation(const JsonObject& config, const model::Recipe& recipe) {
  using model::Activation;
  constexpr std::pair<std::string_view, Activation> kNames[] = {
      {"silu", Activation::kSilu},          {"swish", Activation::kSilu},
      {"gelu", Activation::kGeluTanh},      {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu2", Activation::kReluSquared},  {"xielu", Activation::kXielu}};
  // Gemma has both of the first two, of which the first counts.
  for (const std::string_view key : {"hidden_activation", "hidden_act", "activation_function"}) {
    SLUICE_TRY_ASSIGN(const auto name, config.String(key));
    if (!name) continue;
    const auto* known = std::ranges::find(kNames, *name, &std::pair<std::string_view, Activation>::first);
    if (known != std::end(kNames) && known->second == recipe.activation) return {};
    return Fail(ErrorCode::kUnsupported, "{}: {} is '{}', which is not what GGUF programs compute for '{}'",
                config.name(), key, *name, recipe.architecture);
  }
  return {};
}

// Settings that would change the output and have no place in GGUF.
Status CheckNothingIsLost(const JsonObject& config, const Family& family, Hyperparameters& out) {
  SLUICE_TRY_ASSIGN(const auto experts, config.Int("num_local_experts"));
  if (experts && *experts > 1)
    return Fail(ErrorCode::kUnsupported, "{}: mixtures of experts are not converted yet", config.name());
  for (const FixedSetting& setting : family.fixed) {
    SLUICE_TRY_ASSIGN(const auto value, config.Bool(setting.key));
    if (value.value_or(setting.value) != setting.value)
      return Fail(ErrorCode::kUnsupported, "{}: {} is {}; GGUF programs run '{}' with {} only", config.name(),
                  setting.key, *value, family.architecture, setting.value);
  }
  SLUICE_TRY_ASSIGN(const auto slides, config.Bool("use_sliding_window"));
  if (slides.value_or(false)) {
    out.warnings.push_back("use_sliding_window is left out: all layers see the whole context");
  }
  SLUICE_TRY_ASSIGN(const auto window, config.Int("sliding_window", 1, kMaxContext));
  if (window && family.model_type == "mistral") {
    out.warnings.push_back(fmt::format(
        "the sliding window of {} tokens is left out, which GGUF's llama has no key for", *window));
  }
  return {};
}

Status WriteNormEps(const JsonObject& config, const Family& family, const model::Recipe& recipe,
                    ArchitectureKeys& keys) {
  std::optional<double> eps;
  if (family.norm_eps > 0) eps = family.norm_eps;
  for (const std::string_view key :
       {"norm_eps", "norm_epsilon", "layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps"}) {
    SLUICE_TRY_ASSIGN(const auto value, config.Number(key));
    if (value) eps = value;
  }
  if (!eps) return Fail(ErrorCode::kNotFound, "{} has no rms_norm_eps or layer_norm_eps", config.name());
  keys.F32(
      recipe.norm == model::Norm::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
      *eps);
  return {};
}

Status WriteSizes(const ModelSizes& sizes, ArchitectureKeys& keys) {
  if (!sizes.context_length)
    return Fail(ErrorCode::kNotFound, "{} has no max_position_embeddings", sizes.config.name());
  keys.U32("block_count", sizes.layers);
  keys.U32("context_length", *sizes.context_length);
  keys.U32("embedding_length", sizes.d_model);
  keys.U32("feed_forward_length", sizes.d_ff);
  keys.U32("attention.head_count", static_cast<int64_t>(sizes.heads.queries));
  keys.U32("attention.head_count_kv", static_cast<int64_t>(sizes.heads.keys));
  if (sizes.states_head_width) {
    keys.U32("attention.key_length", static_cast<int64_t>(sizes.heads.width));
    keys.U32("attention.value_length", static_cast<int64_t>(sizes.heads.width));
  }
  return {};
}

}  // namespace

Result<Hyperparameters> ReadHyperparameters(const JsonObject& whole, gguf::Metadata& metadata) {
  SLUICE_TRY_ASSIGN(const ModelSizes sizes, ReadModelSizes(whole));
  const JsonObject& config = sizes.config;
  const Family& family = *sizes.family;
  Hyperparameters out{.family = &family,
                      .heads = sizes.heads,
                      .tied = sizes.tied,
                      .has_other_parts = sizes.has_other_parts,
                      .tensors = {},
                      .warnings = {}};
  const model::Recipe* recipe = model::FindRecipe(family.architecture);
  SLUICE_CHECK(recipe != nullptr);
  metadata.SetString("general.architecture", family.architecture);
  ArchitectureKeys keys(family.architecture, metadata);
  SLUICE_TRY(WriteSizes(sizes, keys));
  SLUICE_TRY(WriteNormEps(config, family, *recipe, keys));
  if (recipe->rope != model::RopeStyle::kNone) {
    SLUICE_TRY_ASSIGN(const RopeSettings rope, ReadRope(config));
    SLUICE_TRY(
        WriteRope(config, rope, static_cast<int64_t>(out.heads.width), keys, out.tensors, out.warnings));
  }
  SLUICE_TRY(WriteWindow(sizes, keys));
  SLUICE_TRY(WriteScales(config, sizes.layers, sizes.d_model, keys));
  SLUICE_TRY(WriteAttentionConfig(config, keys));
  SLUICE_TRY_ASSIGN(const auto parallel, config.Bool("use_parallel_residual"));
  if (parallel) keys.Bool("use_parallel_residual", *parallel);
  SLUICE_TRY(CheckActivation(config, *recipe));
  SLUICE_TRY(CheckNothingIsLost(config, family, out));
  return out;
}

}  // namespace sluice::convert
