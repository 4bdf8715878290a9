// Whole conversions: the bundled model, and a checkpoint of each family made from a reference model's GGUF.
#include "convert/convert.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/half.h"
#include "convert/family.h"
#include "convert/safetensors_builder.h"
#include "formats/decode.h"
#include "gguf/reader.h"
#include "platform/file.h"
#include "platform/temp_folder.h"

namespace sluice::convert {
namespace {

namespace fs = std::filesystem;
using formats::DType;
using testing::HasSubstr;

const fs::path kBundled = fs::path(SLUICE_SOURCE_DIR) / "models" / "sluice-demo-hf";

std::vector<float> ValuesOf(const gguf::GgufFile& file, const gguf::Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.size_bytes);
  EXPECT_TRUE(file.Read(tensor, 0, bytes));
  std::vector<float> values(tensor.elements());
  for (uint64_t row = 0; row < tensor.rows(); ++row) {
    formats::DecodeRow(tensor.traits->dtype,
                       bytes.data() + row * formats::RowBytes(tensor.traits->dtype, tensor.columns()),
                       std::span(values).subspan(row * tensor.columns(), tensor.columns()));
  }
  return values;
}

class ConvertTest : public testing::Test {
 protected:
  Result<ConvertReport> Convert(const std::string& from, const ConvertOptions& options = {}) {
    return ConvertFolder(from, folder_ / "out.gguf", options, pool_);
  }
  std::string ErrorOf(const std::string& from, const ConvertOptions& options = {}) {
    const auto report = Convert(from, options);
    EXPECT_FALSE(fs::exists(folder_ / "out.gguf"));
    return report ? "converted" : report.error().message;
  }
  gguf::GgufFile Opened() {
    auto file = gguf::GgufFile::Open(folder_ / "out.gguf");
    EXPECT_TRUE(file) << file.error().message;
    return *std::move(file);
  }
  // The bundled folder with another config.json or other weights.
  std::string Copy(const std::string& name) {
    const std::string to = folder_ / name;
    fs::copy(kBundled, to, fs::copy_options::recursive);
    return to;
  }

  TempFolder folder_;
  parallel::ThreadPool pool_{2};
};

TEST_F(ConvertTest, TheBundledFolderIsTheBundledFile) {
  const auto report = Convert(kBundled);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->architecture, "llama");
  const gguf::GgufFile made = Opened();
  const auto bundled = gguf::GgufFile::Open((kBundled.parent_path() / "sluice-demo-f16.gguf").string());
  ASSERT_TRUE(bundled);
  ASSERT_EQ(made.tensors().size(), bundled->tensors().size());
  for (const gguf::Tensor& tensor : bundled->tensors()) {
    const auto found = std::ranges::find(made.tensors(), tensor.name, &gguf::Tensor::name);
    ASSERT_NE(found, made.tensors().end()) << tensor.name;
    EXPECT_EQ(found->traits, tensor.traits) << tensor.name;
    EXPECT_EQ(ValuesOf(made, *found), ValuesOf(*bundled, tensor)) << tensor.name;
  }
  for (const gguf::Entry& entry : bundled->metadata().entries()) {
    const std::string key(entry.key);
    const bool ours_alone = key.starts_with("general.") || key.ends_with(".key_length") ||
                            key.ends_with(".value_length") || key.ends_with(".eot_token_id");
    const gguf::Entry* found = made.metadata().Find(key);
    if (ours_alone && found == nullptr) continue;
    ASSERT_NE(found, nullptr) << key;
    if (key == "general.name") continue;
    EXPECT_TRUE(std::ranges::equal(found->payload, entry.payload)) << key;
  }
}

TEST_F(ConvertTest, EveryType) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    const auto report = Convert(kBundled, {.type = type});
    ASSERT_TRUE(report) << report.error().message;
    const gguf::GgufFile made = Opened();
    for (const gguf::Tensor& tensor : made.tensors())
      EXPECT_EQ(tensor.traits->dtype, tensor.n_dims == 1 ? DType::kF32 : type) << tensor.name;
  }
}

TEST_F(ConvertTest, TensorsLieInTheOrderOfAPass) {
  ASSERT_TRUE(Convert(kBundled));
  const gguf::GgufFile made = Opened();
  std::vector<std::string_view> names;
  for (const gguf::Tensor& tensor : made.tensors()) names.push_back(tensor.name);
  EXPECT_EQ(names.front(), "token_embd.weight");
  EXPECT_EQ(names.back(), "output_norm.weight");
  const auto at = [&](std::string_view name) { return std::ranges::find(names, name) - names.begin(); };
  EXPECT_LT(at("blk.0.attn_q.weight"), at("blk.0.attn_output.weight"));
  EXPECT_LT(at("blk.0.ffn_gate.weight"), at("blk.0.ffn_down.weight"));
  EXPECT_LT(at("blk.0.ffn_down.weight"), at("blk.1.attn_norm.weight"));
}

// A checkpoint of one layer whose numbers the test sets.
class OneLayer {
 public:
  OneLayer() {
    for (const auto& [name, rows, columns] : kMatrices) Set(name, rows, columns, 0.5f);
    for (const char* name : {"model.norm.weight", "model.layers.0.input_layernorm.weight",
                             "model.layers.0.post_attention_layernorm.weight"})
      Set(name, 0, 32, 1.0f);
  }
  // rows 0: a vector.
  void Set(const std::string& name, uint64_t rows, uint64_t columns, float value) {
    tensors_[name] = {rows == 0 ? std::vector{columns} : std::vector{rows, columns},
                      std::vector<float>(std::max<uint64_t>(rows, 1) * columns, value)};
  }
  std::vector<float>& values(const std::string& name) { return tensors_[name].second; }
  void Drop(const std::string& name) { tensors_.erase(name); }

  std::string Write(const TempFolder& folder, bool bf16 = false) const {
    SafetensorsBuilder builder;
    for (const auto& [name, tensor] : tensors_) {
      if (!bf16) {
        builder.AddF32(name, tensor.first, tensor.second);
        continue;
      }
      std::string bytes;
      for (const float value : tensor.second) {
        const uint16_t half = F32ToBf16(value);
        bytes.append(reinterpret_cast<const char*>(&half), sizeof(half));
      }
      builder.Add(name, "BF16", tensor.first, bytes);
    }
    folder.Write("in/model.safetensors", builder.Build());
    folder.Write("in/config.json", R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 1,
        "intermediate_size": 64, "num_attention_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5})");
    folder.Write("in/tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE",
        "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3}, "merges": ["a b"]}})");
    return folder / "in";
  }

 private:
  static constexpr std::tuple<const char*, uint64_t, uint64_t> kMatrices[] = {
      {"model.embed_tokens.weight", 4, 32},
      {"lm_head.weight", 4, 32},
      {"model.layers.0.self_attn.q_proj.weight", 32, 32},
      {"model.layers.0.self_attn.k_proj.weight", 32, 32},
      {"model.layers.0.self_attn.v_proj.weight", 32, 32},
      {"model.layers.0.self_attn.o_proj.weight", 32, 32},
      {"model.layers.0.mlp.gate_proj.weight", 64, 32},
      {"model.layers.0.mlp.up_proj.weight", 64, 32},
      {"model.layers.0.mlp.down_proj.weight", 32, 64}};
  std::map<std::string, std::pair<std::vector<uint64_t>, std::vector<float>>> tensors_;
};

TEST_F(ConvertTest, NumbersBeyondF16KeepTheirRange) {
  OneLayer layer;
  layer.values("model.layers.0.mlp.up_proj.weight")[5] = 1e5f;
  layer.values("model.layers.0.mlp.down_proj.weight")[5] = 65280.0f;
  const auto report = Convert(layer.Write(folder_, true), {.type = DType::kF16});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->warnings, testing::ElementsAre(HasSubstr("1 tensors hold numbers beyond F16")));
  const gguf::GgufFile made = Opened();
  for (const gguf::Tensor& tensor : made.tensors()) {
    if (tensor.n_dims == 1) continue;
    EXPECT_EQ(tensor.traits->dtype, tensor.name == "blk.0.ffn_up.weight" ? DType::kBF16 : DType::kF16)
        << tensor.name;
    for (const float value : ValuesOf(made, tensor)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST_F(ConvertTest, Bf16IsCopiedExactly) {
  OneLayer layer;
  std::vector<float>& values = layer.values("model.layers.0.mlp.up_proj.weight");
  const float special[] = {65520.0f, 3e38f, 1e-40f, -0.0f, 1.0f / 3};
  for (size_t i = 0; i < std::size(special); ++i) values[i] = Bf16ToF32(F32ToBf16(special[i]));
  ASSERT_TRUE(Convert(layer.Write(folder_, true)));
  const gguf::GgufFile made = Opened();
  const auto found = std::ranges::find(made.tensors(), "blk.0.ffn_up.weight", &gguf::Tensor::name);
  EXPECT_EQ(found->traits->dtype, DType::kBF16);
  const std::vector<float> read = ValuesOf(made, *found);
  EXPECT_EQ(0, std::memcmp(read.data(), values.data(), values.size() * sizeof(float)));
}

TEST_F(ConvertTest, NumbersThatAreNoneAreNamed) {
  OneLayer layer;
  layer.values("model.layers.0.mlp.up_proj.weight")[32 * 3 + 7] = NAN;
  EXPECT_THAT(ErrorOf(layer.Write(folder_)), HasSubstr("element 7 of row 3 is nan"));
  EXPECT_THAT(ErrorOf(layer.Write(folder_), {.type = DType::kF16}),
              HasSubstr("model.layers.0.mlp.up_proj.weight"));
}

TEST_F(ConvertTest, WeightsAreFloats) {
  OneLayer().Write(folder_);
  SafetensorsBuilder builder;
  builder.Add("model.embed_tokens.weight", "I32", {4, 32}, std::string(4 * 4 * 32, '\0'));
  folder_.Write("in/model.safetensors", builder.Build());
  EXPECT_THAT(ErrorOf(folder_ / "in"), HasSubstr("model.embed_tokens.weight has numbers of type I32"));
}

TEST_F(ConvertTest, WhatIsMissingOrTooMuchIsNamed) {
  OneLayer more;
  more.Set("model.layers.0.mlp.extra.weight", 2, 2, 1);
  EXPECT_THAT(ErrorOf(more.Write(folder_)), HasSubstr("1 tensors have no place in a model of type llama"));
  OneLayer less;
  less.Drop("model.layers.0.mlp.up_proj.weight");
  EXPECT_THAT(ErrorOf(less.Write(folder_)), HasSubstr("blk.0.ffn_up.weight"));
  OneLayer odd;
  odd.Set("model.layers.0.self_attn.v_proj.weight", 16, 32, 1);
  EXPECT_THAT(ErrorOf(odd.Write(folder_)),
              HasSubstr("blk.0.attn_v.weight has shape [32, 16]; expected [32, 32]"));
}

TEST_F(ConvertTest, StoppedMeansNothingIsLeft) {
  int calls = 0;
  const auto stop = [&](uint64_t, uint64_t) { return ++calls < 5; };
  EXPECT_THAT(ErrorOf(kBundled, {.progress = stop}), HasSubstr("stopped"));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(ConvertTest, AQuantisedCheckpointIsRefused) {
  const std::string copy = Copy("copy");
  std::string config = *platform::ReadWholeFile(copy + "/config.json", 1 << 20);
  config.insert(1, R"("quantization_config": {"quant_method": "gptq"},)");
  folder_.Write("copy/config.json", config);
  EXPECT_THAT(ErrorOf(copy), HasSubstr("quantised already"));
}

// --- one checkpoint of each family, from what the reference's GGUF says ---

struct Reference {
  const char* file;
  const char* model_type;
};
constexpr Reference kReferences[] = {
    {"llama", "llama"},           {"llama-tied", "llama"},  {"llama-linear", "llama"},
    {"llama-yarn", "llama"},      {"llama-bias", "llama"},  {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},           {"gemma", "gemma"},       {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"},    {"phi3", "phi3"},         {"smollm3", "smollm3"},
    {"granite", "granite"},       {"olmo2", "olmo2"},       {"command-r", "cohere"},
    {"cohere2", "cohere2"},       {"stablelm", "stablelm"}, {"nemotron", "nemotron"},
    {"starcoder2", "starcoder2"}, {"gpt2", "gpt2"}};

class ConvertFamilyTest : public ConvertTest, public testing::WithParamInterface<Reference> {};

// The name that a checkpoint gives a tensor.
std::string TheirName(const Family& family, std::string_view name) {
  const size_t dot = name.rfind('.');
  std::string stem(name.substr(0, dot)), number;
  if (stem.starts_with("blk.")) {
    const size_t end = stem.find('.', 4);
    number = stem.substr(4, end - 4);
    stem.replace(4, number.size(), "{}");
  }
  for (const std::span<const NameRule> rules : {family.names, CommonNames()}) {
    for (const NameRule& rule : rules) {
      if (rule.ours != stem) continue;
      std::string theirs(rule.theirs);
      if (const size_t hole = theirs.find("{}"); hole != std::string::npos) theirs.replace(hole, 2, number);
      return theirs + std::string(name.substr(dot));
    }
  }
  return "";
}

// What conversion undoes.
void Undo(Change change, uint64_t rows, uint64_t columns, uint64_t head_dim, std::vector<float>& values) {
  const std::vector<float> ours = values;
  switch (change) {
    case Change::kNone:
      return;
    case Change::kAddOne:
      for (float& value : values) value -= 1.0f;
      return;
    case Change::kTranspose:
      for (uint64_t r = 0; r < rows; ++r) {
        for (uint64_t c = 0; c < columns; ++c) values[c * rows + r] = ours[r * columns + c];
      }
      return;
    case Change::kPairQueries:
    case Change::kPairKeys:
      for (uint64_t r = 0; r < rows; ++r) {
        const uint64_t head = r / head_dim * head_dim, within = r % head_dim;
        const uint64_t theirs = head + within / 2 + (within % 2) * (head_dim / 2);
        std::copy_n(ours.begin() + static_cast<ptrdiff_t>(r * columns), columns,
                    values.begin() + static_cast<ptrdiff_t>(theirs * columns));
      }
  }
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
  const uint64_t head_dim = config.contains("head_dim") ? config["head_dim"].get<uint64_t>()
                                                        : config["hidden_size"].get<uint64_t>() /
                                                              config["num_attention_heads"].get<uint64_t>();

  SafetensorsBuilder builder;
  bool has_output = false;
  for (const gguf::Tensor& tensor : reference->tensors()) {
    const std::string name = TheirName(family, tensor.name);
    ASSERT_NE(name, "") << tensor.name;
    has_output |= tensor.name == "output.weight";
    std::vector<float> values = ValuesOf(*reference, tensor);
    const Change change = PlaceOf(family, name)->change;
    uint64_t rows = tensor.rows(), columns = tensor.columns();
    if (tensor.n_dims == 1 && change != Change::kNone && change != Change::kAddOne) std::swap(rows, columns);
    Undo(change, rows, columns, head_dim, values);
    std::vector<uint64_t> shape{tensor.columns()};
    if (tensor.n_dims == 2) shape = {tensor.rows(), tensor.columns()};
    if (change == Change::kTranspose) std::swap(shape[0], shape[1]);
    builder.AddF32(name, shape, values);
  }
  config["tie_word_embeddings"] = !has_output;
  folder_.Write("in/model.safetensors", builder.Build());
  folder_.Write("in/config.json", config.dump());
  folder_.Write("in/tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");

  const auto report = Convert(folder_ / "in");
  ASSERT_TRUE(report) << report.error().message;
  const gguf::GgufFile made = Opened();
  ASSERT_EQ(made.tensors().size(), reference->tensors().size());
  for (const gguf::Tensor& tensor : reference->tensors()) {
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
