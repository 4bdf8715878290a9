// What the tests of whole conversions share.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/half.h"
#include "convert/convert.h"
#include "convert/safetensors_builder.h"
#include "formats/decode.h"
#include "gguf/reader.h"
#include "platform/temp_folder.h"

namespace sluice::convert {

namespace fs = std::filesystem;

inline const fs::path kBundled = fs::path(SLUICE_SOURCE_DIR) / "models" / "sluice-demo-hf";

inline std::vector<float> ValuesOf(const gguf::GgufFile& file, const gguf::Tensor& tensor) {
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

// A checkpoint of one layer whose numbers the test sets.
class OneLayer {
 public:
  // `width` of the hidden state.
  explicit OneLayer(uint64_t width = 32) : width_(width) {
    Set("model.embed_tokens.weight", 4, width, 0.5f);
    Set("lm_head.weight", 4, width, 0.5f);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      Set(fmt::format("model.layers.0.self_attn.{}.weight", name), width, width, 0.5f);
    Set("model.layers.0.mlp.gate_proj.weight", 64, width, 0.5f);
    Set("model.layers.0.mlp.up_proj.weight", 64, width, 0.5f);
    Set("model.layers.0.mlp.down_proj.weight", width, 64, 0.5f);
    for (const char* name : {"model.norm.weight", "model.layers.0.input_layernorm.weight",
                             "model.layers.0.post_attention_layernorm.weight"})
      Set(name, 0, width, 1.0f);
  }
  // rows 0: a vector.
  void Set(const std::string& name, uint64_t rows, uint64_t columns, float value) {
    tensors_[name] = {rows == 0 ? std::vector{columns} : std::vector{rows, columns},
                      std::vector<float>(std::max<uint64_t>(rows, 1) * columns, value)};
  }
  // A tensor that is written as it is.
  void Add(const std::string& name, const std::string& dtype, const std::vector<uint64_t>& shape,
           const std::string& bytes) {
    others_.Add(name, dtype, shape, bytes);
  }
  // More keys of config.json: ", \"key\": value".
  void Configure(const std::string& keys) { keys_ += keys; }
  std::vector<float>& values(const std::string& name) { return tensors_[name].second; }
  void Drop(const std::string& name) { tensors_.erase(name); }

  std::string Write(const TempFolder& folder, bool bf16 = false) const {
    SafetensorsBuilder builder = others_;
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
    folder.Write("in/config.json",
                 fmt::format(R"({{"model_type": "llama", "hidden_size": {}, "num_hidden_layers": 1,
        "intermediate_size": 64, "num_attention_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5{}}})",
                             width_, keys_));
    folder.Write("in/tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE",
        "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3}, "merges": ["a b"]}})");
    return folder / "in";
  }

 private:
  uint64_t width_;
  std::map<std::string, std::pair<std::vector<uint64_t>, std::vector<float>>> tensors_;
  SafetensorsBuilder others_;
  std::string keys_;
};

}  // namespace sluice::convert
