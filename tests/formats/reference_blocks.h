// The reference vectors of weight formats: blocks, their exact values, and what they were made from.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::formats {

inline const std::filesystem::path kReferenceBlocks =
    std::filesystem::path(SLUICE_REFERENCE_DIR) / "oracle/blocks";

inline std::vector<char> ReadReferenceFile(const std::string& name) {
  std::ifstream stream(kReferenceBlocks / name, std::ios::binary);
  EXPECT_TRUE(stream.good()) << name;
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::vector<float> ReadReferenceFloats(const std::string& name) {
  const std::vector<char> bytes = ReadReferenceFile(name);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

inline nlohmann::json ReadReferenceIndex() {
  std::ifstream stream(kReferenceBlocks / "index.json");
  return nlohmann::json::parse(stream);
}

}  // namespace sluice::formats
