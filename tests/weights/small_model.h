// SmallModel: a GGUF file of random F32 matrices and the schedule that uses them, for tests of the weight store.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "gguf/builder.h"
#include "gguf/byte_sink.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "platform/temp_folder.h"
#include "weights/schedule.h"

namespace sluice::weights {

class SmallModel {
 public:
  static constexpr uint64_t kColumns = 96;

  // `layers` times a stacked, a paired and a single operation; then an output.
  explicit SmallModel(int layers) {
    for (int layer = 0; layer < layers; ++layer) {
      for (const auto& [name, rows] : {std::pair{"q", 130}, {"k", 40}, {"v", 33}, {"gate", 210}, {"up", 210}, {"down", 77}})
        Add(std::string(name) + std::to_string(layer), static_cast<uint64_t>(rows));
    }
    Add("output", 301);
    path_ = folder_.Write("model.gguf", Build());
    auto file = gguf::GgufFile::Open(path_);
    EXPECT_TRUE(file) << file.error().message;
    file_ = std::make_unique<gguf::GgufFile>(*std::move(file));
    for (int layer = 0; layer < layers; ++layer) {
      const auto matrix = [&](const char* name) { return Find(name + std::to_string(layer)); };
      schedule_.Add({matrix("q"), matrix("k"), matrix("v")}, false, layer);
      schedule_.Add({matrix("gate"), matrix("up")}, true, layer);
      schedule_.Add({matrix("down")}, false, layer);
    }
    schedule_.Add({Find("output")}, false, layers);
  }

  const std::string& path() const { return path_; }
  const gguf::GgufFile& file() const { return *file_; }
  const Schedule& schedule() const { return schedule_; }
  uint64_t size_bytes() const {
    uint64_t total = 0;
    for (const Tensor& tensor : tensors_) total += tensor.data.size();
    return total;
  }
  // What an extent must hold.
  const std::byte* Expected(const Slab& slab, const Extent& extent) const {
    const Matrix& matrix = schedule_.operations[static_cast<size_t>(slab.operation)].matrices[static_cast<size_t>(extent.matrix)];
    for (const Tensor& tensor : tensors_) {
      if (tensor.name == matrix.tensor->name) return tensor.data.data() + static_cast<uint64_t>(extent.first_row) * kColumns * 4;
    }
    return nullptr;
  }

 private:
  struct Tensor {
    std::string name;
    uint64_t rows;
    gguf::testing::Bytes data;
  };
  void Add(std::string name, uint64_t rows) {
    gguf::testing::Bytes data(rows * kColumns * 4);
    for (std::byte& byte : data) byte = static_cast<std::byte>((state_ = state_ * 1664525u + 1013904223u) >> 24);
    tensors_.push_back({std::move(name), rows, std::move(data)});
  }
  Matrix Find(const std::string& name) const {
    const gguf::Tensor* tensor = file_->Find(name);
    return {.rows = static_cast<int64_t>(tensor->rows()), .columns = kColumns, .tensor = tensor};
  }
  std::string Build() const {
    gguf::Metadata metadata;
    metadata.SetString("general.architecture", "llama");
    gguf::Writer writer(std::move(metadata));
    for (const Tensor& tensor : tensors_)
      EXPECT_TRUE(writer.AddTensor(tensor.name, formats::DType::kF32, std::vector<uint64_t>{kColumns, tensor.rows}));
    gguf::testing::Bytes bytes;
    gguf::MemorySink sink(&bytes);
    EXPECT_TRUE(writer.Begin(sink));
    for (const Tensor& tensor : tensors_) EXPECT_TRUE(writer.WriteData(tensor.data));
    EXPECT_TRUE(writer.Finish());
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  TempFolder folder_;
  uint32_t state_ = 1;
  std::vector<Tensor> tensors_;
  std::string path_;
  std::unique_ptr<gguf::GgufFile> file_;
  Schedule schedule_;
};

}  // namespace sluice::weights
