// Makes safetensors files for tests.
#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace sluice::convert {

class SafetensorsBuilder {
 public:
  void Add(const std::string& name, const std::string& dtype, const std::vector<uint64_t>& shape,
           std::string bytes) {
    header_[name] = {
        {"dtype", dtype}, {"shape", shape}, {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    data_ += bytes;
  }
  void AddF32(const std::string& name, const std::vector<uint64_t>& shape, std::span<const float> values) {
    Add(name, "F32", shape, std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
  }
  std::string Build() const { return Whole(header_.dump(), data_); }

  static std::string Whole(const std::string& header, const std::string& data) {
    const uint64_t size = header.size();
    std::string bytes(sizeof(size), '\0');
    std::memcpy(bytes.data(), &size, sizeof(size));
    return bytes + header + data;
  }

 private:
  nlohmann::ordered_json header_ = {{"__metadata__", {{"format", "pt"}}}};
  std::string data_;
};

}  // namespace sluice::convert
