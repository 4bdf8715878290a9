// A llama of a few thousand weights, for tests that run one.
#pragma once

#include <cstdint>
#include <string_view>

#include "quantize/synth.h"

namespace sluice::quantize {

constexpr SynthShape SmallShape(std::string_view name, uint32_t layers) {
  return {.name = name,
          .architecture = "llama",
          .layers = layers,
          .d_model = 64,
          .d_ff = 96,
          .n_heads = 2,
          .n_kv_heads = 1,
          .head_dim = 32,
          .context_length = 64};
}

}  // namespace sluice::quantize
