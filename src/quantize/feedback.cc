#include "quantize/feedback.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "formats/decode.h"
#include "formats/encode.h"
#include "formats/unpack.h"
#include "gguf/writer.h"
#include "quantize/feedback_encoder.h"
#include "quantize/recode.h"

namespace sluice::quantize {

EncodedTensors& EncodedTensors::operator=(EncodedTensors&& other) noexcept {
  std::swap(paths_, other.paths_);
  return *this;
}

void EncodedTensors::Remove() {
  for (const std::string& path : paths_) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  paths_.clear();
}

Status EncodedTensors::ReplaceIn(gguf::GgufFile& file) const {
  for (const std::string& path : paths_) SLUICE_TRY(file.Replace({path, {}}));
  return {};
}

namespace {

// Rows that are read and encoded in one go.
constexpr uint64_t kElementsAtOnce = uint64_t{1} << 20;

// Matrices that meet the same inputs.
struct Group {
  model::Stage stage;
  std::vector<const gguf::Tensor*> tensors;
};

}  // namespace

class FeedbackRun {
 public:
  FeedbackRun(const runtime::Context& context, const std::string& input, std::span<const TypeChoice> choices,
              FeedbackOptions options, std::string scratch)
      : context_(context),
        input_(input),
        choices_(choices),
        options_(std::move(options)),
        scratch_(std::move(scratch)) {}

  Result<EncodedTensors> Run() {
    SLUICE_TRY_ASSIGN(source_, OpenInput());
    SLUICE_TRY_ASSIGN(model::Config config, model::ReadConfig(source_->metadata()));
    SLUICE_TRY_ASSIGN(const model::Weights weights, model::BindWeights(config, *source_));
    layers_ = static_cast<int>(config.layers.size());
    SLUICE_TRY_ASSIGN(calibration_, Calibration::Create(context_, *source_, std::move(options_.text)));
    calibration_->set_go_on([this] { return !options_.progress || options_.progress(share_); });
    SLUICE_TRY(Embed(weights));
    for (int layer = 0; layer < layers_; ++layer) {
      SLUICE_TRY(EncodeLayer(layer, weights.layers[static_cast<size_t>(layer)]));
      share_ = (layer + 1.0) / (layers_ + 1.0);
    }
    SLUICE_TRY(EncodeOutput(weights));
    return std::move(encoded_);
  }

 private:
  Result<std::unique_ptr<gguf::GgufFile>> OpenInput() const {
    SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(input_));
    return std::make_unique<gguf::GgufFile>(std::move(file));
  }

  // The type that a tensor is to have, where it is a block format that it hasn't yet.
  std::optional<formats::DType> Wanted(const gguf::Tensor& tensor) const {
    const formats::DType dtype = choices_[static_cast<size_t>(&tensor - source_->tensors().data())].dtype;
    if (dtype == tensor.traits->dtype || !formats::IsQuantised(dtype)) return std::nullopt;
    return dtype;
  }

  // The stream begins with the embeddings as they will be looked up.
  Status Embed(const model::Weights& weights) {
    const gguf::Tensor& tensor = *weights.token_embedding.tensor;
    SLUICE_TRY_ASSIGN(const auto file, OpenInput());
    EncodedTensors plain;
    if (Wanted(tensor)) {
      SLUICE_TRY(Write({&tensor}, plain,
                       [&](const gguf::Tensor&, std::span<const float> rows, formats::DType dtype,
                           std::span<std::byte> blocks) -> Status {
                         const uint64_t columns = tensor.columns(), count = rows.size() / columns;
                         context_.pool->ParallelFor(
                             static_cast<int64_t>(count), 16, [&](int64_t begin, int64_t end, int) {
                               for (int64_t row = begin; row < end; ++row) {
                                 const auto at = static_cast<uint64_t>(row);
                                 formats::EncodeRow(dtype, rows.subspan(at * columns, columns), {},
                                                    blocks.data() + at * formats::RowBytes(dtype, columns));
                               }
                             });
                         return {};
                       }));
      SLUICE_TRY(plain.ReplaceIn(*file));
    }
    return calibration_->Embed(*file);
  }

  Status EncodeLayer(int layer, const model::LayerWeights& weights) {
    const std::array<std::pair<model::Stage, std::array<const ops::Linear*, 3>>, 4> stages = {{
        {model::Stage::kAttentionInput, {&weights.q, &weights.k, &weights.v}},
        {model::Stage::kAttended, {&weights.o}},
        {model::Stage::kFfnInput, {&weights.gate, &weights.up}},
        {model::Stage::kFfnActivated, {&weights.down}},
    }};
    SLUICE_TRY_ASSIGN(const auto file, OpenInput());
    for (const auto& stage : stages) {
      Group group{stage.first, {}};
      for (const ops::Linear* linear : stage.second) {
        if (linear == nullptr || !*linear || !Wanted(*linear->weight.tensor)) continue;
        // A file may hold several of them as one tensor.
        if (std::ranges::find(group.tensors, linear->weight.tensor) == group.tensors.end())
          group.tensors.push_back(linear->weight.tensor);
      }
      if (group.tensors.empty()) continue;
      SLUICE_TRY_ASSIGN(
          Hessian hessian,
          Hessian::Create(context_, static_cast<int64_t>(group.tensors[0]->columns()), options_.widest));
      SLUICE_TRY(calibration_->Gather(*file, layer, group.stage, hessian));
      SLUICE_TRY(Encode(group.tensors, std::move(hessian)));
      SLUICE_TRY(file->Replace({encoded_.paths_.back(), {}}));
    }
    return calibration_->Advance(*file, layer);
  }

  Status EncodeOutput(const model::Weights& weights) {
    const gguf::Tensor& tensor = *weights.output.weight.tensor;
    if (!Wanted(tensor)) return {};
    SLUICE_TRY_ASSIGN(Hessian hessian,
                      Hessian::Create(context_, static_cast<int64_t>(tensor.columns()), options_.widest));
    SLUICE_TRY(calibration_->GatherOutput(*source_, hessian));
    return Encode({&tensor}, std::move(hessian));
  }

  Status Encode(const std::vector<const gguf::Tensor*>& tensors, Hessian hessian) {
    const auto annotate = [&](Error error) {
      return Annotate(std::move(error), fmt::format("tensor {}", tensors[0]->name));
    };
    if (Status finished = hessian.Finish(options_.damping); !finished)
      return annotate(std::move(finished).error());
    const auto factor = FactorOf(context_, std::move(hessian));
    if (!factor) return annotate(factor.error());
    std::optional<FeedbackEncoder> encoder;
    const gguf::Tensor* encoded = nullptr;  // what the encoder is for
    return Write(tensors, encoded_,
                 [&](const gguf::Tensor& tensor, std::span<const float> rows, formats::DType dtype,
                     std::span<std::byte> blocks) -> Status {
                   if (encoded != &tensor) {
                     encoder.reset();  // its memory goes before more is taken
                     SLUICE_TRY_ASSIGN(encoder, FeedbackEncoder::Create(context_, *factor, dtype));
                   }
                   encoded = &tensor;
                   encoder->Encode(rows, blocks);
                   return {};
                 });
  }

  // A file of these tensors in the types that they are to have, with blocks that `encode` makes of some rows
  // at a time.
  using EncodeRows = std::function<Status(const gguf::Tensor& tensor, std::span<const float> rows,
                                          formats::DType dtype, std::span<std::byte> blocks)>;
  Status Write(const std::vector<const gguf::Tensor*>& tensors, EncodedTensors& files,
               const EncodeRows& encode) {
    gguf::Writer writer{gguf::Metadata()};
    for (const gguf::Tensor* tensor : tensors)
      SLUICE_TRY(
          writer.AddTensor(tensor->name, *Wanted(*tensor), std::span(tensor->dims).first(tensor->n_dims)));
    SLUICE_TRY_ASSIGN(const uint64_t bytes, writer.FileBytes());
    const std::string path = fmt::format("{}-{}", scratch_, ++files_);
    SLUICE_TRY_ASSIGN(const auto sink, gguf::CreateFileSink(path, bytes));
    SLUICE_TRY(writer.Begin(*sink));
    std::vector<std::byte> in, out;
    std::vector<float> rows;
    for (const gguf::Tensor* tensor : tensors) {
      const formats::DType dtype = *Wanted(*tensor);
      const uint64_t columns = tensor->columns(), step = std::max<uint64_t>(8, kElementsAtOnce / columns);
      for (uint64_t first = 0; first < tensor->rows(); first += step) {
        const uint64_t count = std::min(step, tensor->rows() - first);
        const uint64_t row_bytes = formats::RowBytes(tensor->traits->dtype, columns);
        in.resize(count * row_bytes);
        rows.resize(count * columns);
        out.resize(count * formats::RowBytes(dtype, columns));
        SLUICE_TRY(source_->Read(*tensor, first * row_bytes, in));
        formats::DecodeRow(tensor->traits->dtype, in.data(), rows);
        if (const size_t unfit = formats::FindUnfitValue(dtype, rows); unfit < rows.size())
          return UnfitError(*tensor, first + unfit / columns, unfit % columns, rows[unfit], dtype);
        SLUICE_TRY(encode(*tensor, rows, dtype, out));
        SLUICE_TRY(writer.WriteData(out));
        if (options_.progress && !options_.progress(share_))
          return Fail(ErrorCode::kInterrupted, "stopped at {}", tensor->name);
      }
    }
    SLUICE_TRY(writer.Finish());
    files.paths_.push_back(path);
    return {};
  }

  const runtime::Context& context_;
  const std::string& input_;
  const std::span<const TypeChoice> choices_;
  FeedbackOptions options_;
  const std::string scratch_;
  std::unique_ptr<gguf::GgufFile> source_;
  std::unique_ptr<Calibration> calibration_;
  EncodedTensors encoded_;
  int layers_ = 0, files_ = 0;
  double share_ = 0;
};

Result<EncodedTensors> EncodeWithFeedback(const runtime::Context& context, const std::string& input,
                                          std::span<const TypeChoice> choices, FeedbackOptions options,
                                          const std::string& scratch) {
  return FeedbackRun(context, input, choices, std::move(options), scratch).Run();
}

}  // namespace sluice::quantize
