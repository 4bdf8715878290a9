// Reads arbitrary bytes as a base run, and one that is sound but for the checksum of its rows, whose heads
// and codes are the input's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/hash.h"
#include "eval/base_run.h"
#include "eval/divergence.h"

namespace {

using namespace sluice;

constexpr uint64_t kVocabulary = 24;
constexpr size_t kRowBytes = 16 + 2 * kVocabulary;

void ReadAll(std::span<const std::byte> bytes) {
  auto reader = eval::BaseRunReader::Open(std::make_unique<gguf::MemorySource>(bytes));
  if (!reader) return;
  eval::Divergence divergence;
  const int64_t rows = std::min<int64_t>(reader->run().windows.scored(), 64);
  for (int64_t i = 0; i < rows; ++i) {
    const auto row = reader->Row(i);
    if (!row) return;
    SLUICE_CHECK(divergence.Add(*row, *row, reader->run().windows.Target(i)) >= 0);
  }
  SLUICE_CHECK(!std::isnan(divergence.kl().mean()));
}

std::vector<std::byte> SoundRun() {
  eval::BaseRun run{.model = "fuzz", .vocabulary_size = kVocabulary};
  run.windows = {.ids = std::vector<text::TokenId>(16, 3), .window = 4, .first_scored = 1};
  std::vector<std::byte> bytes;
  gguf::MemorySink sink(&bytes);
  auto writer = eval::BaseRunWriter::Begin(run, sink);
  const std::vector<float> logits(kVocabulary, 1);
  for (int64_t i = 0; i < run.windows.scored(); ++i) SLUICE_CHECK(writer->Add(logits).has_value());
  SLUICE_CHECK(writer->Finish().has_value());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  ReadAll(input);
  static const std::vector<std::byte> sound = SoundRun();
  std::vector<std::byte> bytes = sound;
  const size_t rows = 8;
  const size_t first = bytes.size() - rows * kRowBytes;
  std::copy_n(input.begin(), std::min(size, rows * kRowBytes),
              bytes.begin() + static_cast<std::ptrdiff_t>(first));
  for (size_t i = 0; i < rows; ++i) {
    const auto row = std::span(bytes).subspan(first + i * kRowBytes, kRowBytes);
    const uint64_t hash = HashBytes(row.subspan(8));
    std::memcpy(row.data(), &hash, sizeof(hash));
  }
  ReadAll(bytes);
  return 0;
}
