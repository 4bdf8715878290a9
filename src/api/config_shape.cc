#include "api/config_shape.h"

#include <algorithm>

#include "convert/model_sizes.h"

namespace sluice {

namespace {

// What shapes of an architecture have beside their sizes.
struct Parts {
  std::string_view architecture;
  bool qkv_bias = false, qk_norm = false, post_norms = false;
};
constexpr Parts kParts[] = {
    {.architecture = "llama"},
    {.architecture = "qwen2", .qkv_bias = true},
    {.architecture = "qwen3", .qk_norm = true},
    {.architecture = "gemma2", .post_norms = true},
    {.architecture = "gemma3", .qk_norm = true, .post_norms = true},
};

// Where the configuration has none.
constexpr int64_t kUsualContext = 8192;
// Beyond these, bytes of a cache would not fit 64 bits.
constexpr int64_t kMostContext = 1 << 26, kMostHeadWidth = 1024;
constexpr int64_t kMostTokens = 1 << 22;  // of a vocabulary

Result<const Parts*> FindParts(const convert::Family& family) {
  const auto* found = std::ranges::find(kParts, family.architecture, &Parts::architecture);
  if (found != std::end(kParts)) return found;
  std::string names;
  for (const convert::Family& known : convert::AllFamilies()) {
    if (std::ranges::find(kParts, known.architecture, &Parts::architecture) != std::end(kParts))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", known.model_type);
  }
  return Fail(ErrorCode::kUnsupported, "model_type '{}' can't be planned from its config; these can: {}",
              family.model_type, names);
}

Result<uint32_t> AtMost(const convert::JsonObject& config, std::string_view key, uint64_t value,
                        int64_t most) {
  if (value <= static_cast<uint64_t>(most)) return static_cast<uint32_t>(value);
  return Fail(ErrorCode::kCorrupt, "{}: {} is {}; expected at most {}", config.name(), key, value, most);
}

}  // namespace

Result<quantize::SynthShape> ShapeOfConfig(std::string_view text) {
  SLUICE_TRY_ASSIGN(const nlohmann::json json, convert::ParseJsonObject(text, "config.json"));
  SLUICE_TRY_ASSIGN(const convert::ModelSizes sizes,
                    convert::ReadModelSizes(convert::JsonObject(json, "config.json")));
  SLUICE_TRY_ASSIGN(const Parts* parts, FindParts(*sizes.family));
  const convert::JsonObject& config = sizes.config;
  quantize::SynthShape shape{.name = sizes.family->model_type,
                             .architecture = sizes.family->architecture,
                             .layers = static_cast<uint32_t>(sizes.layers),
                             .d_model = static_cast<uint32_t>(sizes.d_model),
                             .d_ff = static_cast<uint32_t>(sizes.d_ff),
                             .n_heads = static_cast<uint32_t>(sizes.heads.queries),
                             .n_kv_heads = static_cast<uint32_t>(sizes.heads.keys)};
  SLUICE_TRY_ASSIGN(shape.head_dim, AtMost(config, "head_dim", sizes.heads.width, kMostHeadWidth));
  const auto context = static_cast<uint64_t>(sizes.context_length.value_or(kUsualContext));
  SLUICE_TRY_ASSIGN(shape.context_length, AtMost(config, "max_position_embeddings", context, kMostContext));
  const auto window = static_cast<uint64_t>(sizes.sliding_window.value_or(0));
  SLUICE_TRY_ASSIGN(shape.sliding_window, AtMost(config, "sliding_window", window, kMostContext));
  SLUICE_TRY_ASSIGN(const int64_t tokens, config.RequireInt({"vocab_size"}, 1, kMostTokens));
  shape.vocabulary_size = static_cast<uint32_t>(tokens);
  shape.tied = sizes.tied;
  shape.qkv_bias = parts->qkv_bias;
  shape.qk_norm = parts->qk_norm;
  shape.post_norms = parts->post_norms;
  return shape;
}

}  // namespace sluice
