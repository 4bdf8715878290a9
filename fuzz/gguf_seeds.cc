// Writes small GGUF files for gguf_fuzzer to begin with: gguf_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "gguf/builder.h"

namespace sluice::gguf::testing {
namespace {

void Save(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// One block of every format.
Bytes EveryFormat() {
  ModelBuilder model;
  for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
    model.AddRandom(traits.name, traits.dtype, {traits.block_length});
  }
  return model.Build();
}

Bytes EveryValueType() {
  ModelBuilder model;
  Metadata& metadata = model.metadata();
  metadata.SetU32("general.alignment", 8);
  metadata.SetI32("i32", -1);
  metadata.SetU64("u64", 1);
  metadata.SetI64("i64", -1);
  metadata.SetF32("f32", 0.5f);
  metadata.SetBool("bool", true);
  metadata.SetStrings("strings", std::vector<std::string>{"a", "", "bcd"});
  metadata.SetI32s("ints", std::vector<int32_t>{1, 2});
  metadata.SetF32s("floats", std::vector<float>{1, 2});
  model.AddRandom("t", formats::DType::kF16, {4, 3, 2, 2});
  return model.Build();
}

// The first of two parts, without tensors.
Bytes FirstPart() {
  return raw::File({.pairs = {raw::Pair("split.no", ValueType::kU16, raw::Number(uint16_t{0})),
                              raw::Pair("split.count", ValueType::kU16, raw::Number(uint16_t{2})),
                              raw::Pair("split.tensors.count", ValueType::kI32, raw::Number(0))}});
}

}  // namespace
}  // namespace sluice::gguf::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gguf_seeds FOLDER\n");
    return 2;
  }
  using namespace sluice::gguf::testing;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  Save(folder / "every_format.gguf", EveryFormat());
  Save(folder / "every_value_type.gguf", EveryValueType());
  Save(folder / "first_part.gguf", FirstPart());
  return 0;
}
