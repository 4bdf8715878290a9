#include "convert/hyperparameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::convert {

namespace {

constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxContext = 1 << 30;

// Writes keys of one architecture.
class Keys {
 public:
  Keys(std::string_view architecture, gguf::Metadata& metadata)
      : architecture_(architecture), metadata_(metadata) {}
  void U32(std::string_view key, int64_t value) { metadata_.SetU32(Of(key), static_cast<uint32_t>(value)); }
  void F32(std::string_view key, double value) { metadata_.SetF32(Of(key), static_cast<float>(value)); }
  void Bool(std::string_view key, bool value) { metadata_.SetBool(Of(key), value); }
  void String(std::string_view key, std::string_view value) { metadata_.SetString(Of(key), value); }

 private:
  std::string Of(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  std::string architecture_;
  gguf::Metadata& metadata_;
};

// Rope settings, from either schema.
struct RopeSettings {
  double base = 10000;
  std::optional<double> sliding_base;
  double share = 1;                   // of a head that turns
  std::optional<JsonObject> scaling;  // with a type other than "default"
  std::string type = "default";
};

Result<std::string> RopeType(const JsonObject& object) {
  SLUICE_TRY_ASSIGN(auto type, object.String("rope_type"));
  if (!type) {
    SLUICE_TRY_ASSIGN(type, object.String("type"));
  }
  return type.value_or("default");
}

Result<RopeSettings> ReadRope(const JsonObject& config) {
  RopeSettings rope;
  SLUICE_TRY_ASSIGN(auto parameters, config.Object("rope_parameters"));
  if (parameters) {
    // One object for each kind of layer, or one for all.
    SLUICE_TRY_ASSIGN(const auto sliding, parameters->Object("sliding_attention"));
    if (sliding) {
      SLUICE_TRY_ASSIGN(rope.sliding_base, sliding->Number("rope_theta"));
    }
    SLUICE_TRY_ASSIGN(const auto full, parameters->Object("full_attention"));
    if (full) parameters = full;
  }
  const JsonObject& base = parameters ? *parameters : config;
  for (const std::string_view key : {"rope_theta", "rotary_emb_base"}) {
    SLUICE_TRY_ASSIGN(const auto value, base.Number(key));
    if (value) rope.base = *value;
  }
  SLUICE_TRY_ASSIGN(const auto local, config.Number("rope_local_base_freq"));
  if (local) rope.sliding_base = local;
  for (const JsonObject* object : {&config, &base}) {
    for (const std::string_view key : {"partial_rotary_factor", "rope_pct", "rotary_pct"}) {
      SLUICE_TRY_ASSIGN(const auto share, object->Number(key));
      if (!share) continue;
      if (!(*share > 0 && *share <= 1)) return object->Wrong(key, "more than 0, at most 1");
      rope.share = *share;
    }
  }
  SLUICE_TRY_ASSIGN(const auto scaling, config.Object("rope_scaling"));
  rope.scaling = scaling ? scaling : parameters;
  if (rope.scaling) {
    SLUICE_TRY_ASSIGN(rope.type, RopeType(*rope.scaling));
  }
  return rope;
}

// Llama 3.1's factors: long waves are stretched, short ones are not, those between are blended.
Result<std::vector<float>> Llama3Factors(const JsonObject& scaling, double base, int64_t dimensions) {
  SLUICE_TRY_ASSIGN(const double factor, scaling.RequireNumber({"factor"}));
  SLUICE_TRY_ASSIGN(const double low, scaling.RequireNumber({"low_freq_factor"}));
  SLUICE_TRY_ASSIGN(const double high, scaling.RequireNumber({"high_freq_factor"}));
  SLUICE_TRY_ASSIGN(const int64_t original,
                    scaling.RequireInt({"original_max_position_embeddings"}, 1, kMaxContext));
  if (!(factor > 0 && low > 0 && high > low))
    return scaling.Wrong("factor", "positive factors, high above low");
  std::vector<float> factors;
  const auto context = static_cast<double>(original);
  for (int64_t i = 0; i < dimensions / 2; ++i) {
    const double wave =
        2 * std::numbers::pi * std::pow(base, 2.0 * static_cast<double>(i) / static_cast<double>(dimensions));
    if (wave < context / high) {
      factors.push_back(1);
    } else if (wave > context / low) {
      factors.push_back(static_cast<float>(factor));
    } else {
      const double smooth = (context / wave - low) / (high - low);
      factors.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
    }
  }
  return factors;
}

Status LongRope(const JsonObject& config, const JsonObject& scaling, int64_t dimensions, Keys& keys,
                Hyperparameters& out) {
  for (const auto& [key, name] : {std::pair{"long_factor", "rope_factors_long.weight"},
                                  {"short_factor", "rope_factors_short.weight"}}) {
    SLUICE_TRY_ASSIGN(const std::vector<double> factors, scaling.Numbers(key));
    if (static_cast<int64_t>(factors.size()) != dimensions / 2)
      return scaling.Wrong(key, fmt::format("{} numbers, one for each pair that turns", dimensions / 2));
    out.tensors.push_back({name, std::vector<float>(factors.begin(), factors.end())});
  }
  SLUICE_TRY_ASSIGN(const int64_t context, config.RequireInt({"max_position_embeddings"}, 1, kMaxContext));
  int64_t original = context;
  for (const JsonObject* object : {&config, &scaling}) {
    SLUICE_TRY_ASSIGN(const auto value, object->Int("original_max_position_embeddings", 1, kMaxContext));
    if (value) original = *value;
  }
  keys.String("rope.scaling.type", "longrope");
  keys.U32("rope.scaling.original_context_length", original);
  // Su et al.: the scores grow with the logarithm of how much longer the context has become.
  const double longer = static_cast<double>(context) / static_cast<double>(original);
  const double attention =
      longer <= 1 ? 1 : std::sqrt(1 + std::log(longer) / std::log(static_cast<double>(original)));
  SLUICE_TRY_ASSIGN(const auto typed, scaling.Number("attention_factor"));
  keys.F32("rope.scaling.attn_factor", typed.value_or(attention));
  return {};
}

Status WriteRope(const JsonObject& config, const RopeSettings& rope, Keys& keys, Hyperparameters& out) {
  const auto dimensions = static_cast<int64_t>(static_cast<double>(out.heads.width) * rope.share) / 2 * 2;
  keys.U32("rope.dimension_count", dimensions);
  keys.F32("rope.freq_base", rope.base);
  if (rope.sliding_base) keys.F32("rope.freq_base_swa", *rope.sliding_base);
  SLUICE_TRY_ASSIGN(const auto original_context,
                    config.Int("original_max_position_embeddings", 1, kMaxContext));
  if (original_context) keys.U32("rope.scaling.original_context_length", *original_context);
  if (rope.type == "default" || !rope.scaling) return {};
  const JsonObject& scaling = *rope.scaling;
  if (rope.type == "linear" || rope.type == "yarn") {
    SLUICE_TRY_ASSIGN(const double factor, scaling.RequireNumber({"factor"}));
    keys.String("rope.scaling.type", rope.type);
    keys.F32("rope.scaling.factor", factor);
    if (rope.type == "linear") return {};
    SLUICE_TRY_ASSIGN(const auto original, scaling.Int("original_max_position_embeddings", 1, kMaxContext));
    if (original) keys.U32("rope.scaling.original_context_length", *original);
    for (const auto& [theirs, ours] : {std::pair{"beta_fast", "rope.scaling.yarn_beta_fast"},
                                       {"beta_slow", "rope.scaling.yarn_beta_slow"}}) {
      SLUICE_TRY_ASSIGN(const auto beta, scaling.Number(theirs));
      if (beta) keys.F32(ours, *beta);
    }
    SLUICE_TRY_ASSIGN(const auto attention, scaling.Number("attention_factor"));
    if (attention) {
      // GGUF's factor multiplies the one that follows from `factor`.
      keys.F32("rope.scaling.attn_factor", *attention / (1 + 0.1 * std::log(factor)));
    }
    return {};
  }
  if (rope.type == "llama3") {
    SLUICE_TRY_ASSIGN(std::vector<float> factors, Llama3Factors(scaling, rope.base, dimensions));
    out.tensors.push_back({"rope_freqs.weight", std::move(factors)});
    return {};
  }
  if (rope.type == "longrope" || rope.type == "su") return LongRope(config, scaling, dimensions, keys, out);
  if (rope.type == "dynamic") {
    out.warnings.push_back(
        "dynamic rope scaling is left out, which GGUF has no key for: output is that of the model within "
        "its trained context");
    return {};
  }
  return Fail(ErrorCode::kUnsupported,
              "{}: rope scaling of type '{}' is not known; known are default, linear, yarn, "
              "llama3, longrope and dynamic",
              scaling.name(), rope.type);
}

// Which layers slide: a list of names, or every how many-th one does not.
Status WriteWindow(const JsonObject& config, int64_t layers, Keys& keys) {
  SLUICE_TRY_ASSIGN(const auto window, config.Int("sliding_window", 1, kMaxContext));
  if (!window) return {};
  keys.U32("attention.sliding_window", *window);
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
};

// Settings that would change the output and have no place in GGUF.
Status CheckNothingIsLost(const JsonObject& config, const Family& family, Hyperparameters& out) {
  SLUICE_TRY_ASSIGN(const auto experts, config.Int("num_local_experts"));
  if (experts && *experts > 1)
    return Fail(ErrorCode::kUnsupported, "{}: mixtures of experts are not converted yet", config.name());
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

}  // namespace

Result<Hyperparameters> ReadHyperparameters(const JsonObject& whole, gguf::Metadata& metadata) {
  // Models that also see keep their language part in an object of its own.
  SLUICE_TRY_ASSIGN(const auto inner, whole.Object("text_config"));
  const JsonObject& config = inner && whole.Find("hidden_size") == nullptr ? *inner : whole;
  Hyperparameters out;
  SLUICE_TRY_ASSIGN(auto type, config.String("model_type"));
  if (!type) return Fail(ErrorCode::kNotFound, "{} has no model_type", config.name());
  out.family = FindFamily(*type);
  if (out.family == nullptr) {
    std::string names;
    for (const Family& family : AllFamilies())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", family.model_type);
    return Fail(ErrorCode::kUnsupported, "{}: models of type '{}' are not converted; these are: {}",
                config.name(), *type, names);
  }
  const Family& family = *out.family;
  metadata.SetString("general.architecture", family.architecture);
  Keys keys(family.architecture, metadata);
  SLUICE_TRY_ASSIGN(const int64_t layers, config.RequireInt({"num_hidden_layers", "n_layer"}, 1, kMaxLayers));
  SLUICE_TRY_ASSIGN(const int64_t d_model, config.RequireInt({"hidden_size", "n_embd"}, 1, kMaxWidth));
  SLUICE_TRY_ASSIGN(const int64_t heads, config.RequireInt({"num_attention_heads", "n_head"}, 1, kMaxHeads));
  SLUICE_TRY_ASSIGN(const auto kv_heads, config.Int("num_key_value_heads", 1, kMaxHeads));
  SLUICE_TRY_ASSIGN(const auto head_dim, config.Int("head_dim", 1, kMaxWidth));
  out.heads = {.queries = static_cast<uint64_t>(heads),
               .keys = static_cast<uint64_t>(kv_heads.value_or(heads)),
               .width = static_cast<uint64_t>(head_dim.value_or(std::max<int64_t>(1, d_model / heads)))};
  SLUICE_TRY_ASSIGN(const int64_t context,
                    config.RequireInt({"max_position_embeddings", "n_positions", "n_ctx"}, 1, kMaxContext));
  int64_t d_ff = 4 * d_model;
  for (const std::string_view key : {"intermediate_size", "n_inner"}) {
    SLUICE_TRY_ASSIGN(const auto value, config.Int(key, 1, kMaxWidth));
    if (value) d_ff = *value;
  }
  keys.U32("block_count", layers);
  keys.U32("context_length", context);
  keys.U32("embedding_length", d_model);
  keys.U32("feed_forward_length", d_ff);
  keys.U32("attention.head_count", heads);
  keys.U32("attention.head_count_kv", kv_heads.value_or(heads));
  if (head_dim) {
    keys.U32("attention.key_length", *head_dim);
    keys.U32("attention.value_length", *head_dim);
  }
  SLUICE_TRY_ASSIGN(const auto rms, config.Number("rms_norm_eps"));
  if (rms) {
    keys.F32("attention.layer_norm_rms_epsilon", *rms);
  } else {
    SLUICE_TRY_ASSIGN(const double eps, config.RequireNumber({"layer_norm_eps", "layer_norm_epsilon",
                                                              "norm_epsilon", "norm_eps"}));
    keys.F32("attention.layer_norm_epsilon", eps);
  }
  if (family.model_type != "gpt2") {
    SLUICE_TRY_ASSIGN(const RopeSettings rope, ReadRope(config));
    SLUICE_TRY(WriteRope(config, rope, keys, out));
  }
  if (family.architecture == "gemma2" || family.architecture == "gemma3" || family.architecture == "cohere2")
    SLUICE_TRY(WriteWindow(config, layers, keys));
  for (const Copied& copied : kCopied) {
    SLUICE_TRY_ASSIGN(const auto value, config.Number(copied.theirs));
    if (value) keys.F32(copied.ours, *value);
  }
  SLUICE_TRY_ASSIGN(const auto query_scale, config.Number("query_pre_attn_scalar"));
  if (query_scale && *query_scale > 0) keys.F32("attention.scale", 1 / std::sqrt(*query_scale));
  SLUICE_TRY_ASSIGN(const auto parallel, config.Bool("use_parallel_residual"));
  if (parallel) keys.Bool("use_parallel_residual", *parallel);
  SLUICE_TRY_ASSIGN(auto tied, config.Bool("tie_word_embeddings"));
  if (!tied) {
    SLUICE_TRY_ASSIGN(tied, whole.Bool("tie_word_embeddings"));
  }
  out.tied = tied.value_or(family.tied_by_default);
  SLUICE_TRY(CheckNothingIsLost(config, family, out));
  return out;
}

}  // namespace sluice::convert
