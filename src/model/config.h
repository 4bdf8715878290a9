// Config: a model's sizes and constants, read from the metadata of its file and checked.
//
// After ReadConfig every number is in range and consistent with the others (heads divide, dimensions are even where
// they are paired …), so nothing later checks again. A value; immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"
#include "model/recipe.h"
#include "ops/rope.h"

namespace sluice::model {

struct LayerConfig {
  int n_heads = 0;
  int n_kv_heads = 0;
  int64_t d_ff = 0;
  int64_t window = 0;     // sliding window in positions; 0 = sees everything
  bool rope = false;      // turns queries and keys
  bool sliding = false;   // uses the sliding layers' angles
  bool parallel = false;  // attention and ffn side by side
  // Constants of the xIELU activation (apertus).
  float xielu_alpha_n = 0, xielu_alpha_p = 0, xielu_beta = 0, xielu_eps = 0;
};

struct Config {
  const Recipe* recipe = nullptr;
  std::string name;             // general.name, or the architecture
  bool synthetic = false;       // weights are random numbers (sluice synth)
  int64_t vocab_size = 0;       // tokens; the embedding matrix may have more rows
  int64_t context_length = 0;   // that the model was trained for
  int64_t d_model = 0;
  int k_dim = 0, v_dim = 0;     // of one head
  float norm_eps = 0;
  std::vector<LayerConfig> layers;

  float embedding_scale = 1.0f;
  float residual_scale = 1.0f;   // of both branches
  float logit_scale = 1.0f;      // multiplies the logits
  float attention_scale = 1.0f;  // multiplies the scores
  float attention_softcap = 0.0f;
  float final_softcap = 0.0f;
  float clamp_qkv = 0.0f;        // 0 = none
  float alibi_max_bias = 0.0f;   // 0 = no ALiBi
  // Queries are multiplied by 1 + temperature · ln(⌊position / temperature_length⌋ + 1); 0 = not.
  float attention_temperature = 0.0f;
  int64_t attention_temperature_length = 1;

  ops::RopeSpec rope;          // full layers; LongRoPE and llama 3 divisors come with the weights
  ops::RopeSpec sliding_rope;  // sliding layers
};

// Errors: kUnsupported for an architecture without a recipe (naming those there are), kCorrupt for keys that are
// missing, of the wrong type or out of range, naming key and value.
Result<Config> ReadConfig(const gguf::Metadata& metadata);

}  // namespace sluice::model
