// Base runs made up for tests: random rows, kept in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "eval/base_run.h"
#include "gguf/builder.h"

namespace sluice::eval {

// Between −8 and 8.
inline std::vector<float> MadeUpLogits(size_t size, uint32_t seed) {
  std::vector<float> row(size);
  for (float& logit : row) {
    seed = seed * 1664525 + 1013904223;
    logit = static_cast<float>(seed >> 8) * 0x1p-20f - 8;
  }
  return row;
}

// Two windows of `window` tokens, counted up from 0.
inline BaseRun MadeUpRun(uint64_t vocabulary_size, int64_t window = 8) {
  BaseRun run{.model = "made up", .vocabulary_size = vocabulary_size, .vocabulary_hash = 1, .text_hash = 2};
  run.windows.window = window;
  for (int64_t i = 0; i < 2 * window; ++i)
    run.windows.ids.push_back(static_cast<text::TokenId>(static_cast<uint64_t>(i) % vocabulary_size));
  return run;
}

inline std::vector<std::vector<float>> MadeUpRows(const BaseRun& run) {
  std::vector<std::vector<float>> rows;
  for (int64_t i = 0; i < run.windows.scored(); ++i)
    rows.push_back(MadeUpLogits(static_cast<size_t>(run.vocabulary_size), static_cast<uint32_t>(i)));
  return rows;
}

inline std::vector<std::byte> WriteRun(const BaseRun& run, const std::vector<std::vector<float>>& rows) {
  std::vector<std::byte> bytes;
  gguf::MemorySink sink(&bytes);
  BaseRunWriter writer = *BaseRunWriter::Begin(run, sink);
  for (const std::vector<float>& row : rows) EXPECT_TRUE(writer.Add(row));
  EXPECT_TRUE(writer.Finish());
  return bytes;
}

inline Result<BaseRunReader> OpenRun(std::vector<std::byte> bytes) {
  return BaseRunReader::Open(std::make_unique<gguf::testing::OwningSource>(std::move(bytes)));
}

}  // namespace sluice::eval
