#include "sluice/plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "api/config_shape.h"
#include "base/units.h"
#include "gguf/overrides.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "model/config.h"
#include "model/facts.h"
#include "model/vocabulary.h"
#include "platform/atomic_writer.h"
#include "platform/file.h"
#include "quantize/tensor_role.h"

namespace sluice {

namespace {

// Vocabulary, merges and header, a token, in files of today's large vocabularies.
constexpr uint64_t kTokenizerBytesPerToken = 128;
constexpr uint64_t kMaxProfileBytes = kMiB;

// Storage is measured with a file of this size where there is no model to measure it with.
constexpr uint64_t kScratchBytes = 448 * kMiB;

std::vector<plan::StorageRate> ProbeWithScratchFile(const runtime::Context& context,
                                                    const std::string& folder) {
  const std::string path = folder + "/storage-probe";
  const auto write = [&]() -> Status {
    SLUICE_TRY_ASSIGN(platform::AtomicWriter writer, platform::AtomicWriter::Create(path, kScratchBytes));
    std::vector<std::byte> block(4 * kMiB);
    uint64_t state = 1;  // bytes that no file system can squeeze
    for (uint64_t done = 0; done < kScratchBytes; done += block.size()) {
      for (size_t i = 0; i < block.size(); i += sizeof(state)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::memcpy(&block[i], &state, sizeof(state));
      }
      SLUICE_TRY(writer.Write(block));
    }
    return writer.Commit();
  };
  std::vector<plan::StorageRate> rates;
  if (write()) rates = plan::ProbeStorage(context, path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return rates;
}

// Where what was measured of this machine is kept.
std::string ProfilePath(const Engine& engine, const std::string& cache_folder) {
  return fmt::format("{}/device-{}.json", cache_folder, plan::Fingerprint(engine.context()));
}

}  // namespace

struct PlanSubject::Impl {
  std::optional<gguf::GgufFile> file;  // one of these two owns the tensors' names
  std::optional<gguf::Writer> writer;
  model::Config config;
  std::vector<gguf::Tensor> tensors;
  plan::ModelFacts facts;
};

PlanSubject::PlanSubject(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PlanSubject::PlanSubject(PlanSubject&&) noexcept = default;
PlanSubject& PlanSubject::operator=(PlanSubject&&) noexcept = default;
PlanSubject::~PlanSubject() = default;
const plan::ModelFacts& PlanSubject::facts() const { return impl_->facts; }

Result<PlanSubject> PlanSubject::OfFile(const std::string& path, const std::vector<std::string>& overrides) {
  auto impl = std::make_unique<Impl>();
  SLUICE_TRY_ASSIGN(impl->file, gguf::GgufFile::Open(path, gguf::Purpose::kInspect));
  for (const std::string& override : overrides)
    SLUICE_TRY(gguf::ApplyOverride(override, impl->file->metadata()));
  const auto make = [&]() -> Status {
    SLUICE_TRY_ASSIGN(impl->config, model::ReadConfig(impl->file->metadata()));
    SLUICE_TRY_ASSIGN(const text::Tokenizer tokenizer, model::ReadTokenizer(impl->file->metadata()));
    uint64_t tokenizer_bytes = tokenizer.memory_bytes();
    for (const gguf::Shard& shard : impl->file->shards()) tokenizer_bytes += shard.data_offset;
    impl->tensors.assign(impl->file->tensors().begin(), impl->file->tensors().end());
    SLUICE_TRY_ASSIGN(impl->facts, model::FactsOf(impl->config, impl->tensors, tokenizer_bytes));
    return {};
  };
  if (Status made = make(); !made) return Annotate(std::move(made).error(), path);
  return PlanSubject(std::move(impl));
}

Result<PlanSubject> PlanSubject::OfShape(const quantize::SynthShape& shape, const quantize::Mix& mix) {
  auto impl = std::make_unique<Impl>();
  gguf::Metadata metadata;
  quantize::SetShapeMetadata(shape, metadata);
  metadata.SetString("general.name", fmt::format("{} {}", shape.name, mix.name));
  SLUICE_TRY_ASSIGN(impl->config, model::ReadConfig(metadata));
  impl->writer.emplace(std::move(metadata));
  for (const quantize::SynthTensor& tensor : quantize::TensorsOf(shape)) {
    const bool matrix = tensor.kind == quantize::SynthTensor::Kind::kMatrix;
    const std::array<uint64_t, 2> dims{tensor.columns, tensor.rows};
    SLUICE_TRY(impl->writer->AddTensor(tensor.name,
                                       matrix ? quantize::FormatFor(mix, tensor.place) : formats::DType::kF32,
                                       std::span(dims).first(matrix ? 2 : 1)));
  }
  impl->tensors.assign(impl->writer->tensors().begin(), impl->writer->tensors().end());
  uint64_t offset = 0;  // as a file would have them
  for (gguf::Tensor& tensor : impl->tensors) {
    tensor.offset = offset;
    offset += AlignUp(tensor.size_bytes, gguf::kDefaultAlignment);
  }
  SLUICE_TRY_ASSIGN(impl->facts, model::FactsOf(impl->config, impl->tensors,
                                                kTokenizerBytesPerToken * shape.vocabulary_size));
  return PlanSubject(std::move(impl));
}

Result<PlanSubject> PlanSubject::OfConfig(std::string_view json, const quantize::Mix& mix) {
  SLUICE_TRY_ASSIGN(const quantize::SynthShape shape, ShapeOfConfig(json));
  return OfShape(shape, mix);
}

Result<plan::ModelFacts> PlanSubject::InType(const quantize::Mix& mix) const {
  std::vector<gguf::Tensor> tensors = impl_->tensors;
  const bool tied = impl_->facts.embedding_bytes == 0;
  uint64_t offset = 0;
  for (gguf::Tensor& tensor : tensors) {
    tensor.offset = offset;
    if (tensor.n_dims == 2) {
      const std::optional<quantize::Role> role = quantize::RoleOf(tensor.name);
      if (!role) continue;
      const uint32_t layer = quantize::SplitLayer(tensor.name).layer;
      const size_t place = std::min<size_t>(layer, impl_->config.layers.size() - 1);
      const model::LayerConfig& shape = impl_->config.layers[place];
      tensor.traits = &formats::Traits(quantize::FormatFor(
          mix, {.role = *role,
                .layer = layer,
                .layers = static_cast<uint32_t>(impl_->config.layers.size()),
                .heads_per_kv_head = static_cast<uint32_t>(shape.n_heads / shape.n_kv_heads),
                .tied = tied,
                .columns = tensor.columns()}));
      SLUICE_TRY(gguf::ComputeSize(tensor));
    }
    offset += AlignUp(tensor.size_bytes, gguf::kDefaultAlignment);
  }
  return model::FactsOf(impl_->config, tensors, impl_->facts.tokenizer_bytes);
}

std::optional<plan::DeviceProfile> MeasuredDevice(const Engine& engine, const std::string& cache_folder) {
  const auto text = platform::ReadWholeFile(ProfilePath(engine, cache_folder), kMaxProfileBytes);
  if (!text) return std::nullopt;
  auto known = plan::ParseDevice(*text);
  return known ? std::optional(*std::move(known)) : std::nullopt;
}

Result<plan::StorageReport> MeasureStorage(const Engine& engine, const std::string& model_path,
                                           uint64_t read_bytes) {
  return plan::MeasureStorage(engine.context(), model_path, read_bytes);
}

Result<plan::DeviceProfile> ThisDevice(const Engine& engine, const std::string& cache_folder,
                                       const std::string& model_path, bool again) {
  const runtime::Context& context = engine.context();
  plan::DeviceProfile device;
  bool changed = true;
  std::error_code ignored;
  std::filesystem::create_directories(cache_folder, ignored);
  if (auto known = MeasuredDevice(engine, cache_folder); known && !again) {
    device = *std::move(known);
    changed = false;
  }
  if (changed) {
    context.log.Info("measuring this device, once: some seconds");
    SLUICE_TRY_ASSIGN(device, plan::ProbeCompute(context));
  }
  if (device.storage.empty()) {
    if (!model_path.empty()) device.storage = plan::ProbeStorage(context, model_path);
    if (device.storage.empty()) device.storage = ProbeWithScratchFile(context, cache_folder);
    changed = changed || !device.storage.empty();
  }
  if (changed) {
    // A measurement that can't be kept is made again next time.
    const auto keep = [&]() -> Status {
      SLUICE_TRY_ASSIGN(platform::AtomicWriter writer, platform::AtomicWriter::Create(ProfilePath(engine, cache_folder)));
      SLUICE_TRY(writer.Write(plan::ToJson(device)));
      return writer.Commit();
    };
    if (const Status kept = keep(); !kept) context.log.Warn("{}", kept.error().message);
  }
  device.budget_bytes = engine.budget_bytes();
  return device;
}

Result<plan::DeviceProfile> NamedDevice(const std::string& name) {
  if (const plan::DeviceProfile* device = plan::FindDevice(name)) return *device;
  const auto text = platform::ReadWholeFile(name, kMaxProfileBytes);
  if (!text) {
    std::string names;
    for (const plan::DeviceProfile& device : plan::BuiltInDevices())
      names += (names.empty() ? "" : ", ") + device.name;
    return Fail(ErrorCode::kNotFound, "'{}' is no file and no device that is known; there are {}", name,
                names);
  }
  auto device = plan::ParseDevice(*text);
  if (!device) return Annotate(std::move(device).error(), name);
  return device;
}

}  // namespace sluice
