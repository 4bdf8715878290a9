// Recipe: what makes one transformer family differ from another, as data.
//
// A family is one row of the table in recipes.cc: its GGUF architecture name and how its blocks are put together. The
// sizes come from the file (config.h); the weights are found by the names that GGUF fixes (weights.h); one forward
// pass (forward.h) reads the row. A genuinely new kind of block is a new layer type, not a new flag here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::model {

enum class Norm : uint8_t { kRms, kLayer };
enum class RopeStyle : uint8_t { kNone, kInterleaved, kHalf };
enum class Activation : uint8_t { kSilu, kGeluTanh, kReluSquared, kXielu };

// Whether a tensor belongs to a family: kOptional ones are used when the file has them.
enum class Presence : uint8_t { kAbsent, kOptional, kRequired };

// Where attention and feed-forward stand to one another.
enum class Residual : uint8_t {
  kSequential,         // h += attention(norm(h)); h += ffn(norm(h))
  kParallel,           // h += attention(x) + ffn(x), both from the first norm (or the second, where there is one)
  kParallelByKey,      // as the key use_parallel_residual says (gptneox)
  kParallelIfOneNorm,  // parallel in layers that have no ffn_norm (stablelm)
};

// Normalisation of queries and keys before rope.
enum class QkNorm : uint8_t { kNone, kHead, kRow };  // over each head, or over all heads at once

// Which layers see only a sliding window (the width is in the file).
enum class Window : uint8_t {
  kNone,
  kAllButEveryNth,     // layer i slides when i % period < period − 1
  kExaone4,            // as above, but only in the 64-layer model
};

// Which layers turn their queries and keys.
enum class RopeLayers : uint8_t {
  kAll,
  kSkipEveryNth,     // not layer i when (i + 1) % rope_period == 0 (smollm3)
  kSlidingOnly,      // only layers with a window, where the model has such layers (cohere2, exaone4)
};

// Which angles the sliding layers use.
enum class SlidingRope : uint8_t {
  kSame,
  kUnscaled,       // the same base, without the file's scaling (olmo2)
  kBase10000,      // base 10000 unless the file says otherwise, without scaling (gemma3)
};

struct Recipe {
  std::string_view architecture;  // general.architecture
  Norm norm = Norm::kRms;
  RopeStyle rope = RopeStyle::kInterleaved;
  Activation activation = Activation::kSilu;
  bool gated = true;              // a gate beside the up projection; fused into ffn_up when it has twice the rows
  Residual residual = Residual::kSequential;

  // Norms around the two branches. Their weights; a norm bias is optional in kLayer families.
  Presence attn_norm = Presence::kRequired;
  Presence ffn_norm = Presence::kRequired;
  Presence post_attn_norm = Presence::kAbsent;  // on the branch's output, before it joins the residual
  Presence post_ffn_norm = Presence::kAbsent;
  bool norms_have_weights = true;               // olmo normalises without any
  bool second_attn_norm = false;                // falcon 40B: attn_norm_2 feeds attention, attn_norm feeds the ffn
  bool sub_norms = false;                       // bitnet: norms before the two output projections
  bool embedding_norm = false;                  // bloom: token_embd_norm
  bool output_norm_bias = true;                 // optional in kLayer families

  QkNorm qk_norm = QkNorm::kNone;
  Presence qk_norm_presence = Presence::kAbsent;

  Presence output = Presence::kOptional;        // output.weight; absent from the file = tied to the embeddings
  bool position_embedding = false;              // gpt2: learned positions
  bool alibi = false;

  RopeLayers rope_layers = RopeLayers::kAll;
  int rope_period = 0;
  Window window = Window::kNone;
  int window_period = 0;
  SlidingRope sliding_rope = SlidingRope::kSame;

  bool scale_embeddings_by_sqrt_width = false;  // gemma
  bool logits_divided_by_scale = false;         // granite, minicpm: logit_scale divides; elsewhere it multiplies
  // gemma: the layer count of the one size whose attention scale is 1/√(d_model / n_heads); 0 = none.
  int64_t attention_scale_by_width_at_layers = 0;
};

// Null when this build knows no such family.
const Recipe* FindRecipe(std::string_view architecture);
std::span<const Recipe> AllRecipes();

}  // namespace sluice::model
