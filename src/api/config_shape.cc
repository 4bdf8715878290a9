#include "api/config_shape.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace sluice {

namespace {

using nlohmann::json;

struct Family {
  std::string_view model_type;
  std::string_view architecture;
  bool tied_by_default = false, qkv_bias = false, qk_norm = false, post_norms = false;
};
constexpr Family kFamilies[] = {
    {.model_type = "llama", .architecture = "llama"},
    {.model_type = "mistral", .architecture = "llama"},
    {.model_type = "qwen2", .architecture = "qwen2", .qkv_bias = true},
    {.model_type = "qwen3", .architecture = "qwen3", .qk_norm = true},
    {.model_type = "gemma2", .architecture = "gemma2", .tied_by_default = true, .post_norms = true},
    {.model_type = "gemma3_text",
     .architecture = "gemma3",
     .tied_by_default = true,
     .qk_norm = true,
     .post_norms = true},
    {.model_type = "gemma3",
     .architecture = "gemma3",
     .tied_by_default = true,
     .qk_norm = true,
     .post_norms = true},
};

Result<const Family*> FindFamily(const json& config) {
  const auto type = config.find("model_type");
  if (type == config.end() || !type->is_string())
    return Fail(ErrorCode::kCorrupt, "model_type: expected a string");
  std::string names;
  for (const Family& family : kFamilies) {
    if (type->get_ref<const std::string&>() == family.model_type) return &family;
    names += names.empty() ? "" : ", ";
    names += family.model_type;
  }
  return Fail(ErrorCode::kUnsupported, "model_type '{}' can't be planned from its config; these can: {}",
              type->get_ref<const std::string&>(), names);
}

Result<uint32_t> Size(const json& config, const char* key, uint32_t limit,
                      std::optional<uint32_t> fallback = {}) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) {
    if (fallback) return *fallback;
    return Fail(ErrorCode::kCorrupt, "{} is missing", key);
  }
  if (!found->is_number_unsigned() || found->get<uint64_t>() < 1 || found->get<uint64_t>() > limit) {
    return Fail(ErrorCode::kCorrupt, "{}: expected a whole number from 1 to {}", key, limit);
  }
  return found->get<uint32_t>();
}

}  // namespace

Result<quantize::SynthShape> ShapeOfConfig(std::string_view text) {
  const json whole = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= 8; }, false);
  if (!whole.is_object()) return Fail(ErrorCode::kCorrupt, "expected one JSON object");
  // Models that also see keep their language part in an object of its own.
  const auto inner = whole.find("text_config");
  const json& config =
      inner != whole.end() && inner->is_object() && !whole.contains("hidden_size") ? *inner : whole;
  SLUICE_TRY_ASSIGN(const Family* family, FindFamily(config.contains("model_type") ? config : whole));

  quantize::SynthShape shape{.name = family->model_type, .architecture = family->architecture};
  SLUICE_TRY_ASSIGN(shape.layers, Size(config, "num_hidden_layers", 1 << 12));
  SLUICE_TRY_ASSIGN(shape.d_model, Size(config, "hidden_size", 1 << 20));
  SLUICE_TRY_ASSIGN(shape.d_ff, Size(config, "intermediate_size", 1 << 20));
  SLUICE_TRY_ASSIGN(shape.n_heads, Size(config, "num_attention_heads", 1 << 12));
  SLUICE_TRY_ASSIGN(shape.n_kv_heads, Size(config, "num_key_value_heads", 1 << 12, shape.n_heads));
  if (shape.n_heads % shape.n_kv_heads != 0) {
    return Fail(ErrorCode::kCorrupt, "num_key_value_heads is {}; it must divide the {} heads",
                shape.n_kv_heads, shape.n_heads);
  }
  SLUICE_TRY_ASSIGN(shape.head_dim,
                    Size(config, "head_dim", 1024, std::max(shape.d_model / shape.n_heads, 1u)));
  SLUICE_TRY_ASSIGN(shape.context_length, Size(config, "max_position_embeddings", 1 << 26, 8192));
  SLUICE_TRY_ASSIGN(shape.vocabulary_size, Size(config, "vocab_size", 1 << 22));
  const auto flag = [&](const char* key, bool fallback) {
    const auto found = config.find(key);
    return found != config.end() && found->is_boolean() ? found->get<bool>() : fallback;
  };
  shape.tied = flag("tie_word_embeddings", family->tied_by_default);
  shape.qkv_bias = family->qkv_bias;
  shape.qk_norm = family->qk_norm;
  shape.post_norms = family->post_norms;
  if (family->post_norms) {
    SLUICE_TRY_ASSIGN(shape.sliding_window, Size(config, "sliding_window", 1 << 26, 4096));
  }
  return shape;
}

}  // namespace sluice
