// Whole conversions: the bundled model, and checkpoints of one layer.
#include <array>
#include <cmath>
#include <cstring>

#include "convert/convert_fixture.h"
#include "platform/file.h"
#include "platform/memory_info.h"

namespace sluice::convert {
namespace {

using formats::DType;
using testing::HasSubstr;

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

// P62
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

// P62: the largest F16 is one, half a step more is not.
TEST_F(ConvertTest, TheLargestF16) {
  OneLayer layer;
  layer.values("model.layers.0.mlp.up_proj.weight")[5] = 65504.0f;
  layer.values("model.layers.0.mlp.gate_proj.weight")[5] = 65520.0f;
  ASSERT_TRUE(Convert(layer.Write(folder_), {.type = DType::kF16}));
  const gguf::GgufFile made = Opened();
  const auto type_of = [&](std::string_view name) {
    return std::ranges::find(made.tensors(), name, &gguf::Tensor::name)->traits->dtype;
  };
  EXPECT_EQ(type_of("blk.0.ffn_up.weight"), DType::kF16);
  EXPECT_EQ(type_of("blk.0.ffn_gate.weight"), DType::kBF16);
}

// P62: rounded to nearest, ties to even.
TEST_F(ConvertTest, F32BecomesBf16) {
  const std::pair<float, float> cases[] = {{1 + 0x1p-8f, 1.0f},
                                           {1 + 0x1p-8f + 0x1p-20f, 1 + 0x1p-7f},
                                           {1 + 3 * 0x1p-8f, 1 + 0x1p-6f},
                                           {-1 - 0x1p-9f, -1.0f},
                                           {0x1p-133f, 0x1p-133f},
                                           {65520.0f, 65536.0f}};
  OneLayer layer;
  std::vector<float>& values = layer.values("model.layers.0.mlp.up_proj.weight");
  for (size_t i = 0; i < std::size(cases); ++i) values[i] = cases[i].first;
  ASSERT_TRUE(Convert(layer.Write(folder_), {.type = DType::kBF16}));
  const gguf::GgufFile made = Opened();
  const std::vector<float> read =
      ValuesOf(made, *std::ranges::find(made.tensors(), "blk.0.ffn_up.weight", &gguf::Tensor::name));
  for (size_t i = 0; i < std::size(cases); ++i) EXPECT_EQ(read[i], cases[i].second) << cases[i].first;
}

// P62
TEST_F(ConvertTest, Bf16IsCopiedExactly) {
  OneLayer layer;
  std::vector<float>& values = layer.values("model.layers.0.mlp.up_proj.weight");
  const float special[] = {65504.0f, 65520.0f, 1e5f, 3e38f, 1e-40f, -0.0f, 1.0f / 3};
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

// A model that also sees is converted without what sees.
TEST_F(ConvertTest, PartsThatSeeAreLeftOut) {
  OneLayer layer;
  layer.Add("vision_tower.blocks.0.weight", "F32", {1}, std::string(4, '\0'));
  EXPECT_THAT(ErrorOf(layer.Write(folder_)), HasSubstr("vision_tower.blocks.0.weight"));
  const std::string config = *platform::ReadWholeFile(folder_ / "in/config.json", 1 << 20);
  folder_.Write("in/config.json", R"({"model_type": "llava", "text_config": )" + config + "}");
  const auto report = Convert(folder_ / "in");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->warnings, testing::ElementsAre(HasSubstr("1 tensors of the parts that see")));
}

// BitNet's code makes its weights ternary whenever it uses them; the file has them so.
TEST_F(ConvertTest, BitnetIsMadeTernary) {
  const auto model = [](const std::string& keys, const std::string& attention_norm,
                        const std::string& ffn_norm) {
    OneLayer layer;
    layer.Configure(keys);
    layer.Set("model.layers.0.self_attn." + attention_norm + ".weight", 0, 32, 1.0f);
    layer.Set("model.layers.0.mlp." + ffn_norm + ".weight", 0, 64, 1.0f);
    return layer;
  };
  OneLayer first = model(R"(, "architectures": ["BitnetForCausalLM"], "hidden_act": "silu")", "inner_attn_ln",
                         "ffn_layernorm");
  std::vector<float>& weights = first.values("model.layers.0.mlp.up_proj.weight");
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::array{1.0f, -0.25f, 0.0f, -0.75f}[i % 4];
  const auto report = Convert(first.Write(folder_));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->architecture, "bitnet");
  const gguf::GgufFile made = Opened();
  const auto find = [&](const char* name) {
    return std::ranges::find(made.tensors(), std::string_view(name), &gguf::Tensor::name);
  };
  EXPECT_NE(find("blk.0.attn_sub_norm.weight"), made.tensors().end());
  EXPECT_NE(find("blk.0.ffn_sub_norm.weight"), made.tensors().end());
  // The mean magnitude is 1/2, to whose half −1/4 is as near as to 0: the even one of the two.
  const std::vector<float> up = ValuesOf(made, *find("blk.0.ffn_up.weight"));
  for (size_t i = 0; i < up.size(); ++i) ASSERT_EQ(up[i], (std::array{0.5f, 0.0f, 0.0f, -0.5f}[i % 4])) << i;
  EXPECT_EQ(ValuesOf(made, *find("output.weight"))[0], 0.5f) << "as it was";
  fs::remove(folder_ / "out.gguf");

  // The later ones compute another activation, which GGUF's bitnet can't say.
  OneLayer later = model(R"(, "architectures": ["BitNetForCausalLM"], "hidden_act": "relu2")",
                         "attn_sub_norm", "ffn_sub_norm");
  std::string folder = later.Write(folder_);
  folder_.Write("in/config.json", R"({"model_type": "bitnet", "hidden_act": "relu2", "hidden_size": 32,
      "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2, "max_position_embeddings": 64,
      "rms_norm_eps": 1e-5, "quantization_config": {"quant_method": "bitnet"}})");
  EXPECT_THAT(ErrorOf(folder),
              HasSubstr("hidden_act is 'relu2', which is not what GGUF programs compute for 'bitnet'"));
}

// P63: tensors stream through; less than one and a half times the largest is enough beside what was there
// before.
TEST_F(ConvertTest, MemoryIsThatOfPieces) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "the sanitizer keeps memory that was given back";
#endif
  constexpr uint64_t kWidth = 1024, kRows = 16384;
  OneLayer(kWidth).Write(folder_);
  const auto matrix = [](uint64_t rows, uint64_t columns) { return std::vector{rows, columns}; };
  std::map<std::string, std::vector<uint64_t>> shapes{{"model.embed_tokens.weight", matrix(kRows, kWidth)},
                                                      {"lm_head.weight", matrix(kRows, kWidth)},
                                                      {"model.norm.weight", {kWidth}}};
  const std::string layer = "model.layers.0.";
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    shapes[layer + name + ".weight"] = {kWidth};
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    shapes[layer + "self_attn." + name + ".weight"] = matrix(kWidth, kWidth);
  shapes[layer + "mlp.gate_proj.weight"] = shapes[layer + "mlp.up_proj.weight"] = matrix(64, kWidth);
  shapes[layer + "mlp.down_proj.weight"] = matrix(kWidth, 64);
  nlohmann::json header;
  uint64_t end = 0;
  for (const auto& [name, shape] : shapes) {
    uint64_t bytes = sizeof(uint16_t);
    for (const uint64_t n : shape) bytes *= n;
    header[name] = {{"dtype", "F16"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  // Zeros, which no test's memory has to hold.
  const std::string head = SafetensorsBuilder::Whole(header.dump(), "");
  fs::resize_file(folder_.Write("in/model.safetensors", head), head.size() + end);
  const uint64_t before = *platform::ReadProcessMemory().rss_bytes,
                 peak = *platform::ReadProcessMemory().peak_rss_bytes;
  const auto report = Convert(folder_ / "in");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->tensors, shapes.size());
  const uint64_t largest = kRows * kWidth * sizeof(uint16_t);
  EXPECT_LE(*platform::ReadProcessMemory().peak_rss_bytes, std::max(peak, before + largest * 3 / 2));
}

TEST_F(ConvertTest, StoppedMeansNothingIsLeft) {
  int calls = 0;
  const auto stop = [&](uint64_t, uint64_t) { return ++calls < 5; };
  EXPECT_THAT(ErrorOf(kBundled, {.progress = stop}), HasSubstr("stopped"));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

}  // namespace
}  // namespace sluice::convert
