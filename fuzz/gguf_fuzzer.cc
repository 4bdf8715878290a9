// Reads arbitrary bytes as a GGUF file, through every purpose, and uses what it claims to hold: all metadata
// by every typed accessor, an override, and the first blocks of every tensor of a known type; writes it
// again, whole and in parts. Seeds: gguf_seeds.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "formats/decode.h"
#include "gguf/overrides.h"
#include "gguf/reader.h"
#include "gguf/repack.h"
#include "gguf/split.h"

namespace sluice::gguf {
namespace {

void UseMetadata(GgufFile& file) {
  std::string an_override;
  for (const Entry& entry : file.metadata().entries()) {
    const Metadata& metadata = file.metadata();
    (void)metadata.GetU32(entry.key);
    (void)metadata.GetU64(entry.key);
    (void)metadata.GetI64(entry.key);
    (void)metadata.GetF32(entry.key);
    (void)metadata.GetBool(entry.key);
    (void)metadata.GetString(entry.key);
    (void)metadata.GetU32PerLayer(entry.key, 2);
    if (const auto ints = metadata.GetInts(entry.key); ints && !ints->empty())
      (void)(*ints)[ints->size() - 1];
    if (const auto floats = metadata.GetFloats(entry.key); floats && !floats->empty())
      (void)(*floats)[floats->size() - 1];
    if (const auto strings = metadata.GetStrings(entry.key)) {
      size_t total = 0;
      for (const std::string_view text : *strings) total += std::count(text.begin(), text.end(), '\0');
      (void)total;
    }
    an_override = std::string(entry.key) + "=int:" + std::to_string(entry.count);
  }
  (void)ApplyOverride(an_override, file.metadata());
}

void UseTensors(const GgufFile& file) {
  std::vector<std::byte> blocks;
  std::vector<float> values;
  for (const Tensor& tensor : file.tensors()) {
    SLUICE_CHECK(file.Find(tensor.name) != nullptr);
    const auto known = file.Require(tensor.name);
    if (!known) continue;
    const uint64_t length = tensor.traits->block_length;
    const uint64_t columns = std::min<uint64_t>(tensor.columns(), 4 * length);
    blocks.resize(formats::RowBytes(tensor.traits->dtype, columns));
    values.resize(columns);
    const bool last = tensor.size_bytes % 2 == 1;
    if (!file.Read(tensor, last ? tensor.size_bytes - blocks.size() : 0, blocks)) continue;
    formats::DecodeRow(tensor.traits->dtype, blocks.data(), values);
  }
}

// What was read can be written again, whole and in parts, and is the same then.
void WriteAgain(const GgufFile& file) {
  if (file.tensor_bytes() > kMiB) return;
  std::vector<std::byte> whole;
  const auto repacked = Repack(file, file.metadata().Copy(), {.alignment = 64}, [&](uint64_t) {
    return Result<std::unique_ptr<ByteSink>>(std::make_unique<MemorySink>(&whole));
  });
  if (repacked) {
    const auto again = GgufFile::Open("again", Purpose::kUse, [&](const std::string&) {
      return Result<std::unique_ptr<ByteSource>>(std::make_unique<MemorySource>(whole));
    });
    SLUICE_CHECK(again.has_value() && again->tensors().size() == file.tensors().size());
    SLUICE_CHECK(ReadChecksums(again->metadata(), again->tensors().size())->has_value());
  }
  const auto parts = PlanParts(file, 8 * kKiB);
  if (!parts) return;
  std::vector<std::vector<std::byte>> bytes(parts->size());
  (void)Split(file, *parts, {}, [&](size_t index, size_t, uint64_t) {
    return Result<std::unique_ptr<ByteSink>>(std::make_unique<MemorySink>(&bytes[index]));
  });
}

}  // namespace
}  // namespace sluice::gguf

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto opener = [&](const std::string&) -> Result<std::unique_ptr<gguf::ByteSource>> {
    return std::unique_ptr<gguf::ByteSource>(std::make_unique<gguf::MemorySource>(bytes));
  };
  for (const gguf::Purpose purpose : {gguf::Purpose::kUse, gguf::Purpose::kInspect}) {
    auto file = gguf::GgufFile::Open("model-00001-of-00002.gguf", purpose, opener);
    if (!file) continue;
    gguf::UseTensors(*file);
    if (purpose == gguf::Purpose::kUse) gguf::WriteAgain(*file);
    gguf::UseMetadata(*file);
  }
  return 0;
}
