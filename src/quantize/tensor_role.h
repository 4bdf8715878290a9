// What a tensor of a model file is for, as far as mixes tell (mix.h), from its name.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "gguf/tensor_info.h"
#include "quantize/mix.h"

namespace sluice::quantize {

// "blk.12.attn_q.weight" → layer 12 and "attn_q.weight"; other names stay whole, as of layer 0.
struct LayerName {
  uint32_t layer = 0;
  std::string_view name;
};
LayerName SplitLayer(std::string_view tensor_name);

// Unset for names that mixes know nothing of. Experts count as the FFN that they are.
std::optional<Role> RoleOf(std::string_view tensor_name);

// Weight matrices are quantised. Norms, biases, routers, convolutions, position tables and the like are small
// and sensitive, and stay as they are.
bool IsQuantisable(const gguf::Tensor& tensor);

// What of the model's shape mixes look at. Missing keys count as one layer, and as many KV heads as heads.
struct ModelShape {
  uint32_t layers = 1;
  std::vector<uint32_t> heads;     // of each layer
  std::vector<uint32_t> kv_heads;  // of each layer
  bool tied = false;

  // Errors: kCorrupt for keys of the wrong type.
  static Result<ModelShape> Read(const gguf::Metadata& metadata, bool tied);
};

// The place of a quantisable tensor. Without a known role it counts as ffn_up, which no mix but the IQ3 ones
// treats specially.
MatrixPlace PlaceOf(const gguf::Tensor& tensor, const ModelShape& shape);

}  // namespace sluice::quantize
