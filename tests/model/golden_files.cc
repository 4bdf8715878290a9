#include "model/golden_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "formats/dtype.h"
#include "quantize/synth.h"

namespace sluice::model {

namespace {

namespace fs = std::filesystem;
using formats::DType;

// One type for every matrix.
quantize::Mix PureMix(DType dtype) { return {.name = formats::Name(dtype), .base = dtype, .file_type = 0, .rules = {}}; }

// Two small llama shapes whose rows are odd multiples of 32 (160, 224) and of 256 (256, 768).
quantize::SynthShape Shape(bool superblocks) {
  return {.name = "golden",
          .architecture = "llama",
          .layers = 2,
          .d_model = superblocks ? 256u : 160u,
          .d_ff = superblocks ? 768u : 224u,
          .n_heads = superblocks ? 8u : 5u,
          .n_kv_heads = superblocks ? 2u : 5u,
          .head_dim = 32,
          .context_length = 512};
}

bool IsWeightType(const formats::DTypeTraits& traits) {
  switch (traits.dtype) {
    case DType::kI8: case DType::kI16: case DType::kI32: case DType::kI64: case DType::kF64: return false;
    default: return true;
  }
}

std::string PathOfSynthetic(const std::string& name) {
  // "synth/Q4_K/256"
  const std::string type = name.substr(6, name.rfind('/') - 6);
  const formats::DTypeTraits* traits = formats::FindDTypeByName(type);
  std::string file = "sluice_" + name + ".gguf";
  std::replace(file.begin(), file.end(), '/', '_');
  const std::string path = testing::TempDir() + file;
  const Status made = quantize::SynthesizeFile(Shape(name.ends_with("/256")), PureMix(traits->dtype), {}, path);
  EXPECT_TRUE(made) << made.error().message;
  return path;
}

}  // namespace

std::string GoldenFile::Path(std::string* missing) const {
  if (name.starts_with("synth/")) return PathOfSynthetic(name);
  const fs::path path = name.starts_with("bundled/") ? fs::path(SLUICE_SOURCE_DIR) / "models" / name.substr(8)
                                                     : fs::path(SLUICE_REFERENCE_DIR) / "oracle" / name;
  if (!fs::exists(path)) {
    *missing = "there is no " + path.string();
    return "";
  }
  return path;
}

std::string GoldenFile::TestName() const {
  std::string test = name.substr(0, name.size() - (name.ends_with(".gguf") ? 5 : 0));
  std::replace_if(test.begin(), test.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return test;
}

std::vector<GoldenFile> GoldenFiles() {
  std::vector<GoldenFile> files{{"bundled/sluice-demo-f16.gguf"}};
  for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
    if (!IsWeightType(traits)) continue;
    if (160 % traits.block_length == 0) files.push_back({"synth/" + std::string(traits.name) + "/32"});
    files.push_back({"synth/" + std::string(traits.name) + "/256"});
  }
  for (const char* type : {"IQ1_M", "IQ1_S", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ3_S", "IQ3_XXS", "IQ4_NL", "IQ4_XS",
                           "MXFP4", "NVFP4", "Q1_0", "Q2_0", "Q2_K", "Q3_K_M", "Q4_0", "Q4_1", "Q4_K_M", "Q5_0",
                           "Q5_1", "Q5_K_M", "Q6_K", "Q8_0", "TQ1_0", "TQ2_0"}) {
    files.push_back({"quant/llama." + std::string(type) + ".gguf"});
  }
  for (const char* file : {"gemma3.Q4_0", "gemma3.Q4_K_M", "qwen2.IQ2_XS", "qwen2.IQ4_XS", "qwen2.Q3_K_M",
                           "qwen2.Q4_0", "qwen2.Q4_K_M", "tiny.BF16", "tiny.F16"})
    files.push_back({"quant/" + std::string(file) + ".gguf"});
  return files;
}

}  // namespace sluice::model
