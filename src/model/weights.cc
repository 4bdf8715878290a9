#include "model/weights.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "formats/decode.h"

namespace sluice::model {

namespace {

// Fills `bytes` with a tensor's data.
using ReadTensor = std::function<Status(const gguf::Tensor& tensor, std::span<std::byte> bytes)>;

// Finds tensors by name, checks them, and remembers which were used.
class Binder {
 public:
  // Without `read`, vectors stay null.
  Binder(std::span<const gguf::Tensor> tensors, ReadTensor read, Weights& weights)
      : tensors_(tensors), read_(std::move(read)), weights_(weights) {
    for (const gguf::Tensor& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  }

  const gguf::Tensor* Find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  bool Has(const std::string& name) const { return Find(name) != nullptr; }

  // A matrix [rows, columns] of any type that products take.
  Result<weights::Matrix> Matrix(const std::string& name, int64_t rows, int64_t columns) {
    SLUICE_TRY_ASSIGN(const gguf::Tensor* tensor, Take(name));
    SLUICE_TRY(CheckShape(*tensor, rows, columns));
    switch (tensor->traits->dtype) {
      case formats::DType::kI8: case formats::DType::kI16: case formats::DType::kI32: case formats::DType::kI64:
      case formats::DType::kF64:
        return Fail(ErrorCode::kUnsupported, "tensor {} has type {}, which weights do not have", name, tensor->traits->name);
      default: break;
    }
    weights_.parameters += tensor->elements();
    return weights::Matrix{
        .dtype = tensor->traits->dtype, .rows = rows, .columns = columns, .tensor = tensor, .first_row = 0};
  }

  // The rows of a matrix that has one for each token. Files pad it to a round number; the tokenizer doesn't know those
  // rows, and neither does anybody else here.
  Result<int64_t> RowsForTokens(const std::string& name, int64_t vocab_size) {
    SLUICE_TRY_ASSIGN(const gguf::Tensor* tensor, Take(name));
    if (tensor->rows() >= static_cast<uint64_t>(vocab_size)) return static_cast<int64_t>(tensor->rows());
    return Fail(ErrorCode::kCorrupt, "tensor {} has {} rows; expected one for each of the vocabulary's {} tokens", name,
                tensor->rows(), vocab_size);
  }

  // A matrix that every token is multiplied with.
  void CountProduct(const weights::Matrix& weight) {
    weights_.bytes_per_token += weight.size_bytes();
    weights_.multiplications_per_token += static_cast<uint64_t>(weight.rows * weight.columns);
  }

  // A vector, converted to f32 (null when nothing is read). Read at once: it is small.
  Result<const float*> Vector(const std::string& name, int64_t size) {
    SLUICE_TRY_ASSIGN(const gguf::Tensor* tensor, Take(name));
    SLUICE_TRY(CheckShape(*tensor, 1, size));
    weights_.parameters += tensor->elements();
    return Decode(*tensor);
  }

  // A linear layer with its optional bias and scale: "blk.0.attn_q" → .weight, .bias, .scale.
  Result<ops::Linear> Linear(const std::string& stem, int64_t rows, int64_t columns) {
    ops::Linear linear;
    SLUICE_TRY_ASSIGN(linear.weight, Matrix(stem + ".weight", rows, columns));
    if (Has(stem + ".bias")) {
      SLUICE_TRY_ASSIGN(linear.bias, Vector(stem + ".bias", rows));
    }
    if (Has(stem + ".scale")) {
      SLUICE_TRY_ASSIGN(const float* scale, Vector(stem + ".scale", 1));
      if (scale != nullptr) linear.scale = *scale;
    }
    // A hint for programs that quantise activations to fp4; Sluice's activations carry their own scales.
    if (Has(stem + ".input_scale")) SLUICE_TRY(Take(stem + ".input_scale"));
    CountProduct(linear.weight);
    return linear;
  }

  Result<NormWeights> Norm(const std::string& stem, const Recipe& recipe, Presence presence, int64_t width) {
    NormWeights norm;
    if (presence == Presence::kAbsent) return norm;
    norm.present = true;
    if (!recipe.norms_have_weights) return norm;
    if (presence == Presence::kOptional && !Has(stem + ".weight")) {
      norm.present = false;
      return norm;
    }
    SLUICE_TRY_ASSIGN(norm.weight, Vector(stem + ".weight", width));
    if (recipe.norm == model::Norm::kLayer && Has(stem + ".bias")) {
      SLUICE_TRY_ASSIGN(norm.bias, Vector(stem + ".bias", width));
    }
    return norm;
  }

  // Marks a tensor as known. Errors: it is missing, or of an unknown type.
  Result<const gguf::Tensor*> Take(const std::string& name) {
    SLUICE_TRY_ASSIGN(const gguf::Tensor* tensor, gguf::RequireKnown(Find(name), name));
    used_.insert(tensor);
    return tensor;
  }

  Result<const float*> Decode(const gguf::Tensor& tensor) {
    if (!read_) return static_cast<const float*>(nullptr);
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.size_bytes));
    SLUICE_TRY(read_(tensor, bytes));
    const size_t elements = static_cast<size_t>(tensor.elements());
    auto values = std::make_unique<float[]>(elements);
    formats::DecodeRow(tensor.traits->dtype, bytes.data(), {values.get(), elements});
    weights_.vectors.push_back(std::move(values));
    return static_cast<const float*>(weights_.vectors.back().get());
  }

  // A tensor that the recipe has no place for would be computed without: that is a wrong answer, so it is refused.
  Status CheckNothingIsLeft(const Recipe& recipe) const {
    for (const gguf::Tensor& tensor : tensors_) {
      if (used_.contains(&tensor) || IsHarmless(tensor.name)) continue;
      return Fail(ErrorCode::kUnsupported,
                  "tensor {} is no part of architecture '{}' as Sluice runs it; without it the output would be wrong",
                  tensor.name, recipe.architecture);
    }
    return {};
  }

 private:
  static Status CheckShape(const gguf::Tensor& tensor, int64_t rows, int64_t columns) {
    if (tensor.columns() == static_cast<uint64_t>(columns) && tensor.rows() == static_cast<uint64_t>(rows)) return {};
    return Fail(ErrorCode::kCorrupt, "tensor {} has shape [{}, {}]; expected [{}, {}]", tensor.name, tensor.columns(),
                tensor.rows(), columns, rows);
  }

  // Left over from how files were made: tables that are computed here.
  static bool IsHarmless(std::string_view name) {
    return name.ends_with(".attn_rot_embd") || name.ends_with(".attn.rotary_emb.inv_freq") ||
           name.ends_with("rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd.weight");
  }

  const std::span<const gguf::Tensor> tensors_;
  const ReadTensor read_;
  std::map<std::string_view, const gguf::Tensor*> by_name_;
  Weights& weights_;
  std::set<const gguf::Tensor*> used_;
};

// Rows [first, first + rows) of a linear layer.
ops::Linear Slice(const ops::Linear& linear, int64_t first, int64_t rows) {
  ops::Linear slice = linear;
  slice.weight.first_row += first;
  slice.weight.rows = rows;
  if (linear.bias != nullptr) slice.bias = linear.bias + first;
  return slice;
}

Status BindAttention(Binder& binder, const std::string& blk, const Config& config, const LayerConfig& layer,
                     LayerWeights& w) {
  const int64_t d_model = config.d_model;
  const int64_t q_rows = int64_t{layer.n_heads} * config.k_dim;
  const int64_t k_rows = int64_t{layer.n_kv_heads} * config.k_dim;
  const int64_t v_rows = int64_t{layer.n_kv_heads} * config.v_dim;
  if (binder.Has(blk + "attn_qkv.weight")) {
    SLUICE_TRY_ASSIGN(const ops::Linear qkv, binder.Linear(blk + "attn_qkv", q_rows + k_rows + v_rows, d_model));
    w.q = Slice(qkv, 0, q_rows);
    w.k = Slice(qkv, q_rows, k_rows);
    w.v = Slice(qkv, q_rows + k_rows, v_rows);
  } else {
    SLUICE_TRY_ASSIGN(w.q, binder.Linear(blk + "attn_q", q_rows, d_model));
    SLUICE_TRY_ASSIGN(w.k, binder.Linear(blk + "attn_k", k_rows, d_model));
    SLUICE_TRY_ASSIGN(w.v, binder.Linear(blk + "attn_v", v_rows, d_model));
  }
  SLUICE_TRY_ASSIGN(w.o, binder.Linear(blk + "attn_output", d_model, int64_t{layer.n_heads} * config.v_dim));
  return {};
}

Result<QkNormWeights> BindQkNorm(Binder& binder, const std::string& name, const Config& config, int n_heads) {
  const Recipe& recipe = *config.recipe;
  QkNormWeights norm;
  if (recipe.qk_norm == QkNorm::kNone || recipe.qk_norm_presence == Presence::kAbsent) return norm;
  if (recipe.qk_norm_presence == Presence::kOptional && !binder.Has(name)) return norm;
  SLUICE_TRY_ASSIGN(const gguf::Tensor* tensor, binder.Take(name));
  const uint64_t one_head = static_cast<uint64_t>(config.k_dim);
  const uint64_t all_heads = one_head * static_cast<uint64_t>(n_heads);
  const bool each_head = recipe.qk_norm == QkNorm::kHead && tensor->elements() == all_heads && n_heads > 1;
  if (tensor->elements() != (recipe.qk_norm == QkNorm::kRow || each_head ? all_heads : one_head)) {
    return Fail(ErrorCode::kCorrupt, "tensor {} has {} elements; expected {} or {}", name, tensor->elements(), one_head,
                all_heads);
  }
  SLUICE_TRY_ASSIGN(norm.weight, binder.Decode(*tensor));
  norm.head_stride = each_head ? config.k_dim : 0;
  return norm;
}

Status BindFeedForward(Binder& binder, const std::string& blk, const Config& config, const LayerConfig& layer,
                       LayerWeights& w) {
  const int64_t d_model = config.d_model, d_ff = layer.d_ff;
  const gguf::Tensor* up = binder.Find(blk + "ffn_up.weight");
  const bool fused = up != nullptr && up->rows() == static_cast<uint64_t>(2 * d_ff);
  if (config.recipe->gated && fused && !binder.Has(blk + "ffn_gate.weight")) {
    SLUICE_TRY_ASSIGN(const ops::Linear both, binder.Linear(blk + "ffn_up", 2 * d_ff, d_model));
    w.gate = Slice(both, 0, d_ff);
    w.up = Slice(both, d_ff, d_ff);
  } else {
    if (config.recipe->gated) {
      SLUICE_TRY_ASSIGN(w.gate, binder.Linear(blk + "ffn_gate", d_ff, d_model));
    }
    SLUICE_TRY_ASSIGN(w.up, binder.Linear(blk + "ffn_up", d_ff, d_model));
  }
  SLUICE_TRY_ASSIGN(w.down, binder.Linear(blk + "ffn_down", d_model, d_ff));
  return {};
}

// The layer's operations, in the order in which a pass runs them.
void ScheduleLayer(LayerWeights& layer, int index, weights::Schedule& schedule) {
  layer.qkv_operation = schedule.Add({layer.q.weight, layer.k.weight, layer.v.weight}, false, index);
  layer.o_operation = schedule.Add({layer.o.weight}, false, index);
  layer.ffn_operation = layer.gate ? schedule.Add({layer.gate.weight, layer.up.weight}, true, index)
                                   : schedule.Add({layer.up.weight}, false, index);
  layer.down_operation = schedule.Add({layer.down.weight}, false, index);
}

Status BindLayer(Binder& binder, int index, const Config& config, weights::Schedule& schedule, LayerWeights& w) {
  const Recipe& recipe = *config.recipe;
  const LayerConfig& layer = config.layers[static_cast<size_t>(index)];
  const std::string blk = fmt::format("blk.{}.", index);
  const auto norm = [&](const char* name, Presence presence, int64_t width) {
    return binder.Norm(blk + name, recipe, presence, width);
  };
  const Presence sub_norm = recipe.sub_norms ? Presence::kRequired : Presence::kAbsent;
  const Presence second_norm = recipe.second_attn_norm ? Presence::kOptional : Presence::kAbsent;
  SLUICE_TRY_ASSIGN(w.attn_norm, norm("attn_norm", recipe.attn_norm, config.d_model));
  SLUICE_TRY_ASSIGN(w.attn_norm_2, norm("attn_norm_2", second_norm, config.d_model));
  SLUICE_TRY_ASSIGN(w.post_attn_norm, norm("post_attention_norm", recipe.post_attn_norm, config.d_model));
  SLUICE_TRY_ASSIGN(w.attn_sub_norm, norm("attn_sub_norm", sub_norm, int64_t{layer.n_heads} * config.v_dim));
  SLUICE_TRY_ASSIGN(w.ffn_norm, norm("ffn_norm", recipe.ffn_norm, config.d_model));
  SLUICE_TRY_ASSIGN(w.post_ffn_norm, norm("post_ffw_norm", recipe.post_ffn_norm, config.d_model));
  SLUICE_TRY_ASSIGN(w.ffn_sub_norm, norm("ffn_sub_norm", sub_norm, layer.d_ff));
  SLUICE_TRY(BindAttention(binder, blk, config, layer, w));
  SLUICE_TRY_ASSIGN(w.q_norm, BindQkNorm(binder, blk + "attn_q_norm.weight", config, layer.n_heads));
  SLUICE_TRY_ASSIGN(w.k_norm, BindQkNorm(binder, blk + "attn_k_norm.weight", config, layer.n_kv_heads));
  SLUICE_TRY(BindFeedForward(binder, blk, config, layer, w));
  ScheduleLayer(w, index, schedule);
  return {};
}

// Files repeat rope_freqs in every layer's namespace or not at all; one table serves all layers.
Status BindRopeDivisors(Binder& binder, const Config& config, Weights& weights) {
  const int64_t pairs = config.rope.dimensions / 2;
  const auto read = [&](const char* name, std::vector<float>& out) -> Status {
    for (size_t layer = 0; layer < config.layers.size(); ++layer) {
      const std::string in_layer = fmt::format("blk.{}.{}", layer, name);
      if (binder.Has(in_layer)) SLUICE_TRY(binder.Take(in_layer));
    }
    const std::string of_model = binder.Has(name) ? name : fmt::format("blk.0.{}", name);
    if (!binder.Has(of_model)) return {};
    SLUICE_TRY_ASSIGN(const float* values, binder.Vector(of_model, pairs));
    if (values == nullptr) return {};
    out.assign(values, values + pairs);
    for (const float divisor : out) {
      if (!(divisor > 0)) return Fail(ErrorCode::kCorrupt, "tensor {}: divisor {} is not positive", of_model, divisor);
    }
    return {};
  };
  SLUICE_TRY(read("rope_freqs.weight", weights.rope_divisors));
  SLUICE_TRY(read("rope_factors_long.weight", weights.rope_divisors_long));
  SLUICE_TRY(read("rope_factors_short.weight", weights.rope_divisors_short));
  return {};
}

Result<Weights> Bind(Config& config, std::span<const gguf::Tensor> tensors, ReadTensor read) {
  const Recipe& recipe = *config.recipe;
  Weights weights;
  Binder binder(tensors, std::move(read), weights);
  SLUICE_TRY_ASSIGN(const int64_t embedding_rows, binder.RowsForTokens("token_embd.weight", config.vocab_size));
  SLUICE_TRY_ASSIGN(weights.token_embedding, binder.Matrix("token_embd.weight", embedding_rows, config.d_model));
  weights.token_embedding.rows = config.vocab_size;
  if (recipe.position_embedding) {
    SLUICE_TRY_ASSIGN(weights.position_embedding,
                      binder.Matrix("position_embd.weight", config.context_length, config.d_model));
  }
  const Presence embedding_norm = recipe.embedding_norm ? Presence::kRequired : Presence::kAbsent;
  SLUICE_TRY_ASSIGN(weights.embedding_norm, binder.Norm("token_embd_norm", recipe, embedding_norm, config.d_model));
  SLUICE_TRY_ASSIGN(weights.output_norm, binder.Norm("output_norm", recipe, Presence::kRequired, config.d_model));
  if (recipe.output == Presence::kRequired || binder.Has("output.weight")) {
    SLUICE_TRY_ASSIGN(const int64_t output_rows, binder.RowsForTokens("output.weight", config.vocab_size));
    SLUICE_TRY_ASSIGN(const ops::Linear output, binder.Linear("output", output_rows, config.d_model));
    weights.output = Slice(output, 0, config.vocab_size);
  } else {
    weights.output.weight = weights.token_embedding;
    binder.CountProduct(weights.token_embedding);
  }
  SLUICE_TRY(BindRopeDivisors(binder, config, weights));
  weights.layers.resize(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    SLUICE_TRY(BindLayer(binder, static_cast<int>(i), config, weights.schedule, weights.layers[i]));
    if (recipe.residual == Residual::kParallelIfOneNorm) config.layers[i].parallel = !weights.layers[i].ffn_norm.present;
  }
  weights.schedule.Add({weights.output.weight}, false, static_cast<int>(config.layers.size()));
  SLUICE_TRY(binder.CheckNothingIsLeft(recipe));
  return weights;
}

}  // namespace

Result<Weights> BindWeights(Config& config, const gguf::GgufFile& file) {
  return Bind(config, file.tensors(), [&file](const gguf::Tensor& tensor, std::span<std::byte> bytes) {
    return file.Read(tensor, 0, bytes);
  });
}

Result<Weights> BindDirectory(Config& config, std::span<const gguf::Tensor> tensors) {
  return Bind(config, tensors, nullptr);
}

}  // namespace sluice::model
