#include "quantize/tensor_role.h"

#include <algorithm>
#include <string>

namespace sluice::quantize {
namespace {

constexpr std::pair<std::string_view, Role> kRoles[] = {
    {"token_embd.weight", Role::kTokenEmbedding},
    {"output.weight", Role::kOutput},
    {"attn_q.weight", Role::kAttnQ},
    {"attn_k.weight", Role::kAttnK},
    {"attn_v.weight", Role::kAttnV},
    {"attn_qkv.weight", Role::kAttnQkv},
    {"attn_output.weight", Role::kAttnOutput},
    {"ffn_gate.weight", Role::kFfnGate},
    {"ffn_gate_exps.weight", Role::kFfnGate},
    {"ffn_gate_shexp.weight", Role::kFfnGate},
    {"ffn_up.weight", Role::kFfnUp},
    {"ffn_up_exps.weight", Role::kFfnUp},
    {"ffn_up_shexp.weight", Role::kFfnUp},
    {"ffn_gate_up_exps.weight", Role::kFfnUp},
    {"ffn_down.weight", Role::kFfnDown},
    {"ffn_down_exps.weight", Role::kFfnDown},
    {"ffn_down_shexp.weight", Role::kFfnDown},
};

// Parts of the names of what stays as it is.
constexpr std::string_view kKept[] = {
    "_norm",  "ffn_gate_inp", "position_embd", "token_types", "rope_f",
    "conv1d", "shortconv.",   "time_mix_",     "attn_rel_b",  "per_layer_model_proj",
    "altup_", "laurel_",      "ssm_a",         "ssm_dt",      "ssm_d.",
    "cls.",   "attn_sinks"};

Result<std::vector<uint32_t>> PerLayer(const gguf::Metadata& metadata, const std::string& key,
                                       uint32_t layers, const std::vector<uint32_t>& fallback) {
  if (!metadata.Has(key)) return fallback;
  return metadata.GetU32PerLayer(key, layers);
}

}  // namespace

LayerName SplitLayer(std::string_view tensor_name) {
  if (!tensor_name.starts_with("blk.")) return {0, tensor_name};
  uint32_t layer = 0;
  size_t i = 4;
  for (; i < tensor_name.size() && tensor_name[i] >= '0' && tensor_name[i] <= '9' && layer < 100000; ++i)
    layer = layer * 10 + static_cast<uint32_t>(tensor_name[i] - '0');
  return {layer, i < tensor_name.size() ? tensor_name.substr(i + 1) : std::string_view()};
}

std::optional<Role> RoleOf(std::string_view tensor_name) {
  const std::string_view name = SplitLayer(tensor_name).name;
  const auto* const role = std::ranges::find(kRoles, name, &std::pair<std::string_view, Role>::first);
  if (role == std::end(kRoles)) return std::nullopt;
  return role->second;
}

bool IsQuantisable(const gguf::Tensor& tensor) {
  if (tensor.n_dims < 2 || tensor.rows() < 2 || !tensor.name.ends_with(".weight")) return false;
  return std::ranges::none_of(
      kKept, [&](std::string_view part) { return tensor.name.find(part) != tensor.name.npos; });
}

Result<ModelShape> ModelShape::Read(const gguf::Metadata& metadata, bool tied) {
  ModelShape shape{.tied = tied};
  SLUICE_TRY_ASSIGN(const std::string_view architecture, metadata.GetStringOr("general.architecture", ""));
  const std::string prefix(architecture);
  SLUICE_TRY_ASSIGN(shape.layers, metadata.GetU32Or(prefix + ".block_count", 1));
  shape.layers = std::clamp(shape.layers, 1u, 100000u);
  const std::string heads = prefix + ".attention.head_count";
  SLUICE_TRY_ASSIGN(shape.heads,
                    PerLayer(metadata, heads, shape.layers, std::vector<uint32_t>(shape.layers, 1)));
  SLUICE_TRY_ASSIGN(shape.kv_heads, PerLayer(metadata, heads + "_kv", shape.layers, shape.heads));
  return shape;
}

MatrixPlace PlaceOf(const gguf::Tensor& tensor, const ModelShape& shape) {
  MatrixPlace place{.role = RoleOf(tensor.name).value_or(Role::kFfnUp),
                    .layer = SplitLayer(tensor.name).layer,
                    .layers = shape.layers,
                    .tied = shape.tied,
                    .columns = tensor.columns()};
  const size_t layer = std::min<size_t>(place.layer, shape.layers - 1);
  if (shape.kv_heads[layer] > 0) place.heads_per_kv_head = shape.heads[layer] / shape.kv_heads[layer];
  return place;
}

}  // namespace sluice::quantize
