// Weights: every tensor of a model in its place, checked.
//
// Bind walks the recipe and finds each tensor by its GGUF name, comparing type and shape; what is missing, odd or left
// over is an error that names it. After that the forward pass has no checks.
//
// Matrices say where in the file they are; their bytes are the weight store's business. Vectors (norms, biases) are held
// here as f32. The file must outlive this.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "gguf/reader.h"
#include "ops/linear.h"
#include "weights/schedule.h"

namespace sluice::model {

struct NormWeights {
  bool present = false;
  const float* weight = nullptr;  // [width] or null (= 1)
  const float* bias = nullptr;    // [width] or null
};

struct QkNormWeights {
  const float* weight = nullptr;  // [k_dim], [n_heads, k_dim] or, over whole rows, [n_heads · k_dim]
  int64_t head_stride = 0;        // floats from one head's weights to the next: 0 or k_dim
};

struct LayerWeights {
  NormWeights attn_norm, attn_norm_2, post_attn_norm, attn_sub_norm;
  NormWeights ffn_norm, post_ffn_norm, ffn_sub_norm;
  ops::Linear q, k, v, o;       // [n_heads · k_dim, d_model] …
  QkNormWeights q_norm, k_norm;
  ops::Linear gate, up, down;   // gate is empty in families without one

  // Operations of the schedule: q, k and v; o; gate and up; down.
  int qkv_operation = 0, o_operation = 0, ffn_operation = 0, down_operation = 0;
};

struct Weights {
  weights::Matrix token_embedding;     // [vocab_size, d_model], looked up row by row
  weights::Matrix position_embedding;  // [context_length, d_model] or empty
  NormWeights embedding_norm, output_norm;
  ops::Linear output;                  // [vocab_size, d_model]; token_embedding when tied
  std::vector<LayerWeights> layers;

  weights::Schedule schedule;  // of all matrices that are multiplied with; the last operation is the output
  std::vector<float> rope_divisors;        // rope_freqs.weight, or empty
  std::vector<float> rope_divisors_long, rope_divisors_short;  // LongRoPE, or empty

  // Bytes of matrices that one token passes through: what decoding reads.
  uint64_t bytes_per_token = 0;
  uint64_t multiplications_per_token = 0;  // multiply-adds in those matrices
  uint64_t parameters = 0;

  // Where the f32 vectors live.
  std::vector<std::unique_ptr<float[]>> vectors;
};

// Vectors are read; config learns what only the tensors tell (which blocks are parallel).
// Errors: kNotFound (missing tensor), kCorrupt (wrong shape), kUnsupported (a type that no product takes; a tensor that
// the recipe has no place for).
Result<Weights> BindWeights(Config& config, const gguf::GgufFile& file);
// The same from a tensor directory alone (a header without its data, a shape), which must outlive the result: all that
// planning needs. Vectors are checked but left out.
Result<Weights> BindDirectory(Config& config, std::span<const gguf::Tensor> tensors);

}  // namespace sluice::model
