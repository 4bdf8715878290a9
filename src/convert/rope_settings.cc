#include "convert/rope_settings.h"

#include <cmath>
#include <numbers>

#include "convert/model_sizes.h"

namespace sluice::convert {

namespace {

Result<std::string> RopeType(const JsonObject& object) {
  SLUICE_TRY_ASSIGN(auto type, object.String("rope_type"));
  if (!type) {
    SLUICE_TRY_ASSIGN(type, object.String("type"));
  }
  return type.value_or("default");
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

Status LongRope(const JsonObject& config, const JsonObject& scaling, int64_t dimensions,
                ArchitectureKeys& keys, std::vector<ComputedTensor>& tensors) {
  for (const auto& [key, name] : {std::pair{"long_factor", "rope_factors_long.weight"},
                                  {"short_factor", "rope_factors_short.weight"}}) {
    SLUICE_TRY_ASSIGN(const std::vector<double> factors, scaling.Numbers(key));
    if (static_cast<int64_t>(factors.size()) != dimensions / 2)
      return scaling.Wrong(key, fmt::format("{} numbers, one for each pair that turns", dimensions / 2));
    tensors.push_back({name, std::vector<float>(factors.begin(), factors.end())});
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

}  // namespace

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

Status WriteRope(const JsonObject& config, const RopeSettings& rope, int64_t head_dim, ArchitectureKeys& keys,
                 std::vector<ComputedTensor>& tensors, std::vector<std::string>& warnings) {
  const auto dimensions = static_cast<int64_t>(static_cast<double>(head_dim) * rope.share) / 2 * 2;
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
                                       {"beta_slow", "rope.scaling.yarn_beta_slow"},
                                       {"mscale_all_dim", "rope.scaling.yarn_log_multiplier"},
                                       {"llama_4_scaling_beta", "attention.temperature_scale"}}) {
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
    tensors.push_back({"rope_freqs.weight", std::move(factors)});
    return {};
  }
  if (rope.type == "longrope" || rope.type == "su")
    return LongRope(config, scaling, dimensions, keys, tensors);
  if (rope.type == "dynamic") {
    warnings.push_back(
        "dynamic rope scaling is left out, which GGUF has no key for: output is that of the model within "
        "its trained context");
    return {};
  }
  return Fail(ErrorCode::kUnsupported,
              "{}: rope scaling of type '{}' is not known; known are default, linear, yarn, "
              "llama3, longrope and dynamic",
              scaling.name(), rope.type);
}

}  // namespace sluice::convert
