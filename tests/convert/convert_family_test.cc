// A checkpoint of each family, made from a reference model's GGUF, converts to that model.
#include "convert/convert_fixture.h"
#include "convert/family.h"
#include "convert/row_order.h"

namespace sluice::convert {
namespace {

// A reference model, the type of checkpoint that it is made from, and what that type's config.json has of its
// own.
struct Reference {
  const char* file;
  const char* model_type;
  const char* config = "{}";
};
constexpr Reference kReferences[] = {
    {"llama", "llama"},
    {"llama-tied", "llama"},
    {"llama-linear", "llama"},
    {"llama-yarn", "llama"},
    {"llama-bias", "llama"},
    {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"},
    {"phi3", "phi3"},
    {"smollm3", "smollm3"},
    {"granite", "granite"},
    {"olmo2", "olmo2"},
    {"command-r", "cohere"},
    {"cohere2", "cohere2"},
    {"stablelm", "stablelm"},
    {"nemotron", "nemotron"},
    {"starcoder2", "starcoder2"},
    {"gpt2", "gpt2"},
    {"starcoder", "gpt_bigcode", R"({"multi_query": true})"},
    {"gptneox-par", "gpt_neox"},
    {"falcon", "falcon", R"({"multi_query": true, "num_kv_heads": 4})"},
    {"falcon-40", "falcon", R"({"new_decoder_architecture": true})"},
    {"bloom", "bloom"},
    {"mpt", "mpt", R"({"attn_config": {"alibi": true, "alibi_bias_max": 8}})"},
    {"olmo", "olmo", R"({"clip_qkv": 3.0})"},
    {"internlm2", "internlm2"},
    {"minicpm", "minicpm", R"({"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16})"},
    {"mistral3", "ministral3",
     R"({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 8.0,
       "original_max_position_embeddings": 64, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
       "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}})"},
    {"glm4", "glm4"},
    {"ernie4_5", "ernie4_5"},
    {"exaone4", "exaone4"},
    {"apertus", "apertus"}};

// Keys that some types call by other names; an empty one is left out.
struct Renamed {
  std::string_view model_type, from, to;
};
constexpr Renamed kRenamed[] = {{"gpt_neox", "partial_rotary_factor", "rotary_pct"},
                                {"gpt_neox", "rope_theta", "rotary_emb_base"},
                                {"gpt_bigcode", "hidden_size", "n_embd"},
                                {"gpt_bigcode", "num_hidden_layers", "n_layer"},
                                {"gpt_bigcode", "num_attention_heads", "n_head"},
                                {"gpt_bigcode", "num_key_value_heads", ""},
                                {"gpt_bigcode", "max_position_embeddings", "n_positions"},
                                {"gpt_bigcode", "intermediate_size", "n_inner"},
                                {"gpt_bigcode", "layer_norm_eps", "layer_norm_epsilon"},
                                {"falcon", "num_key_value_heads", "num_kv_heads"},
                                {"falcon", "intermediate_size", "ffn_hidden_size"},
                                {"falcon", "layer_norm_eps", "layer_norm_epsilon"},
                                {"bloom", "num_attention_heads", "n_head"},
                                {"bloom", "num_hidden_layers", "n_layer"},
                                {"bloom", "max_position_embeddings", "seq_length"},
                                {"bloom", "layer_norm_eps", "layer_norm_epsilon"},
                                {"mpt", "hidden_size", "d_model"},
                                {"mpt", "num_hidden_layers", "n_layers"},
                                {"mpt", "num_attention_heads", "n_heads"},
                                {"mpt", "max_position_embeddings", "max_seq_len"},
                                {"mpt", "layer_norm_eps", ""},
                                {"olmo", "layer_norm_eps", ""},
                                {"minicpm", "embedding_multiplier", ""},
                                {"minicpm", "residual_multiplier", ""},
                                {"minicpm", "logit_scale", ""},
                                {"ministral3", "rope_scaling", ""}};

class ConvertFamilyTest : public ConvertTest, public testing::WithParamInterface<Reference> {};

// A tensor of a checkpoint that one of the file's tensors is made of, and what is done to it.
struct Theirs {
  std::string name;
  Change change = Change::kNone;
};
Theirs TheirsOf(const Family& family, const std::string& ours) {
  const size_t dot = ours.rfind('.');
  std::string number;
  if (ours.starts_with("blk.")) number = ours.substr(4, ours.find('.', 4) - 4);
  for (const std::span<const NameRule> rules : {family.names, CommonNames()}) {
    for (const NameRule& rule : rules) {
      std::string theirs(rule.theirs);
      if (const size_t hole = theirs.find("{}"); hole != std::string::npos) theirs.replace(hole, 2, number);
      theirs += ours.substr(dot);
      for (const Place& place : PlacesOf(family, theirs)) {
        if (place.name == ours) return {theirs, place.change};
      }
    }
  }
  return {};
}

// The row of the checkpoint's matrix that is row `row` of the file's; checkpoints keep the heads of a group
// (the queries of one key, the key, its value) together, and rope's pairs half a head apart.
uint64_t TheirRow(Change change, const Heads& heads, uint64_t row) {
  const uint64_t width = heads.width, shared = heads.queries / heads.keys, group = (shared + 2) * width;
  const uint64_t head = row / width, within = row % width;
  const uint64_t apart = within / 2 + within % 2 * (width / 2);
  const uint64_t query = head / shared * group + head % shared * width;
  switch (change) {
    case Change::kPairQueries:
    case Change::kPairKeys:
      return head * width + apart;
    case Change::kTakeQueries:
      return query + apart;
    case Change::kTakeKeys:
      return head * group + shared * width + apart;
    case Change::kTakeValues:
      return head * group + (shared + 1) * width + within;
    case Change::kSortQkv: {
      if (head < heads.queries) return query + within;
      const bool is_key = head < heads.queries + heads.keys;
      const uint64_t at = head - heads.queries - (is_key ? 0 : heads.keys);
      return at * group + (shared + (is_key ? 0 : 1)) * width + within;
    }
    default:
      return row;
  }
}

// A checkpoint in the making.
struct TheirTensor {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};
using TheirTensors = std::map<std::string, TheirTensor>;

// Undoes what conversion does.
void Add(const gguf::Tensor& tensor, const std::vector<float>& ours, const Theirs& theirs, const Heads& heads,
         TheirTensors& checkpoint) {
  const bool vector = tensor.n_dims == 1;
  const uint64_t rows = vector ? tensor.columns() : tensor.rows(), columns = vector ? 1 : tensor.columns();
  TheirTensor& made = checkpoint[theirs.name];
  const bool part = theirs.change == Change::kTakeQueries || theirs.change == Change::kTakeKeys ||
                    theirs.change == Change::kTakeValues;
  const uint64_t their_rows = part ? (heads.queries + 2 * heads.keys) * heads.width : rows;
  made.values.resize(their_rows * columns);
  made.shape = vector ? std::vector{their_rows} : std::vector{their_rows, columns};
  if (theirs.change == Change::kTranspose) std::swap(made.shape[0], made.shape[1]);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t column = 0; column < columns; ++column) {
      const uint64_t at = theirs.change == Change::kTranspose
                              ? column * rows + row
                              : TheirRow(theirs.change, heads, row) * columns + column;
      made.values[at] = ours[row * columns + column] - (theirs.change == Change::kAddOne ? 1.0f : 0.0f);
    }
  }
}

// Made from config.json, where the reference's are any numbers.
bool IsOfConfig(const gguf::Tensor& tensor) { return tensor.name == "rope_freqs.weight"; }

// Arrays of the metadata as tensors of one number each.
void AddNumbers(const Family& family, const gguf::Metadata& metadata, TheirTensors& checkpoint) {
  for (const NumberRule& rule : family.numbers) {
    const auto values = metadata.GetFloats(rule.key);
    ASSERT_TRUE(values) << rule.key;
    for (size_t layer = 0; layer < values->size(); ++layer) {
      std::string name(rule.theirs);
      name.replace(name.find("{}"), 2, std::to_string(layer));
      checkpoint[name] = {{1}, {(*values)[layer]}};
    }
  }
}

void Rename(const Reference& reference, nlohmann::json& config) {
  for (const Renamed& renamed : kRenamed) {
    const std::string from(renamed.from);
    if (renamed.model_type != reference.model_type || !config.contains(from)) continue;
    if (!renamed.to.empty()) config[std::string(renamed.to)] = config[from];
    config.erase(from);
  }
  // MPT says how much wider a layer becomes.
  if (reference.model_type == std::string_view("mpt")) {
    config["expansion_ratio"] = config["intermediate_size"].get<double>() / config["d_model"].get<double>();
    config.erase("intermediate_size");
  }
  config.update(nlohmann::json::parse(reference.config));
}

// config.json as the file's keys have it.
nlohmann::json ConfigOf(const gguf::Metadata& metadata, const char* model_type) {
  const std::string architecture(*metadata.GetString("general.architecture"));
  nlohmann::json config{{"model_type", model_type}};
  const auto integer = [&](const char* ours, const char* theirs) {
    if (const auto value = metadata.GetU32(architecture + "." + ours)) config[theirs] = *value;
  };
  const auto number = [&](const char* ours, const char* theirs) {
    if (const auto value = metadata.GetF32(architecture + "." + ours)) config[theirs] = *value;
  };
  integer("embedding_length", "hidden_size");
  integer("block_count", "num_hidden_layers");
  integer("feed_forward_length", "intermediate_size");
  integer("attention.head_count", "num_attention_heads");
  integer("attention.head_count_kv", "num_key_value_heads");
  integer("attention.key_length", "head_dim");
  integer("context_length", "max_position_embeddings");
  integer("attention.sliding_window", "sliding_window");
  integer("rope.scaling.original_context_length", "original_max_position_embeddings");
  number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  number("attention.layer_norm_epsilon", "layer_norm_eps");
  number("rope.freq_base", "rope_theta");
  number("attn_logit_softcapping", "attn_logit_softcapping");
  number("final_logit_softcapping", "final_logit_softcapping");
  number("embedding_scale", "embedding_multiplier");
  number("residual_scale", "residual_multiplier");
  number("attention.scale", "attention_multiplier");
  number("logit_scale", "logit_scale");
  if (const auto turned = metadata.GetU32(architecture + ".rope.dimension_count")) {
    const uint32_t head_dim = config.contains("head_dim") ? config["head_dim"].get<uint32_t>()
                                                          : config["hidden_size"].get<uint32_t>() /
                                                                config["num_attention_heads"].get<uint32_t>();
    if (*turned != head_dim) config["partial_rotary_factor"] = static_cast<double>(*turned) / head_dim;
  }
  if (const auto type = metadata.GetString(architecture + ".rope.scaling.type"))
    config["rope_scaling"] = {{"rope_type", *type},
                              {"factor", *metadata.GetF32(architecture + ".rope.scaling.factor")}};
  if (const auto parallel = metadata.GetBool(architecture + ".use_parallel_residual"))
    config["use_parallel_residual"] = *parallel;
  return config;
}

TEST_P(ConvertFamilyTest, GivesTheReferenceModel) {
  const fs::path path =
      fs::path(SLUICE_REFERENCE_DIR) / "oracle" / "models" / (std::string(GetParam().file) + ".gguf");
  if (!fs::exists(path)) GTEST_SKIP() << "there is no " << path;
  const auto reference = gguf::GgufFile::Open(path);
  ASSERT_TRUE(reference);
  const Family& family = *FindFamily(GetParam().model_type);
  nlohmann::json config = ConfigOf(reference->metadata(), GetParam().model_type);
  Heads heads{.queries = config["num_attention_heads"]};
  heads.keys = config.value("num_key_value_heads", heads.queries);
  heads.width = config.contains("head_dim") ? config["head_dim"].get<uint64_t>()
                                            : config["hidden_size"].get<uint64_t>() / heads.queries;
  TheirTensors checkpoint;
  bool has_output = false;
  for (const gguf::Tensor& tensor : reference->tensors()) {
    if (IsOfConfig(tensor)) continue;
    const Theirs theirs = TheirsOf(family, std::string(tensor.name));
    ASSERT_NE(theirs.name, "") << tensor.name;
    has_output |= tensor.name == "output.weight";
    Add(tensor, ValuesOf(*reference, tensor), theirs, heads, checkpoint);
  }
  AddNumbers(family, reference->metadata(), checkpoint);
  SafetensorsBuilder builder;
  for (const auto& [name, tensor] : checkpoint) builder.AddF32(name, tensor.shape, tensor.values);
  config["tie_word_embeddings"] = !has_output;
  Rename(GetParam(), config);
  folder_.Write("in/model.safetensors", builder.Build());
  folder_.Write("in/config.json", config.dump());
  folder_.Write("in/tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");

  const auto report = Convert(folder_ / "in");
  ASSERT_TRUE(report) << report.error().message;
  const gguf::GgufFile made = Opened();
  ASSERT_EQ(made.tensors().size(),
            reference->tensors().size() - std::ranges::count_if(reference->tensors(), IsOfConfig));
  for (const gguf::Tensor& tensor : reference->tensors()) {
    if (IsOfConfig(tensor)) continue;
    const auto found = std::ranges::find(made.tensors(), tensor.name, &gguf::Tensor::name);
    ASSERT_NE(found, made.tensors().end()) << tensor.name;
    EXPECT_EQ(ValuesOf(made, *found), ValuesOf(*reference, tensor)) << tensor.name;
  }
  for (const gguf::Entry& entry : reference->metadata().entries()) {
    if (entry.key.starts_with("tokenizer.") || entry.key.starts_with("general.")) continue;
    const gguf::Entry* found = made.metadata().Find(entry.key);
    ASSERT_NE(found, nullptr) << entry.key;
    if (entry.type == gguf::ValueType::kF32) {
      EXPECT_FLOAT_EQ(*made.metadata().GetF32(entry.key), *reference->metadata().GetF32(entry.key))
          << entry.key;
    } else {
      EXPECT_TRUE(std::ranges::equal(found->payload, entry.payload)) << entry.key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(References, ConvertFamilyTest, testing::ValuesIn(kReferences), [](const auto& test) {
  std::string name = test.param.file;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace sluice::convert
