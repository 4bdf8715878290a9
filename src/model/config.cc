#include "model/config.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/units.h"
#include "kernels/kernels.h"

namespace sluice::model {

namespace {

// Bounds that no real model comes near; they keep products of sizes far from 64 bits.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxWidth = 1 << 20;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxHeadDim = kernels::kMaxHeadDim;
constexpr uint32_t kMaxVocabulary = 1 << 24;
constexpr uint32_t kMaxContext = 1 << 30;

// The keys of one file, with the architecture's name in front where GGUF puts it.
class Keys {
 public:
  Keys(const gguf::Metadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  std::string Of(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  bool Has(std::string_view key) const { return metadata_.Has(Of(key)); }
  Keys WithPrefix(std::string prefix) const { return {metadata_, std::move(prefix)}; }

  // An integer in [1, limit].
  Result<uint32_t> Size(std::string_view key, uint32_t limit) const {
    SLUICE_TRY_ASSIGN(const uint32_t value, metadata_.GetU32(Of(key)));
    SLUICE_TRY(Check(key, value, limit));
    return value;
  }
  Result<uint32_t> SizeOr(std::string_view key, uint32_t limit, uint32_t fallback) const {
    return Has(key) ? Size(key, limit) : Result<uint32_t>(fallback);
  }
  Result<std::vector<uint32_t>> SizePerLayer(std::string_view key, uint32_t layers, uint32_t limit) const {
    SLUICE_TRY_ASSIGN(std::vector<uint32_t> values, metadata_.GetU32PerLayer(Of(key), layers));
    for (const uint32_t value : values) SLUICE_TRY(Check(key, value, limit));
    return values;
  }
  // As SizeOr, for what 0 turns off.
  Result<uint32_t> SizeOrOff(std::string_view key, uint32_t limit, uint32_t fallback) const {
    SLUICE_TRY_ASSIGN(const uint32_t value, metadata_.GetU32Or(Of(key), fallback));
    if (value != 0) SLUICE_TRY(Check(key, value, limit));
    return value;
  }
  Result<float> FloatOr(std::string_view key, float fallback) const {
    SLUICE_TRY_ASSIGN(const float value, metadata_.GetF32Or(Of(key), fallback));
    SLUICE_TRY(CheckFinite(key, value));
    return value;
  }
  Result<bool> BoolOr(std::string_view key, bool fallback) const { return metadata_.GetBoolOr(Of(key), fallback); }
  Result<std::string_view> StringOr(std::string_view key, std::string_view fallback) const {
    return metadata_.GetStringOr(Of(key), fallback);
  }
  bool IsArray(std::string_view key) const {
    const gguf::Entry* entry = metadata_.Find(Of(key));
    return entry != nullptr && entry->type == gguf::ValueType::kArray;
  }
  Result<gguf::IntArray> Ints(std::string_view key) const { return metadata_.GetInts(Of(key)); }
  // One float for each layer, from an array or a single number.
  Result<std::vector<float>> FloatPerLayer(std::string_view key, uint32_t layers) const {
    if (IsArray(key)) {
      SLUICE_TRY_ASSIGN(const gguf::FloatArray array, metadata_.GetFloats(Of(key)));
      if (array.size() != layers) {
        return Fail(ErrorCode::kCorrupt, "{} has {} values for {} layers", Of(key), array.size(), layers);
      }
      std::vector<float> values;
      for (size_t i = 0; i < array.size(); ++i) {
        SLUICE_TRY(CheckFinite(key, array[i]));
        values.push_back(array[i]);
      }
      return values;
    }
    SLUICE_TRY_ASSIGN(const float value, metadata_.GetF32(Of(key)));
    SLUICE_TRY(CheckFinite(key, value));
    return std::vector<float>(layers, value);
  }

 private:
  Status Check(std::string_view key, uint32_t value, uint32_t limit) const {
    if (value >= 1 && value <= limit) return {};
    return Fail(ErrorCode::kCorrupt, "{} is {}; expected 1 to {}", Of(key), value, limit);
  }
  Status CheckFinite(std::string_view key, float value) const {
    if (std::isfinite(value)) return {};
    return Fail(ErrorCode::kCorrupt, "{} is {}; expected a finite number", Of(key), value);
  }

  const gguf::Metadata& metadata_;
  std::string architecture_;
};

std::string KnownArchitectures() {
  std::string names;
  for (const Recipe& recipe : AllRecipes()) {
    if (!names.empty()) names += ", ";
    names += recipe.architecture;
  }
  return names;
}

Result<int64_t> VocabularySize(const gguf::Metadata& metadata, const Keys& keys) {
  const gguf::Entry* tokens = metadata.Find("tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->type == gguf::ValueType::kArray) {
    if (tokens->count < 1 || tokens->count > kMaxVocabulary) {
      return Fail(ErrorCode::kCorrupt, "tokenizer.ggml.tokens has {} entries; expected 1 to {}", tokens->count,
                  kMaxVocabulary);
    }
    return static_cast<int64_t>(tokens->count);
  }
  SLUICE_TRY_ASSIGN(const uint32_t size, keys.Size("vocab_size", kMaxVocabulary));
  return static_cast<int64_t>(size);
}

Status ReadRope(const Keys& keys, Config& config) {
  if (config.recipe->rope == RopeStyle::kNone) return {};
  ops::RopeSpec& rope = config.rope;
  SLUICE_TRY_ASSIGN(const uint32_t dimensions,
                    keys.SizeOr("rope.dimension_count", kMaxHeadDim, static_cast<uint32_t>(config.k_dim)));
  if (dimensions % 2 != 0 || dimensions > static_cast<uint32_t>(config.k_dim)) {
    return Fail(ErrorCode::kCorrupt, "{} is {}; expected an even number up to the key length {}",
                keys.Of("rope.dimension_count"), dimensions, config.k_dim);
  }
  rope.dimensions = static_cast<int>(dimensions);
  SLUICE_TRY_ASSIGN(const float base, keys.FloatOr("rope.freq_base", 10000.0f));
  if (!(base > 1.0f)) return Fail(ErrorCode::kCorrupt, "{} is {}; expected more than 1", keys.Of("rope.freq_base"), base);
  rope.base = base;

  SLUICE_TRY_ASSIGN(const std::string_view type, keys.StringOr("rope.scaling.type", "linear"));
  // scale_linear is the name that the first files used.
  SLUICE_TRY_ASSIGN(float factor, keys.FloatOr("rope.scale_linear", 0.0f));
  SLUICE_TRY_ASSIGN(factor, keys.FloatOr("rope.scaling.factor", factor));
  if (factor < 0.0f) {
    return Fail(ErrorCode::kCorrupt, "{} is {}; expected more than 0", keys.Of("rope.scaling.factor"), factor);
  }
  rope.factor = factor == 0.0f || type == "none" ? 1.0 : static_cast<double>(factor);
  SLUICE_TRY_ASSIGN(const uint32_t original, keys.SizeOr("rope.scaling.original_context_length", kMaxContext,
                                                         static_cast<uint32_t>(config.context_length)));
  rope.original_context = original;
  SLUICE_TRY_ASSIGN(const float attention_factor, keys.FloatOr("rope.scaling.attn_factor", 1.0f));
  rope.attention_factor = attention_factor;
  if (type == "yarn") {
    rope.scaling = ops::RopeScaling::kYarn;
    SLUICE_TRY_ASSIGN(const float fast, keys.FloatOr("rope.scaling.yarn_beta_fast", 32.0f));
    SLUICE_TRY_ASSIGN(const float slow, keys.FloatOr("rope.scaling.yarn_beta_slow", 1.0f));
    SLUICE_TRY_ASSIGN(const float multiplier, keys.FloatOr("rope.scaling.yarn_log_multiplier", 0.0f));
    if (!(fast > 0.0f && slow > 0.0f)) {
      return Fail(ErrorCode::kCorrupt, "{} and yarn_beta_slow are {} and {}; expected more than 0",
                  keys.Of("rope.scaling.yarn_beta_fast"), fast, slow);
    }
    rope.beta_fast = fast;
    rope.beta_slow = slow;
    rope.yarn_log_multiplier = multiplier;
  } else if (type == "longrope" || config.recipe->architecture == "phi3") {
    // Phi-3 files carry the factors as tensors, and some don't name the scheme.
    rope.scaling = ops::RopeScaling::kLongRope;
  } else if (type == "linear") {
    rope.scaling = ops::RopeScaling::kLinear;
  } else if (type != "none") {
    return Fail(ErrorCode::kUnsupported, "{} is '{}'; known are none, linear, yarn and longrope",
                keys.Of("rope.scaling.type"), type);
  }
  // Granite: scaling that was not trained in is no rope at all.
  SLUICE_TRY_ASSIGN(const bool finetuned, keys.BoolOr("rope.scaling.finetuned", true));
  if (!finetuned && config.recipe->architecture == "granite") rope.dimensions = 0;

  config.sliding_rope = rope;
  if (config.recipe->sliding_rope != SlidingRope::kSame) {
    config.sliding_rope.scaling = ops::RopeScaling::kNone;
    config.sliding_rope.factor = 1.0;
    config.sliding_rope.attention_factor = 1.0;
  }
  if (config.recipe->sliding_rope == SlidingRope::kBase10000) {
    SLUICE_TRY_ASSIGN(const float sliding_base, keys.FloatOr("rope.freq_base_swa", 10000.0f));
    if (!(sliding_base > 1.0f)) {
      return Fail(ErrorCode::kCorrupt, "{} is {}; expected more than 1", keys.Of("rope.freq_base_swa"), sliding_base);
    }
    config.sliding_rope.base = sliding_base;
  }
  return {};
}

// Which layers slide, where there is a window at all: as the file says (a period, or one flag a layer), else with the
// family's own period. Layer i of a period n slides when i % n < n − 1.
Result<std::vector<bool>> SlidingPattern(const Keys& keys, uint32_t n_layers, int family_period) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  std::vector<bool> pattern(n_layers);
  if (keys.IsArray(kKey)) {
    SLUICE_TRY_ASSIGN(const gguf::IntArray flags, keys.Ints(kKey));
    if (flags.size() != n_layers) {
      return Fail(ErrorCode::kCorrupt, "{} has {} values for {} layers", keys.Of(kKey), flags.size(), n_layers);
    }
    for (uint32_t i = 0; i < n_layers; ++i) pattern[i] = flags[i] != 0;
    return pattern;
  }
  SLUICE_TRY_ASSIGN(const uint32_t period, keys.SizeOrOff(kKey, kMaxLayers, static_cast<uint32_t>(family_period)));
  for (uint32_t i = 0; i < n_layers; ++i) pattern[i] = period > 0 && i % period < period - 1;
  return pattern;
}

Status ReadLayers(const Keys& keys, uint32_t n_layers, Config& config) {
  const Recipe& recipe = *config.recipe;
  SLUICE_TRY_ASSIGN(const auto n_heads, keys.SizePerLayer("attention.head_count", n_layers, kMaxHeads));
  auto n_kv_heads = n_heads;
  if (keys.Has("attention.head_count_kv")) {
    SLUICE_TRY_ASSIGN(n_kv_heads, keys.SizePerLayer("attention.head_count_kv", n_layers, kMaxHeads));
  }
  SLUICE_TRY_ASSIGN(const auto d_ff, keys.SizePerLayer("feed_forward_length", n_layers, kMaxWidth));

  SLUICE_TRY_ASSIGN(const uint32_t window, keys.SizeOrOff("attention.sliding_window", kMaxContext, 0));
  const bool slides = window > 0 && (recipe.window == Window::kAllButEveryNth ||
                                     (recipe.window == Window::kExaone4 && n_layers == 64));
  SLUICE_TRY_ASSIGN(const std::vector<bool> pattern, SlidingPattern(keys, n_layers, recipe.window_period));
  SLUICE_TRY_ASSIGN(const bool parallel_by_key, keys.BoolOr("use_parallel_residual", true));

  config.layers.resize(n_layers);
  for (uint32_t i = 0; i < n_layers; ++i) {
    LayerConfig& layer = config.layers[i];
    if (n_heads[i] % n_kv_heads[i] != 0) {
      return Fail(ErrorCode::kCorrupt, "{} is {} in layer {}; it must divide the {} heads",
                  keys.Of("attention.head_count_kv"), n_kv_heads[i], i, n_heads[i]);
    }
    if (recipe.alibi && n_heads[i] != n_heads[0]) {
      return Fail(ErrorCode::kUnsupported, "{} is {} in layer {} and {} in layer 0: ALiBi's slopes are those of one number",
                  keys.Of("attention.head_count"), n_heads[i], i, n_heads[0]);
    }
    layer.n_heads = static_cast<int>(n_heads[i]);
    layer.n_kv_heads = static_cast<int>(n_kv_heads[i]);
    layer.d_ff = d_ff[i];
    layer.sliding = slides && pattern[i];
    layer.window = layer.sliding ? window : 0;
    layer.rope = config.rope.dimensions > 0;
    if (recipe.rope_layers == RopeLayers::kSkipEveryNth && static_cast<int>(i + 1) % recipe.rope_period == 0)
      layer.rope = false;
    if (recipe.rope_layers == RopeLayers::kSlidingOnly && slides && !layer.sliding) layer.rope = false;
    // kParallelIfOneNorm is settled when the weights are bound: it depends on which tensors there are.
    layer.parallel = recipe.residual == Residual::kParallel ||
                     (recipe.residual == Residual::kParallelByKey && parallel_by_key);
  }
  if (recipe.activation == Activation::kXielu) {
    // Apertus writes these four without its architecture in front.
    const Keys xielu = keys.WithPrefix("xielu");
    const Keys& source = xielu.Has("alpha_n") ? xielu : keys;
    SLUICE_TRY_ASSIGN(const auto alpha_n, source.FloatPerLayer("alpha_n", n_layers));
    SLUICE_TRY_ASSIGN(const auto alpha_p, source.FloatPerLayer("alpha_p", n_layers));
    SLUICE_TRY_ASSIGN(const auto beta, source.FloatPerLayer("beta", n_layers));
    SLUICE_TRY_ASSIGN(const auto eps, source.FloatPerLayer("eps", n_layers));
    for (uint32_t i = 0; i < n_layers; ++i) {
      // The file has the trained parameters; these two are kept positive by a softplus.
      config.layers[i].xielu_alpha_n = beta[i] + Softplus(alpha_n[i]);
      config.layers[i].xielu_alpha_p = Softplus(alpha_p[i]);
      config.layers[i].xielu_beta = beta[i];
      config.layers[i].xielu_eps = eps[i];
    }
  }
  return {};
}

Status ReadScales(const Keys& keys, Config& config) {
  const Recipe& recipe = *config.recipe;
  const float width = static_cast<float>(config.d_model);
  const bool minicpm = recipe.architecture == "minicpm";
  // MiniCPM's first files lack the keys; these are the model's own constants.
  SLUICE_TRY_ASSIGN(config.embedding_scale, keys.FloatOr("embedding_scale", minicpm ? 12.0f : 1.0f));
  if (recipe.scale_embeddings_by_sqrt_width) config.embedding_scale = std::sqrt(width);
  const float n_layers = static_cast<float>(config.layers.size());
  SLUICE_TRY_ASSIGN(config.residual_scale, keys.FloatOr("residual_scale", minicpm ? 1.4f / std::sqrt(n_layers) : 1.0f));
  SLUICE_TRY_ASSIGN(const float logit_scale, keys.FloatOr("logit_scale", minicpm ? width / 256.0f : 1.0f));
  if (logit_scale != 0.0f) config.logit_scale = recipe.logits_divided_by_scale ? 1.0f / logit_scale : logit_scale;

  SLUICE_TRY_ASSIGN(config.attention_scale, keys.FloatOr("attention.scale", 0.0f));
  if (config.attention_scale == 0.0f) {
    float squared = static_cast<float>(config.k_dim);
    if (static_cast<int64_t>(config.layers.size()) == recipe.attention_scale_by_width_at_layers)
      squared = width / static_cast<float>(config.layers[0].n_heads);
    config.attention_scale = 1.0f / std::sqrt(squared);
  }
  SLUICE_TRY_ASSIGN(config.attention_softcap, keys.FloatOr("attn_logit_softcapping", 0.0f));
  SLUICE_TRY_ASSIGN(config.final_softcap, keys.FloatOr("final_logit_softcapping", 0.0f));
  SLUICE_TRY_ASSIGN(config.clamp_qkv, keys.FloatOr("attention.clamp_kqv", 0.0f));
  if (recipe.alibi) {
    SLUICE_TRY_ASSIGN(config.alibi_max_bias, keys.FloatOr("attention.max_alibi_bias", 8.0f));
  }
  SLUICE_TRY_ASSIGN(config.attention_temperature, keys.FloatOr("attention.temperature_scale", 0.0f));
  config.attention_temperature_length = std::max<int64_t>(1, config.rope.original_context);
  return {};
}

}  // namespace

Result<Config> ReadConfig(const gguf::Metadata& metadata) {
  SLUICE_TRY_ASSIGN(const std::string_view architecture, metadata.GetString("general.architecture"));
  Config config;
  config.recipe = FindRecipe(architecture);
  if (config.recipe == nullptr) {
    return Fail(ErrorCode::kUnsupported, "architecture '{}' is not one that Sluice runs; it runs {}", architecture,
                KnownArchitectures());
  }
  const Keys keys(metadata, std::string(architecture));
  SLUICE_TRY_ASSIGN(const uint32_t experts, metadata.GetU32Or(keys.Of("expert_count"), 0));
  if (experts > 0) {
    return Fail(ErrorCode::kUnsupported, "{} is {}: mixtures of experts do not run yet", keys.Of("expert_count"), experts);
  }
  SLUICE_TRY_ASSIGN(const std::string_view name, metadata.GetStringOr("general.name", architecture));
  config.name = name;
  SLUICE_TRY_ASSIGN(config.synthetic, metadata.GetBoolOr("sluice.synthetic", false));
  SLUICE_TRY_ASSIGN(config.vocab_size, VocabularySize(metadata, keys));
  SLUICE_TRY_ASSIGN(const uint32_t context, keys.Size("context_length", kMaxContext));
  config.context_length = context;
  SLUICE_TRY_ASSIGN(const uint32_t d_model, keys.Size("embedding_length", kMaxWidth));
  config.d_model = d_model;
  SLUICE_TRY_ASSIGN(const uint32_t n_layers, keys.Size("block_count", kMaxLayers));

  SLUICE_TRY_ASSIGN(const auto n_heads, keys.SizePerLayer("attention.head_count", n_layers, kMaxHeads));
  uint32_t head_dim = d_model / n_heads[0];
  SLUICE_TRY_ASSIGN(const uint32_t k_dim, keys.SizeOr("attention.key_length", kMaxHeadDim, head_dim));
  SLUICE_TRY_ASSIGN(const uint32_t v_dim, keys.SizeOr("attention.value_length", kMaxHeadDim, head_dim));
  if (k_dim < 1 || v_dim < 1 || k_dim > kMaxHeadDim || v_dim > kMaxHeadDim) {
    return Fail(ErrorCode::kCorrupt, "heads of {} (keys) and {} (values) elements; expected 1 to {}", k_dim, v_dim, kMaxHeadDim);
  }
  config.k_dim = static_cast<int>(k_dim);
  config.v_dim = static_cast<int>(v_dim);

  const std::string_view eps =
      config.recipe->norm == Norm::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  SLUICE_TRY_ASSIGN(config.norm_eps, metadata.GetF32(keys.Of(eps)));
  if (!(config.norm_eps >= 0)) return Fail(ErrorCode::kCorrupt, "{} is {}; expected 0 or more", keys.Of(eps), config.norm_eps);

  SLUICE_TRY(ReadRope(keys, config));
  SLUICE_TRY(ReadLayers(keys, n_layers, config));
  SLUICE_TRY(ReadScales(keys, config));
  return config;
}

}  // namespace sluice::model
