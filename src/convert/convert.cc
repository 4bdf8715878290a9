#include "convert/convert.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/units.h"
#include "convert/checkpoint.h"
#include "convert/hyperparameters.h"
#include "convert/tokenizer.h"
#include "formats/encode.h"
#include "gguf/writer.h"
#include "model/config.h"
#include "model/weights.h"

namespace sluice::convert {

namespace {

namespace fs = std::filesystem;
using formats::DType;

constexpr uint64_t kPieceFloats = 1u << 20;  // of a tensor, in memory at once
constexpr uint64_t kMaxConfigBytes = 16u << 20;
constexpr size_t kMostNames = 5;  // in a message

// A tensor of the file that is made.
struct Output {
  std::string name;
  DType dtype = DType::kF32;
  uint64_t rows = 0, columns = 0;
  bool vector = false;                   // one dimension
  const SourceTensor* source = nullptr;  // null: `values`
  Change change = Change::kNone;
  std::vector<float> values;
};

// Where in a pass a tensor is used: token embedding, layers in turn, output.
std::pair<int, size_t> OrderOf(std::string_view name) {
  constexpr std::array<std::string_view, 19> kWithinLayer{"attn_norm.",
                                                          "attn_norm_2.",
                                                          "attn_qkv.",
                                                          "attn_q.",
                                                          "attn_k.",
                                                          "attn_v.",
                                                          "attn_q_norm.",
                                                          "attn_k_norm.",
                                                          "attn_sub_norm.",
                                                          "attn_output.",
                                                          "post_attention_norm.",
                                                          "ffn_norm.",
                                                          "ffn_gate.",
                                                          "ffn_up.",
                                                          "ffn_sub_norm.",
                                                          "ffn_down.",
                                                          "post_ffw_norm.",
                                                          "layer_output_norm.",
                                                          ""};
  constexpr int kBehind = 1 << 20;
  if (!name.starts_with("blk.")) {
    if (name.starts_with("output_norm")) return {kBehind, 0};
    if (name.starts_with("output.")) return {kBehind, 1};
    return {-1, 0};
  }
  int layer = 0;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  const std::string_view rest = name.substr(static_cast<size_t>(end - name.data()) + 1);
  const auto* found =
      std::ranges::find_if(kWithinLayer, [&](std::string_view stem) { return rest.starts_with(stem); });
  return {layer, static_cast<size_t>(found - kWithinLayer.begin())};
}

// The type that a matrix keeps when nothing else was asked for.
DType OwnType(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return DType::kF16;
    case ElementType::kBF16:
    case ElementType::kF8E4M3:
    case ElementType::kF8E5M2:
      return DType::kBF16;
    default:
      return DType::kF32;
  }
}

class Converter {
 public:
  Converter(const Checkpoint& checkpoint, const Hyperparameters& parameters, const ConvertOptions& options,
            parallel::ThreadPool& pool, std::vector<std::string>* warnings)
      : checkpoint_(checkpoint),
        parameters_(parameters),
        options_(options),
        pool_(pool),
        warnings_(*warnings) {}

  Status PlaceTensors();
  Status ChooseTypes();
  Status Write(gguf::Writer& writer, gguf::ByteSink& sink);

  std::vector<Output>& outputs() { return outputs_; }
  uint64_t embedding_rows() const;

 private:
  Status Place(const SourceTensor& tensor);
  uint64_t TotalBytes() const;
  Status Advance(uint64_t bytes);
  // Calls fn(first row, rows, floats) for a tensor's rows in pieces, changed as it needs.
  template <typename F>
  Status ForEachPiece(const Output& output, F&& fn);
  Status ReadTransposed(const Output& output, std::vector<float>& floats);
  void PairRows(const Output& output, std::span<float> piece);
  Status CheckFinite(const Output& output, uint64_t first_row, std::span<const float> floats) const;

  const Checkpoint& checkpoint_;
  const Hyperparameters& parameters_;
  const ConvertOptions& options_;
  parallel::ThreadPool& pool_;
  std::vector<std::string>& warnings_;
  std::vector<Output> outputs_;
  std::vector<float> scratch_;
  uint64_t scanned_bytes_ = 0, done_bytes_ = 0;
};

uint64_t Converter::embedding_rows() const {
  const auto found = std::ranges::find(outputs_, "token_embd.weight", &Output::name);
  return found == outputs_.end() ? 0 : found->rows;
}

Status Converter::Place(const SourceTensor& tensor) {
  const std::optional<convert::Place> place = PlaceOf(*parameters_.family, tensor.name);
  if (!place) return Fail(ErrorCode::kNotFound, "{}", tensor.name);
  if (parameters_.tied && place->name == "output.weight") return {};  // it is the token embedding
  if (tensor.shape.empty() || tensor.shape.size() > 2 || tensor.elements() == 0) {
    return Fail(ErrorCode::kUnsupported, "tensor {} has the shape [{}]; expected one or two dimensions",
                tensor.name, fmt::join(tensor.shape, ", "));
  }
  if (!IsFloat(tensor.type)) {
    return Fail(ErrorCode::kUnsupported, "tensor {} has numbers of type {}; weights are floats", tensor.name,
                Name(tensor.type));
  }
  Output output{.name = place->name,
                .rows = tensor.rows(),
                .columns = tensor.columns(),
                .vector = tensor.shape.size() == 1,
                .source = &tensor,
                .change = place->change};
  if (output.change == Change::kTranspose) std::swap(output.rows, output.columns);
  const bool pairs = output.change == Change::kPairQueries || output.change == Change::kPairKeys;
  // A bias has one number for each row of its matrix.
  if (pairs && output.vector) std::swap(output.rows, output.columns);
  const int64_t heads = output.change == Change::kPairQueries ? parameters_.n_heads : parameters_.n_kv_heads;
  if (pairs && output.rows != static_cast<uint64_t>(heads * parameters_.head_dim)) {
    return Fail(ErrorCode::kCorrupt, "tensor {} has {} rows; expected {} heads of {}", tensor.name,
                output.rows, heads, parameters_.head_dim);
  }
  outputs_.push_back(std::move(output));
  return {};
}

Status Converter::PlaceTensors() {
  std::vector<std::string> unplaced;
  for (const SourceTensor& tensor : checkpoint_.tensors()) {
    if (IsComputed(tensor.name)) continue;
    Status placed = Place(tensor);
    if (placed) continue;
    if (placed.error().code != ErrorCode::kNotFound) return placed;
    unplaced.push_back(tensor.name);
  }
  if (!unplaced.empty()) {
    const auto shown = std::span(unplaced).first(std::min(unplaced.size(), kMostNames));
    return Fail(ErrorCode::kUnsupported,
                "{} tensors have no place in a model of type {}; without them the output would be "
                "wrong: {}{}",
                unplaced.size(), parameters_.family->model_type, fmt::join(shown, ", "),
                unplaced.size() > kMostNames ? " …" : "");
  }
  for (const ComputedTensor& tensor : parameters_.tensors) {
    outputs_.push_back({.name = tensor.name,
                        .rows = 1,
                        .columns = tensor.values.size(),
                        .vector = true,
                        .values = tensor.values});
  }
  std::ranges::stable_sort(outputs_, {}, [](const Output& output) { return OrderOf(output.name); });
  std::set<std::string_view> names;
  for (const Output& output : outputs_) {
    if (!names.insert(output.name).second)
      return Fail(ErrorCode::kCorrupt, "two tensors of the checkpoint are {}", output.name);
  }
  return {};
}

// Vectors are F32. A matrix that F16 can't hold stays BF16; one whose rows are no whole blocks becomes F16.
Status Converter::ChooseTypes() {
  uint64_t kept = 0;
  for (Output& output : outputs_) {
    if (output.vector) continue;
    output.dtype = options_.type.value_or(OwnType(output.source->type));
    if (output.dtype == DType::kQ8_0 && output.columns % 32 != 0) output.dtype = DType::kF16;
    if (output.dtype != DType::kF16 || output.source->type == ElementType::kF16) continue;
    bool fits = true;
    SLUICE_TRY(ForEachPiece(output, [&](uint64_t, uint64_t, std::span<const float> floats) -> Status {
      fits = fits && formats::FindUnfitValue(DType::kF16, floats) == floats.size();
      return {};
    }));
    scanned_bytes_ += output.source->size_bytes;
    if (fits) continue;
    output.dtype = DType::kBF16;
    ++kept;
  }
  if (kept > 0) {
    warnings_.push_back(fmt::format("{} tensors hold numbers beyond F16's 65504 and became BF16", kept));
  }
  return {};
}

uint64_t Converter::TotalBytes() const {
  uint64_t total = scanned_bytes_;
  for (const Output& output : outputs_) total += output.source == nullptr ? 0 : output.source->size_bytes;
  return total;
}

Status Converter::Advance(uint64_t bytes) {
  done_bytes_ += bytes;
  if (!options_.progress || options_.progress(std::min(done_bytes_, TotalBytes()), TotalBytes())) return {};
  return Fail(ErrorCode::kInterrupted, "stopped while converting");
}

template <typename F>
Status Converter::ForEachPiece(const Output& output, F&& fn) {
  if (output.source == nullptr) return fn(0, output.rows, output.values);
  std::vector<float>& floats = scratch_;
  if (output.change == Change::kTranspose) {
    SLUICE_TRY(ReadTransposed(output, floats));
    SLUICE_TRY(CheckFinite(output, 0, floats));
    SLUICE_TRY(Advance(output.source->size_bytes));
    return fn(0, output.rows, floats);
  }
  uint64_t step = std::max<uint64_t>(1, kPieceFloats / output.columns);
  const bool pairs = output.change == Change::kPairQueries || output.change == Change::kPairKeys;
  const auto head_dim = static_cast<uint64_t>(parameters_.head_dim);
  if (pairs) step = std::max<uint64_t>(1, step / head_dim) * head_dim;
  for (uint64_t first = 0; first < output.rows; first += step) {
    const uint64_t rows = std::min(step, output.rows - first);
    floats.resize(static_cast<size_t>(rows * output.columns));
    SLUICE_TRY(checkpoint_.Read(*output.source, first * output.columns, floats));
    SLUICE_TRY(CheckFinite(output, first, floats));
    if (pairs) PairRows(output, floats);
    if (output.change == Change::kAddOne) {
      for (float& x : floats) x += 1.0f;
    }
    SLUICE_TRY(Advance(rows * output.columns * ElementBytes(output.source->type)));
    SLUICE_TRY(fn(first, rows, floats));
  }
  return {};
}

Status Converter::ReadTransposed(const Output& output, std::vector<float>& floats) {
  std::vector<float> stored(static_cast<size_t>(output.source->elements()));
  SLUICE_TRY(checkpoint_.Read(*output.source, 0, stored));
  floats.resize(stored.size());
  for (size_t r = 0; r < output.rows; ++r) {
    for (size_t c = 0; c < output.columns; ++c) floats[r * output.columns + c] = stored[c * output.rows + r];
  }
  return {};
}

// Within each head: row i and row i + head_dim / 2 become neighbours.
void Converter::PairRows(const Output& output, std::span<float> piece) {
  const auto columns = static_cast<size_t>(output.columns),
             head_dim = static_cast<size_t>(parameters_.head_dim);
  std::vector<float> head(head_dim * columns);
  for (size_t first = 0; first < piece.size(); first += head.size()) {
    for (size_t row = 0; row < head_dim; ++row) {
      const size_t from = row % 2 == 0 ? row / 2 : head_dim / 2 + row / 2;
      std::copy_n(piece.begin() + static_cast<ptrdiff_t>(first + from * columns), columns,
                  head.begin() + static_cast<ptrdiff_t>(row * columns));
    }
    std::ranges::copy(head, piece.begin() + static_cast<ptrdiff_t>(first));
  }
}

Status Converter::CheckFinite(const Output& output, uint64_t first_row, std::span<const float> floats) const {
  for (size_t i = 0; i < floats.size(); ++i) {
    if (std::isfinite(floats[i])) continue;
    return Fail(ErrorCode::kCorrupt, "tensor {} ({}): element {} of row {} is {}", output.source->name,
                checkpoint_.file_of(*output.source), i % output.columns, first_row + i / output.columns,
                floats[i]);
  }
  return {};
}

Status Converter::Write(gguf::Writer& writer, gguf::ByteSink& sink) {
  SLUICE_TRY(writer.Begin(sink));
  std::vector<std::byte> bytes;
  for (const Output& output : outputs_) {
    const uint64_t row_bytes = formats::RowBytes(output.dtype, output.columns);
    SLUICE_TRY(ForEachPiece(output, [&](uint64_t, uint64_t rows, std::span<const float> floats) -> Status {
      bytes.resize(static_cast<size_t>(rows * row_bytes));
      pool_.ParallelFor(static_cast<int64_t>(rows), 16, [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          formats::EncodeRow(output.dtype,
                             floats.subspan(static_cast<size_t>(row) * output.columns, output.columns), {},
                             bytes.data() + static_cast<uint64_t>(row) * row_bytes);
        }
      });
      return writer.WriteData(bytes);
    }));
  }
  return writer.Finish();
}

// general.file_type, as GGUF files number the types of most of their matrices.
uint32_t FileType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 1;
    case DType::kQ8_0:
      return 7;
    case DType::kBF16:
      return 32;
    default:
      return 0;
  }
}

}  // namespace

Result<ConvertReport> ConvertFolder(const std::string& folder, const std::string& output,
                                    const ConvertOptions& options, parallel::ThreadPool& pool) {
  ConvertReport report;
  SLUICE_TRY_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(folder));
  const std::string config_path = (fs::path(folder) / "config.json").string();
  SLUICE_TRY_ASSIGN(const nlohmann::json config, ReadJsonObject(config_path, kMaxConfigBytes));
  if (config.contains("quantization_config")) {
    return Fail(ErrorCode::kUnsupported,
                "{}: the checkpoint is quantised already (quantization_config); convert the one it was "
                "made from",
                config_path);
  }
  gguf::Metadata metadata;
  SLUICE_TRY_ASSIGN(Hyperparameters parameters,
                    ReadHyperparameters(JsonObject(config, config_path), metadata));
  report.warnings = std::move(parameters.warnings);
  report.architecture = parameters.family->architecture;
  const std::string folder_name = fs::weakly_canonical(folder).filename().string();
  metadata.SetString("general.type", "model");
  metadata.SetString("general.name", options.name.empty() ? folder_name : options.name);

  Converter converter(checkpoint, parameters, options, pool, &report.warnings);
  SLUICE_TRY(converter.PlaceTensors());
  metadata.SetU32(fmt::format("{}.vocab_size", report.architecture),
                  static_cast<uint32_t>(converter.embedding_rows()));
  SLUICE_TRY(ConvertTokenizer(
      folder, {.embedding_rows = static_cast<int64_t>(converter.embedding_rows()), .pre = options.pre},
      metadata, &report.warnings));
  SLUICE_TRY(converter.ChooseTypes());
  std::map<DType, uint64_t> bytes_of;
  for (const Output& tensor : converter.outputs()) bytes_of[tensor.dtype] += tensor.rows * tensor.columns;
  const auto most = std::ranges::max_element(bytes_of, {}, [](const auto& entry) { return entry.second; });
  metadata.SetU32("general.file_type", FileType(most->first));
  metadata.SetU32("general.quantization_version", 2);

  gguf::Writer writer(std::move(metadata));
  for (const Output& tensor : converter.outputs()) {
    const uint64_t elements = tensor.rows * tensor.columns;
    report.parameters += elements;
    ++report.tensors;
    if (tensor.vector) {
      SLUICE_TRY(writer.AddTensor(tensor.name, tensor.dtype, {elements}));
    } else {
      SLUICE_TRY(writer.AddTensor(tensor.name, tensor.dtype, {tensor.columns, tensor.rows}));
    }
  }
  SLUICE_TRY_ASSIGN(model::Config made, model::ReadConfig(writer.metadata()));
  SLUICE_TRY(model::BindDirectory(made, writer.tensors()));
  SLUICE_TRY_ASSIGN(report.file_bytes, writer.FileBytes());
  SLUICE_TRY_ASSIGN(const auto sink,
                    gguf::CreateFileSink(output, report.file_bytes, checkpoint.identities()));
  SLUICE_TRY(converter.Write(writer, *sink));
  return report;
}

}  // namespace sluice::convert
