#include "quantize/synth.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/hash.h"
#include "base/units.h"
#include "gguf/writer.h"
#include "quantize/random_blocks.h"
#include "quantize/synth_vocabulary.h"

namespace sluice::quantize {

using formats::DType;

namespace {

constexpr size_t kChunkBytes = 2 * kMiB;

DType FormatOf(const SynthTensor& tensor, const Mix& mix) {
  return tensor.kind == SynthTensor::Kind::kMatrix ? FormatFor(mix, tensor.place) : DType::kF32;
}

float DeviationOf(const SynthTensor& tensor) {
  switch (tensor.kind) {
    case SynthTensor::Kind::kMatrix:
      return 1.0f / std::sqrt(static_cast<float>(tensor.columns));
    case SynthTensor::Kind::kNorm:
      return 0.05f;
    default:
      return 0.02f;
  }
}

// Makes the data of one tensor after the other, in chunks of whole blocks. What tensors alike share is kept.
class DataSource {
 public:
  DataSource(const SynthShape& shape, uint64_t seed) : shape_(shape), seed_(seed) {}

  void Begin(const SynthTensor& tensor, DType dtype) {
    tensor_ = &tensor;
    const float deviation = DeviationOf(tensor);
    blocks_ = &kinds_.try_emplace({dtype, deviation}, dtype, deviation).first->second;
    blocks_->Reseed(HashBytes(std::as_bytes(std::span(tensor.name)), kHashSeed ^ seed_));
  }

  // The tensor's next bytes. Norms and other vectors are small: they are one chunk.
  void Fill(std::span<std::byte> chunk) {
    blocks_->Fill(chunk);
    const std::span floats(reinterpret_cast<float*>(chunk.data()), chunk.size() / sizeof(float));
    if (tensor_->kind == SynthTensor::Kind::kNorm) {
      for (float& weight : floats) weight += 1.0f;
    } else if (tensor_->kind == SynthTensor::Kind::kRopeFreqs) {
      std::ranges::copy(Llama3RopeDivisors(shape_), floats.begin());
    }
  }

 private:
  const SynthShape& shape_;
  const uint64_t seed_;
  std::map<std::pair<DType, float>, RandomBlocks> kinds_;
  const SynthTensor* tensor_ = nullptr;
  RandomBlocks* blocks_ = nullptr;  // one of kinds_
};

Result<gguf::Writer> MakeWriter(const SynthShape& shape, const Mix& mix,
                                std::span<const SynthTensor> tensors) {
  gguf::Metadata metadata;
  SetShapeMetadata(shape, metadata);
  metadata.SetString("general.name", fmt::format("{} {} (random weights)", shape.name, mix.name));
  metadata.SetU32("general.file_type", mix.file_type);
  metadata.SetU32("general.quantization_version", 2);
  metadata.SetBool(kSyntheticKey, true);
  SLUICE_TRY(SetSyntheticVocabulary(shape, metadata));
  gguf::Writer writer(std::move(metadata));
  for (const SynthTensor& tensor : tensors) {
    const uint64_t dims[] = {tensor.columns, tensor.rows};
    const size_t n_dims = tensor.kind == SynthTensor::Kind::kMatrix ? 2 : 1;
    SLUICE_TRY(writer.AddTensor(tensor.name, FormatOf(tensor, mix), std::span(dims, n_dims)));
  }
  return writer;
}

}  // namespace

Status Synthesize(const SynthShape& shape, const Mix& mix, const SynthOptions& options,
                  const gguf::SinkOpener& open) {
  const std::vector<SynthTensor> tensors = TensorsOf(shape);
  SLUICE_TRY_ASSIGN(gguf::Writer writer, MakeWriter(shape, mix, tensors));
  SLUICE_TRY_ASSIGN(const uint64_t file_bytes, writer.FileBytes());
  uint64_t total = 0, written = 0;
  for (const gguf::Tensor& tensor : writer.tensors()) total += tensor.size_bytes;

  SLUICE_TRY_ASSIGN(const std::unique_ptr<gguf::ByteSink> sink, open(file_bytes));
  SLUICE_TRY(writer.Begin(*sink));
  DataSource source(shape, options.seed);
  std::vector<std::byte> buffer(kChunkBytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const gguf::Tensor& target = writer.tensors()[i];
    source.Begin(tensors[i], target.traits->dtype);
    const uint64_t whole_blocks = kChunkBytes / target.traits->block_bytes * target.traits->block_bytes;
    for (uint64_t left = target.size_bytes; left > 0;) {
      const std::span chunk(buffer.data(), static_cast<size_t>(std::min(left, whole_blocks)));
      source.Fill(chunk);
      SLUICE_TRY(writer.WriteData(chunk));
      left -= chunk.size();
      written += chunk.size();
      if (options.progress && !options.progress(written, total)) {
        return Fail(ErrorCode::kInterrupted, "stopped at {} of {}", FormatBytes(written), FormatBytes(total));
      }
    }
  }
  return writer.Finish();
}

Status SynthesizeFile(const SynthShape& shape, const Mix& mix, const SynthOptions& options,
                      const std::string& path) {
  return Synthesize(shape, mix, options,
                    [&](uint64_t file_bytes) { return gguf::CreateFileSink(path, file_bytes); });
}

}  // namespace sluice::quantize
