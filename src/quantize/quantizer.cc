#include "quantize/quantizer.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/units.h"
#include "formats/unpack.h"
#include "gguf/writer.h"
#include "platform/file.h"

namespace sluice::quantize {

using formats::DType;

namespace {

// Weights that are read, recoded and written in one go: little memory, and a quick answer to an interrupt.
constexpr uint64_t kChunkElements = 256 * kKiB;

Status CheckRequantizing(std::span<const gguf::Tensor> tensors, std::span<const TypeChoice> choices) {
  uint64_t count = 0;
  const gguf::Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (choices[i].dtype == tensors[i].traits->dtype || !formats::IsQuantised(tensors[i].traits->dtype))
      continue;
    if (count++ == 0) first = &tensors[i];
  }
  if (first == nullptr) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      "{} of {} tensors are quantised already (the first is {}, {}): what that lost stays lost, and the new "
      "type's error comes on top. Quantise from an F16, BF16 or F32 file, or allow it with "
      "--allow-requantize",
      count, tensors.size(), first->name, first->traits->name);
}

Result<gguf::Writer> MakeWriter(const gguf::GgufFile& source, const Mix& mix,
                                std::span<const TypeChoice> choices) {
  gguf::Metadata metadata;
  for (const gguf::Entry& entry : source.metadata().entries()) metadata.Set(entry);
  metadata.SetU32("general.file_type", mix.file_type);
  metadata.SetU32("general.quantization_version", 2);
  gguf::Writer writer(std::move(metadata));
  for (size_t i = 0; i < choices.size(); ++i) {
    const gguf::Tensor& tensor = source.tensors()[i];
    SLUICE_TRY(writer.AddTensor(tensor.name, choices[i].dtype, std::span(tensor.dims).first(tensor.n_dims)));
  }
  return writer;
}

// Streams tensor after tensor through the recoder into the writer.
class Stream {
 public:
  Stream(const gguf::GgufFile& source, const QuantizeOptions& options, parallel::ThreadPool& pool,
         gguf::Writer& writer)
      : source_(source), options_(options), writer_(writer), recoder_(pool), total_(source.tensor_bytes()) {}

  Result<TensorReport> Tensor(const gguf::Tensor& tensor, const TypeChoice& choice) {
    TensorReport report{.name = std::string(tensor.name),
                        .source = tensor.traits->dtype,
                        .dtype = choice.dtype,
                        .elements = tensor.elements(),
                        .source_bytes = tensor.size_bytes,
                        .recoded = choice.dtype != tensor.traits->dtype,
                        .substitute = choice.substitute};
    if (report.recoded) {
      SLUICE_TRY(Recode(tensor, report));
    } else {
      report.bytes = tensor.size_bytes;
      SLUICE_TRY(Copy(tensor));
    }
    return report;
  }

 private:
  Status Recode(const gguf::Tensor& tensor, TensorReport& report) {
    TensorImportance importance;
    if (options_.importance != nullptr) {
      SLUICE_TRY_ASSIGN(importance, ImportanceOf(*options_.importance, tensor));
      report.by_importance = !importance.weights.empty();
      report.unseen_matrices = importance.unseen_matrices;
    }
    const PieceLayout layout(tensor);
    const uint64_t step = layout.PiecesIn(kChunkElements);
    for (uint64_t first = 0; first < layout.count(); first += step) {
      const PieceRange range{first, std::min(step, layout.count() - first)};
      const auto extent = [&](DType dtype) {
        const uint64_t begin = layout.ByteOffset(dtype, first);
        return std::pair(begin, layout.ByteOffset(dtype, first + range.count) - begin);
      };
      const auto from = extent(report.source), to = extent(report.dtype);
      in_.resize(from.second);
      out_.resize(to.second);
      SLUICE_TRY(source_.Read(tensor, from.first, in_));
      const gguf::Tensor* const encoded = Encoded(tensor, report.dtype);
      if (encoded != nullptr) SLUICE_TRY(options_.encoded->Read(*encoded, to.first, out_));
      SLUICE_TRY_ASSIGN(
          const ErrorSums sums,
          recoder_.Recode(tensor, range, in_, report.dtype, importance,
                          encoded == nullptr ? Recoder::Target::kEncode : Recoder::Target::kCompare, out_));
      report.errors.Add(sums);
      report.bytes += out_.size();
      SLUICE_TRY(writer_.WriteData(out_));
      SLUICE_TRY(Advance(in_.size()));
    }
    return {};
  }

  // The tensor where it is there in this type already; null: it isn't.
  const gguf::Tensor* Encoded(const gguf::Tensor& tensor, DType dtype) const {
    const gguf::Tensor* const found =
        options_.encoded == nullptr ? nullptr : options_.encoded->Find(tensor.name);
    return found != nullptr && found->traits->dtype == dtype ? found : nullptr;
  }

  Status Copy(const gguf::Tensor& tensor) {
    for (uint64_t offset = 0; offset < tensor.size_bytes; offset += in_.size()) {
      in_.resize(std::min<uint64_t>(kMiB, tensor.size_bytes - offset));
      SLUICE_TRY(source_.Read(tensor, offset, in_));
      SLUICE_TRY(writer_.WriteData(in_));
      SLUICE_TRY(Advance(in_.size()));
    }
    return {};
  }

  Status Advance(uint64_t bytes) {
    done_ += bytes;
    if (!options_.progress || options_.progress(done_, total_)) return {};
    return Fail(ErrorCode::kInterrupted, "stopped at {} of {}", FormatBytes(done_), FormatBytes(total_));
  }

  const gguf::GgufFile& source_;
  const QuantizeOptions& options_;
  gguf::Writer& writer_;
  Recoder recoder_;
  std::vector<std::byte> in_, out_;
  const uint64_t total_;
  uint64_t done_ = 0;
};

// Points out the tensors whose relative error is far above what others of their type have.
void MarkDeserving(std::vector<TensorReport>& tensors) {
  const auto error_of = [](const TensorReport& tensor) {
    return tensor.by_importance ? tensor.errors.WeightedRelativeError() : tensor.errors.RelativeError();
  };
  std::map<DType, std::vector<double>> errors;
  for (const TensorReport& tensor : tensors) {
    if (tensor.recoded) errors[tensor.dtype].push_back(error_of(tensor));
  }
  for (auto& [dtype, all] : errors) std::ranges::sort(all);
  for (TensorReport& tensor : tensors) {
    if (!tensor.recoded || !formats::IsQuantised(tensor.dtype)) continue;
    const std::vector<double>& all = errors[tensor.dtype];
    const double median = all[(all.size() - 1) / 2];
    tensor.deserves_more = all.size() >= 3 && error_of(tensor) > kDeservesMore * median;
  }
}

}  // namespace

Result<QuantizeReport> Quantize(const gguf::GgufFile& source, const QuantizeOptions& options,
                                parallel::ThreadPool& pool, const gguf::SinkOpener& open) {
  std::vector<TypeChoice> choices = options.choices;
  if (choices.empty()) {
    SLUICE_TRY_ASSIGN(choices, ChooseTypes(source.tensors(), source.metadata(), options.types));
  }
  SLUICE_CHECK(choices.size() == source.tensors().size());
  if (!options.allow_requantize) SLUICE_TRY(CheckRequantizing(source.tensors(), choices));
  if (options.importance != nullptr) SLUICE_TRY(CheckSameModel(*options.importance, source.tensors()));
  SLUICE_TRY_ASSIGN(gguf::Writer writer, MakeWriter(source, *options.types.mix, choices));

  QuantizeReport report;
  SLUICE_TRY_ASSIGN(report.file_bytes, writer.FileBytes());
  SLUICE_TRY_ASSIGN(const std::unique_ptr<gguf::ByteSink> sink, open(report.file_bytes));
  SLUICE_TRY(writer.Begin(*sink));
  Stream stream(source, options, pool, writer);
  for (size_t i = 0; i < choices.size(); ++i) {
    SLUICE_TRY_ASSIGN(TensorReport tensor, stream.Tensor(source.tensors()[i], choices[i]));
    report.source_bytes += tensor.source_bytes;
    report.bytes += tensor.bytes;
    if (tensor.recoded && formats::IsQuantised(tensor.source)) ++report.requantized;
    if (tensor.recoded && options.importance != nullptr && !tensor.by_importance) ++report.without_importance;
    report.tensors.push_back(std::move(tensor));
  }
  SLUICE_TRY(writer.Finish());
  MarkDeserving(report.tensors);
  return report;
}

Result<uint64_t> QuantizedBytes(const gguf::GgufFile& source, const Mix& mix,
                                std::span<const TypeChoice> choices) {
  SLUICE_TRY_ASSIGN(const gguf::Writer writer, MakeWriter(source, mix, choices));
  return writer.FileBytes();
}

Result<QuantizeReport> QuantizeFile(const std::string& input, const std::string& output,
                                    const QuantizeOptions& options, parallel::ThreadPool& pool) {
  SLUICE_TRY_ASSIGN(const gguf::GgufFile source, gguf::GgufFile::Open(input));
  std::vector<std::string> paths = source.Paths();
  paths.insert(paths.end(), options.other_inputs.begin(), options.other_inputs.end());
  SLUICE_TRY_ASSIGN(const auto inputs, platform::IdentitiesOf(paths));
  return Quantize(source, options, pool,
                  [&](uint64_t file_bytes) { return gguf::CreateFileSink(output, file_bytes, inputs); });
}

}  // namespace sluice::quantize
