// GGUF files for tests, in memory: sound ones with ModelBuilder, and broken ones piece by piece with the
// functions of `raw`. Used by every test that needs a tiny model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "formats/dtype.h"
#include "gguf/byte_sink.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace sluice::gguf::testing {

using Bytes = std::vector<std::byte>;

// A sound model. Example:
//   ModelBuilder model("llama");
//   model.metadata().SetU32("llama.block_count", 2);
//   model.AddF32("output_norm.weight", {64}, ones);
//   model.AddRandom("token_embd.weight", formats::DType::kQ8_0, {64, 320}, 0.02f);
//   auto file = OpenBytes(model.Build());
class ModelBuilder {
 public:
  explicit ModelBuilder(std::string_view architecture = "llama", uint32_t seed = 1) : random_(seed) {
    metadata_.SetString("general.architecture", architecture);
  }

  Metadata& metadata() { return metadata_; }

  ModelBuilder& Add(std::string_view name, formats::DType dtype, std::initializer_list<uint64_t> dims,
                    Bytes data) {
    tensors_.push_back({std::string(name), dtype, dims, std::move(data)});
    return *this;
  }
  ModelBuilder& AddF32(std::string_view name, std::initializer_list<uint64_t> dims,
                       std::span<const float> values) {
    const auto bytes = std::as_bytes(values);
    return Add(name, formats::DType::kF32, dims, Bytes(bytes.begin(), bytes.end()));
  }
  // F32, F16 and BF16: normal with this deviation (the same numbers in all three, rounded). Other types:
  // random bytes.
  ModelBuilder& AddRandom(std::string_view name, formats::DType dtype, std::initializer_list<uint64_t> dims,
                          float deviation = 0.02f) {
    uint64_t elements = 1;
    for (const uint64_t dim : dims) elements *= dim;
    Bytes data(formats::RowBytes(dtype, elements));
    std::normal_distribution<float> normal(0, deviation);
    for (uint64_t i = 0; i < elements && formats::Traits(dtype).block_length == 1; ++i) {
      const float value = normal(random_);
      const uint16_t half = dtype == formats::DType::kF16 ? F32ToF16(value) : F32ToBf16(value);
      if (dtype == formats::DType::kF32) std::memcpy(data.data() + 4 * i, &value, 4);
      if (dtype == formats::DType::kF16 || dtype == formats::DType::kBF16)
        std::memcpy(data.data() + 2 * i, &half, 2);
    }
    if (formats::Traits(dtype).block_length > 1) {
      for (std::byte& b : data) b = static_cast<std::byte>(random_() >> 24);
    }
    return Add(name, dtype, dims, std::move(data));
  }

  Bytes Build() const {
    Metadata copy;
    for (const Entry& entry : metadata_.entries()) copy.Set(entry);
    Writer writer(std::move(copy));
    for (const Item& item : tensors_)
      SLUICE_CHECK(writer.AddTensor(item.name, item.dtype, item.dims).has_value());
    Bytes file;
    MemorySink sink(&file);
    SLUICE_CHECK(writer.Begin(sink).has_value());
    for (const Item& item : tensors_) SLUICE_CHECK(writer.WriteData(item.data).has_value());
    SLUICE_CHECK(writer.Finish().has_value());
    return file;
  }

 private:
  struct Item {
    std::string name;
    formats::DType dtype;
    std::vector<uint64_t> dims;
    Bytes data;
  };
  Metadata metadata_;
  std::vector<Item> tensors_;
  std::mt19937 random_;
};

// A ByteSource that owns its bytes.
class OwningSource final : public ByteSource {
 public:
  explicit OwningSource(Bytes bytes) : bytes_(std::move(bytes)), source_(bytes_) {}
  uint64_t size() const override { return source_.size(); }
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    return source_.ReadAt(offset, out);
  }

 private:
  Bytes bytes_;
  MemorySource source_;
};

// Opens `path` among `files`; everything else is kNotFound.
inline Result<GgufFile> OpenFiles(const std::map<std::string, Bytes>& files, const std::string& path,
                                  Purpose purpose = Purpose::kUse) {
  return GgufFile::Open(path, purpose, [&](const std::string& wanted) -> Result<std::unique_ptr<ByteSource>> {
    const auto at = files.find(wanted);
    if (at == files.end()) return Fail(ErrorCode::kNotFound, "{}: no such file", wanted);
    return std::unique_ptr<ByteSource>(std::make_unique<OwningSource>(at->second));
  });
}

inline Result<GgufFile> OpenBytes(Bytes bytes, Purpose purpose = Purpose::kUse) {
  return OpenFiles({{"test.gguf", std::move(bytes)}}, "test.gguf", purpose);
}

// A file put together by hand, with nothing checked.
namespace raw {

template <typename T>
Bytes Number(T value) {
  Bytes bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
inline Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
inline Bytes Text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}
inline Bytes String(std::string_view text) { return Join({Number(uint64_t{text.size()}), Text(text)}); }

// A metadata pair; value: Number(…), String(…) or Array(…).
inline Bytes Pair(std::string_view key, ValueType type, const Bytes& value) {
  return Join({String(key), Number(static_cast<uint32_t>(type)), value});
}
inline Bytes Array(ValueType element_type, uint64_t count, const Bytes& elements) {
  return Join({Number(static_cast<uint32_t>(element_type)), Number(count), elements});
}
// A line of the tensor directory.
inline Bytes Info(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                  uint64_t offset) {
  Bytes info = Join({String(name), Number(static_cast<uint32_t>(dims.size()))});
  for (const uint64_t dim : dims) info = Join({info, Number(dim)});
  return Join({info, Number(type), Number(offset)});
}

struct FileParts {
  std::vector<Bytes> pairs;
  std::vector<Bytes> infos;
  Bytes data;
  uint64_t alignment = 32;  // of the data; no key is written for it
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count = {};  // default: the true one
  std::optional<uint64_t> pair_count = {};
  std::string_view magic = "GGUF";
};
inline Bytes File(const FileParts& parts) {
  const uint64_t tensors = parts.tensor_count.value_or(parts.infos.size());
  const uint64_t pairs = parts.pair_count.value_or(parts.pairs.size());
  Bytes file = Join({Text(parts.magic), Number(parts.version), Number(tensors), Number(pairs)});
  for (const Bytes& pair : parts.pairs) file.insert(file.end(), pair.begin(), pair.end());
  for (const Bytes& info : parts.infos) file.insert(file.end(), info.begin(), info.end());
  while (file.size() % parts.alignment != 0) file.push_back(std::byte{0});
  file.insert(file.end(), parts.data.begin(), parts.data.end());
  return file;
}

}  // namespace raw
}  // namespace sluice::gguf::testing
