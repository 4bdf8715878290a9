// SynthShape: the dimensions of a model, enough to write a file that loads like the real one. The real
// shapes' numbers are those of the published configurations.
//
// Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"
#include "quantize/mix.h"

namespace sluice::quantize {

enum class VocabularyKind : uint8_t { kByteLevelBpe, kSentencePiece };

struct SpecialToken {
  uint32_t id;
  std::string_view text;
};

struct SynthShape {
  std::string_view name;          // "qwen2.5-32b"
  std::string_view architecture;  // general.architecture: llama, qwen2, qwen3, gemma2 or gemma3
  uint32_t layers;
  uint32_t d_model;
  uint32_t d_ff;
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t context_length;
  float rope_base = 10000;
  float rms_epsilon = 1e-5f;
  float rope_linear_factor = 1;  // positions are divided by it
  bool llama3_rope = false;      // rope_freqs.weight with Llama 3.1's divisors
  bool tied = false;             // no output.weight
  bool qkv_bias = false;
  bool qk_norm = false;
  bool post_norms = false;  // norms behind attention and FFN too
  float attention_softcap = 0;
  float final_softcap = 0;
  uint32_t sliding_window = 0;

  VocabularyKind vocabulary = VocabularyKind::kByteLevelBpe;
  uint32_t vocabulary_size = 512;  // at least 256 more than the special tokens need
  std::string_view pretokenizer = "default";
  uint32_t first_byte = 0;  // id of the token for byte 0 (SentencePiece)
  std::span<const SpecialToken> specials;
  uint32_t bos = 0;
  uint32_t eos = 0;
  bool add_bos = false;
};

std::span<const SynthShape> AllShapes();
// Case-insensitive. Error: kInvalidArgument, listing what there is.
Result<const SynthShape*> FindShape(std::string_view name);

// One tensor of such a model, in the order in which a token needs them.
struct SynthTensor {
  enum class Kind : uint8_t {
    kMatrix,    // random, in the mix's format
    kNorm,      // F32, about 1
    kBias,      // F32, small
    kRopeFreqs  // F32, computed
  };
  std::string name;
  Kind kind;
  uint64_t columns;
  uint64_t rows = 1;
  MatrixPlace place{Role::kOutput};  // of a matrix
};
std::vector<SynthTensor> TensorsOf(const SynthShape& shape);

// Everything that a program needs to know to run the shape, the vocabulary apart (synth_vocabulary.h).
void SetShapeMetadata(const SynthShape& shape, gguf::Metadata& metadata);

// The divisors of rope_freqs.weight, head_dim / 2 of them: Llama 3.1's rule (factor 8 for wavelengths above
// 8192, none below 2048, in between a blend).
std::vector<float> Llama3RopeDivisors(const SynthShape& shape);

}  // namespace sluice::quantize
