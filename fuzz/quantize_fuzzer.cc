// Quantises arbitrary bytes as a GGUF file, and takes them for importance data of a small model. Whatever
// comes out is a file that opens. Seeds: gguf_seeds.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "gguf/builder.h"
#include "quantize/importance_file.h"
#include "quantize/quantizer.h"

namespace sluice::quantize {
namespace {

constexpr uint64_t kMostElements = 1 << 14;  // the slow searches take a while for more

void QuantizeTo(const gguf::GgufFile& source, const QuantizeOptions& options) {
  static parallel::ThreadPool pool(1);
  gguf::testing::Bytes bytes;
  const auto report =
      Quantize(source, options, pool, [&](uint64_t) -> Result<std::unique_ptr<gguf::ByteSink>> {
        return std::unique_ptr<gguf::ByteSink>(std::make_unique<gguf::MemorySink>(&bytes));
      });
  if (!report) return;
  SLUICE_CHECK(bytes.size() == report->file_bytes);
  const auto opened = gguf::testing::OpenBytes(std::move(bytes));
  SLUICE_CHECK(opened.has_value());
}

bool Small(const gguf::GgufFile& file) {
  uint64_t elements = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.traits == nullptr) continue;
    elements = std::min(elements + tensor.elements(), kMostElements + 1);
  }
  return elements <= kMostElements;
}

// Two tensors whose importance the bytes may hold.
const gguf::testing::Bytes& SmallModel() {
  static const gguf::testing::Bytes bytes = [] {
    gguf::testing::ModelBuilder model;
    model.AddRandom("token_embd.weight", formats::DType::kF32, {32, 4});
    model.AddRandom("blk.0.ffn_up.weight", formats::DType::kF32, {32, 2, 2});
    return model.Build();
  }();
  return bytes;
}

}  // namespace
}  // namespace sluice::quantize

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  using namespace sluice::quantize;
  if (size == 0) return 0;
  const std::span<const Mix> mixes = AllMixes();
  QuantizeOptions options{.allow_requantize = true};
  options.types.mix = &mixes[data[0] % mixes.size()];
  const auto all = std::as_bytes(std::span(data + 1, size - 1));
  const gguf::testing::Bytes bytes(all.begin(), all.end());
  if (const auto file = gguf::testing::OpenBytes(bytes); file && Small(*file)) QuantizeTo(*file, options);

  auto file = gguf::testing::OpenBytes(bytes);
  if (!file) return 0;
  const auto importance = ImportanceFile::FromGguf("fuzz", *std::move(file));
  if (!importance) return 0;
  options.importance = &*importance;
  QuantizeTo(*gguf::testing::OpenBytes(SmallModel()), options);
  return 0;
}
