#include "quantize/synth_shape.h"

#include <algorithm>
#include <cctype>

#include "base/math.h"

namespace sluice::quantize {
namespace {

constexpr SpecialToken kQwenTokens[] = {
    {151643, "<|endoftext|>"}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}};
constexpr SpecialToken kLlama3Tokens[] = {{128000, "<|begin_of_text|>"},   {128001, "<|end_of_text|>"},
                                          {128006, "<|start_header_id|>"}, {128007, "<|end_header_id|>"},
                                          {128008, "<|eom_id|>"},          {128009, "<|eot_id|>"}};
constexpr SpecialToken kLlama2Tokens[] = {{0, "<unk>"}, {1, "<s>"}, {2, "</s>"}};
constexpr SpecialToken kGemma2Tokens[] = {
    {0, "<pad>"}, {1, "<eos>"}, {2, "<bos>"}, {3, "<unk>"}, {106, "<start_of_turn>"}, {107, "<end_of_turn>"}};
constexpr SpecialToken kGemma3Tokens[] = {
    {0, "<pad>"}, {1, "<eos>"}, {2, "<bos>"}, {3, "<unk>"}, {105, "<start_of_turn>"}, {106, "<end_of_turn>"}};

constexpr SynthShape kShapes[] = {
    {.name = "qwen2.5-32b",
     .architecture = "qwen2",
     .layers = 64,
     .d_model = 5120,
     .d_ff = 27648,
     .n_heads = 40,
     .n_kv_heads = 8,
     .head_dim = 128,
     .context_length = 32768,
     .rope_base = 1e6f,
     .qkv_bias = true,
     .vocabulary_size = 152064,
     .pretokenizer = "qwen2",
     .specials = kQwenTokens,
     .bos = 151643,
     .eos = 151645},
    {.name = "qwen3-32b",
     .architecture = "qwen3",
     .layers = 64,
     .d_model = 5120,
     .d_ff = 25600,
     .n_heads = 64,
     .n_kv_heads = 8,
     .head_dim = 128,
     .context_length = 40960,
     .rope_base = 1e6f,
     .rms_epsilon = 1e-6f,
     .qk_norm = true,
     .vocabulary_size = 151936,
     .pretokenizer = "qwen2",
     .specials = kQwenTokens,
     .bos = 151643,
     .eos = 151645},
    {.name = "llama-3.1-8b",
     .architecture = "llama",
     .layers = 32,
     .d_model = 4096,
     .d_ff = 14336,
     .n_heads = 32,
     .n_kv_heads = 8,
     .head_dim = 128,
     .context_length = 131072,
     .rope_base = 5e5f,
     .llama3_rope = true,
     .vocabulary_size = 128256,
     .pretokenizer = "llama-bpe",
     .specials = kLlama3Tokens,
     .bos = 128000,
     .eos = 128009,
     .add_bos = true},
    {.name = "tinyllama-1.1b",
     .architecture = "llama",
     .layers = 22,
     .d_model = 2048,
     .d_ff = 5632,
     .n_heads = 32,
     .n_kv_heads = 4,
     .head_dim = 64,
     .context_length = 2048,
     .vocabulary = VocabularyKind::kSentencePiece,
     .vocabulary_size = 32000,
     .first_byte = 3,
     .specials = kLlama2Tokens,
     .bos = 1,
     .eos = 2,
     .add_bos = true},
    {.name = "gemma-2-2b",
     .architecture = "gemma2",
     .layers = 26,
     .d_model = 2304,
     .d_ff = 9216,
     .n_heads = 8,
     .n_kv_heads = 4,
     .head_dim = 256,
     .context_length = 8192,
     .rms_epsilon = 1e-6f,
     .tied = true,
     .post_norms = true,
     .attention_softcap = 50,
     .final_softcap = 30,
     .sliding_window = 4096,
     .vocabulary = VocabularyKind::kSentencePiece,
     .vocabulary_size = 256000,
     .first_byte = 217,
     .specials = kGemma2Tokens,
     .bos = 2,
     .eos = 1,
     .add_bos = true},
    {.name = "gemma-3-27b",
     .architecture = "gemma3",
     .layers = 62,
     .d_model = 5376,
     .d_ff = 21504,
     .n_heads = 32,
     .n_kv_heads = 16,
     .head_dim = 128,
     .context_length = 131072,
     .rope_base = 1e6f,
     .rms_epsilon = 1e-6f,
     .rope_linear_factor = 8,
     .tied = true,
     .qk_norm = true,
     .post_norms = true,
     .sliding_window = 1024,
     .vocabulary = VocabularyKind::kSentencePiece,
     .vocabulary_size = 262208,
     .first_byte = 238,
     .specials = kGemma3Tokens,
     .bos = 2,
     .eos = 1,
     .add_bos = true},
};

}  // namespace

std::span<const SynthShape> AllShapes() { return kShapes; }

Result<const SynthShape*> FindShape(std::string_view name) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  std::string names;
  for (const SynthShape& shape : kShapes) {
    if (std::equal(name.begin(), name.end(), shape.name.begin(), shape.name.end(), same)) return &shape;
    if (!names.empty()) names += ' ';
    names += shape.name;
  }
  return Fail(ErrorCode::kInvalidArgument, "unknown shape \"{}\"; there are {}", name, names);
}

std::vector<SynthTensor> TensorsOf(const SynthShape& shape) {
  using Kind = SynthTensor::Kind;
  std::vector<SynthTensor> tensors;
  const uint64_t q = uint64_t{shape.n_heads} * shape.head_dim;
  const uint64_t kv = uint64_t{shape.n_kv_heads} * shape.head_dim;
  uint32_t layer = 0;
  const auto matrix = [&](std::string name, Role role, uint64_t columns, uint64_t rows) {
    const MatrixPlace place{role, layer, shape.layers, shape.n_heads / shape.n_kv_heads, shape.tied, columns};
    tensors.push_back({name + ".weight", Kind::kMatrix, columns, rows, place});
  };
  const auto vector = [&](std::string name, Kind kind, uint64_t size) {
    tensors.push_back({std::move(name), kind, size});
  };

  matrix("token_embd", Role::kTokenEmbedding, shape.d_model, shape.vocabulary_size);
  if (shape.llama3_rope) vector("rope_freqs.weight", Kind::kRopeFreqs, shape.head_dim / 2);
  for (; layer < shape.layers; ++layer) {
    const std::string block = fmt::format("blk.{}.", layer);
    vector(block + "attn_norm.weight", Kind::kNorm, shape.d_model);
    matrix(block + "attn_q", Role::kAttnQ, shape.d_model, q);
    matrix(block + "attn_k", Role::kAttnK, shape.d_model, kv);
    matrix(block + "attn_v", Role::kAttnV, shape.d_model, kv);
    if (shape.qkv_bias) {
      vector(block + "attn_q.bias", Kind::kBias, q);
      vector(block + "attn_k.bias", Kind::kBias, kv);
      vector(block + "attn_v.bias", Kind::kBias, kv);
    }
    if (shape.qk_norm) {
      vector(block + "attn_q_norm.weight", Kind::kNorm, shape.head_dim);
      vector(block + "attn_k_norm.weight", Kind::kNorm, shape.head_dim);
    }
    matrix(block + "attn_output", Role::kAttnOutput, q, shape.d_model);
    if (shape.post_norms) vector(block + "post_attention_norm.weight", Kind::kNorm, shape.d_model);
    vector(block + "ffn_norm.weight", Kind::kNorm, shape.d_model);
    matrix(block + "ffn_gate", Role::kFfnGate, shape.d_model, shape.d_ff);
    matrix(block + "ffn_up", Role::kFfnUp, shape.d_model, shape.d_ff);
    matrix(block + "ffn_down", Role::kFfnDown, shape.d_ff, shape.d_model);
    if (shape.post_norms) vector(block + "post_ffw_norm.weight", Kind::kNorm, shape.d_model);
  }
  vector("output_norm.weight", Kind::kNorm, shape.d_model);
  if (!shape.tied) matrix("output", Role::kOutput, shape.d_model, shape.vocabulary_size);
  return tensors;
}

void SetShapeMetadata(const SynthShape& shape, gguf::Metadata& metadata) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", shape.architecture, name); };
  metadata.SetString("general.architecture", shape.architecture);
  metadata.SetString("general.type", "model");
  metadata.SetU32(key("block_count"), shape.layers);
  metadata.SetU32(key("context_length"), shape.context_length);
  metadata.SetU32(key("embedding_length"), shape.d_model);
  metadata.SetU32(key("feed_forward_length"), shape.d_ff);
  metadata.SetU32(key("attention.head_count"), shape.n_heads);
  metadata.SetU32(key("attention.head_count_kv"), shape.n_kv_heads);
  metadata.SetU32(key("attention.key_length"), shape.head_dim);
  metadata.SetU32(key("attention.value_length"), shape.head_dim);
  metadata.SetU32(key("rope.dimension_count"), shape.head_dim);
  metadata.SetF32(key("rope.freq_base"), shape.rope_base);
  metadata.SetF32(key("attention.layer_norm_rms_epsilon"), shape.rms_epsilon);
  metadata.SetU32(key("vocab_size"), shape.vocabulary_size);
  if (shape.rope_linear_factor != 1) {
    metadata.SetString(key("rope.scaling.type"), "linear");
    metadata.SetF32(key("rope.scaling.factor"), shape.rope_linear_factor);
  }
  if (shape.attention_softcap != 0) metadata.SetF32(key("attn_logit_softcapping"), shape.attention_softcap);
  if (shape.final_softcap != 0) metadata.SetF32(key("final_logit_softcapping"), shape.final_softcap);
  if (shape.sliding_window != 0) metadata.SetU32(key("attention.sliding_window"), shape.sliding_window);
}

std::vector<float> Llama3RopeDivisors(const SynthShape& shape) {
  constexpr double kTwoPi = 6.283185307179586, kContext = 8192, kFactor = 8, kLow = 1, kHigh = 4;
  std::vector<float> divisors(shape.head_dim / 2);
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double wavelength =
        kTwoPi * PowDouble(shape.rope_base, 2.0 * static_cast<double>(i) / shape.head_dim);
    double divisor = 1;
    if (wavelength > kContext / kLow) {
      divisor = kFactor;
    } else if (wavelength > kContext / kHigh) {
      const double blend = (kContext / wavelength - kLow) / (kHigh - kLow);
      divisor = 1 / ((1 - blend) / kFactor + blend);
    }
    divisors[i] = static_cast<float>(divisor);
  }
  return divisors;
}

}  // namespace sluice::quantize
