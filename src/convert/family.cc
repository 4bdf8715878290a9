#include "convert/family.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace sluice::convert {

namespace {

// What most decoders call their tensors since Llama. A family's own names go before.
constexpr NameRule kCommon[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"},
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"},
};

// Norms behind the branches, too (Gemma 2 and 3).
constexpr NameRule kGemma2[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
};

// Norms only behind the branches (OLMo 2, EXAONE 4).
constexpr NameRule kOlmo2[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
};

constexpr NameRule kPhi3[] = {
    {"model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"},
    {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"},
};

constexpr NameRule kPhi[] = {
    {"model.final_layernorm", "output_norm"},
    {"model.layers.{}.self_attn.dense", "blk.{}.attn_output"},
    {"model.layers.{}.mlp.fc1", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.fc2", "blk.{}.ffn_down"},
};

constexpr NameRule kStarcoder2[] = {
    {"model.layers.{}.mlp.c_fc", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.c_proj", "blk.{}.ffn_down"},
};

constexpr NameRule kGpt2[] = {
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"lm_head", "output"},
    {"h.{}.ln_1", "blk.{}.attn_norm"},
    {"h.{}.attn.c_attn", "blk.{}.attn_qkv", Change::kTranspose},
    {"h.{}.attn.c_proj", "blk.{}.attn_output", Change::kTranspose},
    {"h.{}.ln_2", "blk.{}.ffn_norm"},
    {"h.{}.mlp.c_fc", "blk.{}.ffn_up", Change::kTranspose},
    {"h.{}.mlp.c_proj", "blk.{}.ffn_down", Change::kTranspose},
};

// What the early decoders with a matrix for queries, keys and values call theirs.
constexpr NameRule kFalcon[] = {
    {"word_embeddings", "token_embd"},
    {"ln_f", "output_norm"},
    {"h.{}.input_layernorm", "blk.{}.attn_norm"},
    {"h.{}.ln_mlp", "blk.{}.attn_norm"},  // of the larger ones, which have two
    {"h.{}.ln_attn", "blk.{}.attn_norm_2"},
    {"h.{}.self_attention.query_key_value", "blk.{}.attn_qkv", Change::kSortQkv},
    {"h.{}.self_attention.dense", "blk.{}.attn_output"},
    {"h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"},
    {"h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"},
};
constexpr FixedSetting kFalconFixed[] = {{"parallel_attn", true}, {"alibi", false}};

constexpr NameRule kBloom[] = {
    {"word_embeddings", "token_embd"},
    {"word_embeddings_layernorm", "token_embd_norm"},
    {"ln_f", "output_norm"},
    {"h.{}.input_layernorm", "blk.{}.attn_norm"},
    {"h.{}.self_attention.query_key_value", "blk.{}.attn_qkv", Change::kSortQkv},
    {"h.{}.self_attention.dense", "blk.{}.attn_output"},
    {"h.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"},
    {"h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"},
};
constexpr FixedSetting kBloomFixed[] = {{"apply_residual_connection_post_layernorm", false}};

constexpr NameRule kGptNeox[] = {
    {"embed_in", "token_embd"},
    {"final_layer_norm", "output_norm"},
    {"embed_out", "output"},
    {"layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"layers.{}.attention.query_key_value", "blk.{}.attn_qkv", Change::kSortQkv},
    {"layers.{}.attention.dense", "blk.{}.attn_output"},
    {"layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"},
    {"layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"},
};

constexpr NameRule kMpt[] = {
    {"wte", "token_embd"},
    {"norm_f", "output_norm"},
    {"blocks.{}.norm_1", "blk.{}.attn_norm"},
    {"blocks.{}.attn.Wqkv", "blk.{}.attn_qkv"},
    {"blocks.{}.attn.out_proj", "blk.{}.attn_output"},
    {"blocks.{}.norm_2", "blk.{}.ffn_norm"},
    {"blocks.{}.ffn.up_proj", "blk.{}.ffn_up"},
    {"blocks.{}.ffn.down_proj", "blk.{}.ffn_down"},
};

// As GPT-2, but not transposed.
constexpr NameRule kStarcoder[] = {
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"h.{}.ln_1", "blk.{}.attn_norm"},
    {"h.{}.attn.c_attn", "blk.{}.attn_qkv", Change::kSortQkv},
    {"h.{}.attn.c_proj", "blk.{}.attn_output"},
    {"h.{}.ln_2", "blk.{}.ffn_norm"},
    {"h.{}.mlp.c_fc", "blk.{}.ffn_up"},
    {"h.{}.mlp.c_proj", "blk.{}.ffn_down"},
};
constexpr FixedSetting kStarcoderFixed[] = {{"scale_attn_weights", true}};

constexpr NameRule kInternlm2[] = {
    {"model.tok_embeddings", "token_embd"},
    {"output", "output"},
    {"model.layers.{}.attention_norm", "blk.{}.attn_norm"},
    {"model.layers.{}.attention.wqkv", "blk.{}.attn_qkv", Change::kSplitQkv},
    {"model.layers.{}.attention.wo", "blk.{}.attn_output"},
    {"model.layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {"model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate"},
    {"model.layers.{}.feed_forward.w3", "blk.{}.ffn_up"},
    {"model.layers.{}.feed_forward.w2", "blk.{}.ffn_down"},
};

constexpr NameRule kGlm4[] = {
    {"model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"},
    {"model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"},
};

constexpr NameRule kApertus[] = {
    {"model.layers.{}.attention_layernorm", "blk.{}.attn_norm"},
    {"model.layers.{}.feedforward_layernorm", "blk.{}.ffn_norm"},
};
// The later ones call their norms as GGUF does.
constexpr NameRule kBitnet[] = {
    {"model.layers.{}.self_attn.inner_attn_ln", "blk.{}.attn_sub_norm"},
    {"model.layers.{}.self_attn.attn_sub_norm", "blk.{}.attn_sub_norm"},
    {"model.layers.{}.mlp.ffn_layernorm", "blk.{}.ffn_sub_norm"},
    {"model.layers.{}.mlp.ffn_sub_norm", "blk.{}.ffn_sub_norm"},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", Change::kMakeTernary},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", Change::kMakeTernary},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", Change::kMakeTernary},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output", Change::kMakeTernary},
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate", Change::kMakeTernary},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", Change::kMakeTernary},
    {"model.layers.{}.mlp.down_proj", "blk.{}.ffn_down", Change::kMakeTernary},
};

constexpr NumberRule kApertusNumbers[] = {
    {"model.layers.{}.mlp.act_fn.alpha_n", "xielu.alpha_n"},
    {"model.layers.{}.mlp.act_fn.alpha_p", "xielu.alpha_p"},
    {"model.layers.{}.mlp.act_fn.beta", "xielu.beta"},
    {"model.layers.{}.mlp.act_fn.eps", "xielu.eps"},
};

constexpr Family kFamilies[] = {
    {.model_type = "llama", .architecture = "llama", .pairs_heads = true},
    {.model_type = "mistral", .architecture = "llama", .pairs_heads = true},
    {.model_type = "qwen2", .architecture = "qwen2"},
    {.model_type = "qwen3", .architecture = "qwen3"},
    {.model_type = "gemma", .architecture = "gemma", .norms_add_one = true, .tied_by_default = true},
    {.model_type = "gemma2",
     .architecture = "gemma2",
     .names = kGemma2,
     .norms_add_one = true,
     .tied_by_default = true,
     .slides = true,
     .window = 4096},
    {.model_type = "gemma3_text",
     .architecture = "gemma3",
     .names = kGemma2,
     .norms_add_one = true,
     .tied_by_default = true,
     .slides = true,
     .window = 4096},
    {.model_type = "phi3", .architecture = "phi3", .names = kPhi3},
    {.model_type = "phi", .architecture = "phi2", .names = kPhi},
    {.model_type = "smollm3", .architecture = "smollm3", .pairs_heads = true},
    {.model_type = "granite", .architecture = "granite", .pairs_heads = true},
    {.model_type = "arcee", .architecture = "arcee", .pairs_heads = true},
    {.model_type = "olmo2", .architecture = "olmo2", .names = kOlmo2},
    {.model_type = "cohere", .architecture = "command-r", .tied_by_default = true},
    {.model_type = "cohere2", .architecture = "cohere2", .tied_by_default = true, .slides = true},
    {.model_type = "stablelm", .architecture = "stablelm"},
    {.model_type = "nemotron", .architecture = "nemotron", .norms_add_one = true},
    {.model_type = "starcoder2", .architecture = "starcoder2", .names = kStarcoder2, .tied_by_default = true},
    {.model_type = "gpt2", .architecture = "gpt2", .names = kGpt2, .tied_by_default = true},
    {.model_type = "gpt_bigcode",
     .architecture = "starcoder",
     .names = kStarcoder,
     .fixed = kStarcoderFixed,
     .tied_by_default = true,
     .multi_query = true},
    {.model_type = "gpt_neox", .architecture = "gptneox", .names = kGptNeox},
    {.model_type = "falcon",
     .architecture = "falcon",
     .names = kFalcon,
     .fixed = kFalconFixed,
     .tied_by_default = true,
     .multi_query = true,
     .context = 2048},
    {.model_type = "bloom",
     .architecture = "bloom",
     .names = kBloom,
     .fixed = kBloomFixed,
     .tied_by_default = true,
     .context = 2048},
    {.model_type = "mpt", .architecture = "mpt", .names = kMpt, .tied_by_default = true, .norm_eps = 1e-5},
    {.model_type = "olmo", .architecture = "olmo", .pairs_heads = true, .norm_eps = 1e-5},
    {.model_type = "internlm2", .architecture = "internlm2", .names = kInternlm2, .pairs_heads = true},
    {.model_type = "minicpm", .architecture = "minicpm", .pairs_heads = true, .tied_by_default = true},
    {.model_type = "ministral3", .architecture = "mistral3", .pairs_heads = true},
    {.model_type = "glm4", .architecture = "glm4", .names = kGlm4},
    {.model_type = "ernie4_5", .architecture = "ernie4_5", .tied_by_default = true},
    {.model_type = "exaone4", .architecture = "exaone4", .names = kOlmo2, .slides = true},
    {.model_type = "apertus", .architecture = "apertus", .names = kApertus, .numbers = kApertusNumbers},
    {.model_type = "bitnet", .architecture = "bitnet", .names = kBitnet},
};

// Matches `name` with a pattern that has at most one {}, which stands for a layer's number; `number` takes
// it.
bool Matches(std::string_view pattern, std::string_view name, std::string_view* number) {
  const size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, hole), after = pattern.substr(hole + 2);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return false;
  *number = name.substr(before.size(), name.size() - before.size() - after.size());
  return number->size() <= 6 && std::ranges::all_of(*number, [](char c) { return c >= '0' && c <= '9'; }) &&
         (*number == "0" || number->front() != '0');
}

std::string Filled(std::string_view pattern, std::string_view number) {
  const size_t hole = pattern.find("{}");
  std::string name(pattern.substr(0, hole));
  if (hole != std::string_view::npos) name.append(number).append(pattern.substr(hole + 2));
  return name;
}

Change ChangeOf(const Family& family, const NameRule& rule, std::string_view kind) {
  if (family.norms_add_one && rule.ours.ends_with("norm") && kind == ".weight") return Change::kAddOne;
  if (family.pairs_heads && rule.ours.ends_with(".attn_q")) return Change::kPairQueries;
  if (family.pairs_heads && rule.ours.ends_with(".attn_k")) return Change::kPairKeys;
  // A bias is no matrix.
  return rule.change == Change::kTranspose && kind == ".bias" ? Change::kNone : rule.change;
}

// Some checkpoints were saved from within a wrapper.
std::string Unwrapped(std::string_view name) {
  // "model.language_model.layers…" has the wrapper inside.
  if (constexpr std::string_view kInside = "model.language_model."; name.starts_with(kInside))
    return "model." + std::string(name.substr(kInside.size()));
  for (const std::string_view wrapper : {"language_model.", "transformer.", "gpt_neox."}) {
    if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
  }
  return std::string(name);
}

// "blk.0.attn_qkv" → blk.0.attn_q, blk.0.attn_k, blk.0.attn_v
std::vector<Place> SplitQkv(const std::string& ours, std::string_view kind) {
  const std::string stem = ours.substr(0, ours.size() - std::string_view("qkv").size());
  const auto part = [&](char letter) { return stem + letter + std::string(kind); };
  return {
      {part('q'), Change::kTakeQueries}, {part('k'), Change::kTakeKeys}, {part('v'), Change::kTakeValues}};
}

}  // namespace

std::span<const NameRule> CommonNames() { return kCommon; }

std::span<const Family> AllFamilies() { return kFamilies; }

const Family* FindFamily(std::string_view model_type) {
  const auto found = std::ranges::find(kFamilies, model_type, &Family::model_type);
  return found == std::end(kFamilies) ? nullptr : &*found;
}

std::vector<Place> PlacesOf(const Family& family, std::string_view whole_name) {
  const std::string unwrapped = Unwrapped(whole_name);
  const std::string_view name = unwrapped;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view stem = name.substr(0, dot), kind = name.substr(dot);
  if (kind != ".weight" && kind != ".bias") return {};
  for (const std::span<const NameRule> rules : {family.names, CommonNames()}) {
    for (const NameRule& rule : rules) {
      std::string_view number;
      if (!Matches(rule.theirs, stem, &number)) continue;
      const std::string ours = Filled(rule.ours, number);
      const Change change = ChangeOf(family, rule, kind);
      if (change == Change::kSplitQkv) return SplitQkv(ours, kind);
      return {{ours + std::string(kind), change}};
    }
  }
  return {};
}

std::optional<NumberPlace> NumberPlaceOf(const Family& family, std::string_view name) {
  for (const NumberRule& rule : family.numbers) {
    std::string_view number;
    if (!Matches(rule.theirs, name, &number)) continue;
    size_t layer = 0;
    std::from_chars(number.data(), number.data() + number.size(), layer);
    return NumberPlace{rule.key, layer};
  }
  return std::nullopt;
}

bool IsOfAnotherPart(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(std::string_view("model.").size());
  return name.starts_with("vision_tower.") || name.starts_with("vision_model.") ||
         name.starts_with("multi_modal_projector.") || name.starts_with("audio_tower.");
}

bool IsComputed(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias") || name.ends_with(".attention.bias") ||
         name.ends_with(".attention.masked_bias");
}

}  // namespace sluice::convert
