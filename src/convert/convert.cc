#include "convert/convert.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "base/units.h"
#include "convert/checkpoint.h"
#include "convert/hyperparameters.h"
#include "convert/output_tensor.h"
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
  Converter(const Checkpoint& checkpoint, const Hyperparameters& parameters,
            const std::optional<PackingConfig>& packing, const ConvertOptions& options,
            parallel::ThreadPool& pool, std::vector<std::string>* warnings)
      : checkpoint_(checkpoint),
        parameters_(parameters),
        packing_(packing),
        options_(options),
        pool_(pool),
        warnings_(*warnings) {}

  Status PlaceTensors();
  // The numbers that the checkpoint has in tensors and the file in arrays of its metadata.
  Status WriteNumbers(gguf::Metadata& metadata) const;
  Status ChooseTypes();
  Status Write(gguf::Writer& writer, gguf::ByteSink& sink);

  std::vector<OutputTensor>& outputs() { return outputs_; }
  uint64_t embedding_rows() const;

 private:
  // What holds a weight in the checkpoint: one tensor, or the parts of a packed one.
  struct Weight {
    std::string name;  // as if it were one tensor
    const SourceTensor* source = nullptr;
    std::optional<PackedTensors> packed;
  };
  Result<std::vector<Weight>> Weights();
  Status Place(const Weight& weight);
  Status PlaceOne(const Weight& weight, const convert::Place& place);
  void PlaceComputed();
  Status ChooseType(OutputTensor& output, uint64_t* kept);
  Result<DType> BlockTypeOf(const OutputTensor& output) const;
  uint64_t TotalBytes() const;
  Status Advance(uint64_t bytes);
  // Calls fn(rows, floats) for a tensor's rows in pieces.
  template <typename F>
  Status ForEachPiece(const OutputTensor& output, F&& fn);
  Status WriteFloats(const OutputTensor& output, gguf::Writer& writer);
  Status WritePacked(const OutputTensor& output, gguf::Writer& writer);

  const Checkpoint& checkpoint_;
  const Hyperparameters& parameters_;
  const std::optional<PackingConfig>& packing_;
  const ConvertOptions& options_;
  parallel::ThreadPool& pool_;
  std::vector<std::string>& warnings_;
  std::vector<OutputTensor> outputs_;
  uint64_t scanned_bytes_ = 0, done_bytes_ = 0;
};

uint64_t Converter::embedding_rows() const {
  const auto found = std::ranges::find(outputs_, "token_embd.weight", &OutputTensor::name);
  return found == outputs_.end() ? 0 : found->rows;
}

// The checkpoint's tensors, those of packed weights taken together.
Result<std::vector<Converter::Weight>> Converter::Weights() {
  constexpr std::string_view kPackedCodes = ".qweight", kOtherParts[] = {".qzeros", ".scales", ".g_idx"};
  std::vector<Weight> weights;
  uint64_t others = 0;
  for (const SourceTensor& tensor : checkpoint_.tensors()) {
    if (IsComputed(tensor.name) || NumberPlaceOf(*parameters_.family, tensor.name)) continue;
    if (parameters_.has_other_parts && IsOfAnotherPart(tensor.name)) {
      ++others;
      continue;
    }
    const auto has_end = [&](std::string_view end) { return tensor.name.ends_with(end); };
    if (packing_ && has_end(kPackedCodes)) {
      const std::string stem = tensor.name.substr(0, tensor.name.size() - kPackedCodes.size());
      SLUICE_TRY_ASSIGN(const PackedTensors parts, FindPacked(checkpoint_, stem));
      weights.push_back({.name = stem + ".weight", .packed = parts});
    } else if (!packing_ || std::ranges::none_of(kOtherParts, has_end)) {
      weights.push_back({.name = tensor.name, .source = &tensor});
    }
  }
  if (others > 0) {
    warnings_.push_back(fmt::format(
        "{} tensors of the parts that see or hear are left out: the file is the language model", others));
  }
  return weights;
}

Status Converter::Place(const Weight& weight) {
  const std::vector<convert::Place> places = PlacesOf(*parameters_.family, weight.name);
  if (places.empty()) return Fail(ErrorCode::kNotFound, "{}", weight.name);
  for (const convert::Place& place : places) SLUICE_TRY(PlaceOne(weight, place));
  return {};
}

Status Converter::PlaceOne(const Weight& weight, const convert::Place& place) {
  if (parameters_.tied && place.name == "output.weight") return {};  // it is the token embedding
  OutputTensor output{
      .name = place.name, .source = weight.source, .packed = weight.packed, .change = place.change};
  if (weight.packed) {
    // A packed matrix is [out, in] whatever the family's own order.
    if (output.change == Change::kTranspose) output.change = Change::kNone;
    const SourceTensor& codes = *weight.packed->codes;
    if (codes.shape.size() != 2 || codes.elements() == 0) {
      return Fail(ErrorCode::kCorrupt, "tensor {} has the shape [{}]; expected two dimensions", codes.name,
                  fmt::join(codes.shape, ", "));
    }
    const bool awq = packing_->packing == Packing::kAwq;
    output.columns = codes.shape.front() * (awq ? 1 : 8);
    output.rows = codes.shape.back() * (awq ? 8 : 1);
  } else {
    const SourceTensor& tensor = *weight.source;
    if (tensor.shape.empty() || tensor.shape.size() > 2 || tensor.elements() == 0) {
      return Fail(ErrorCode::kUnsupported, "tensor {} has the shape [{}]; expected one or two dimensions",
                  tensor.name, fmt::join(tensor.shape, ", "));
    }
    if (!IsFloat(tensor.type)) {
      return Fail(ErrorCode::kUnsupported, "tensor {} has numbers of type {}; weights are floats",
                  tensor.name, Name(tensor.type));
    }
    // Of a vector each number counts as a row: a bias has one for each row of its matrix.
    output.vector = tensor.shape.size() == 1;
    output.rows = output.vector ? tensor.elements() : tensor.rows();
    output.columns = output.vector ? 1 : tensor.columns();
    if (output.change == Change::kTranspose) std::swap(output.rows, output.columns);
  }
  output.order = RowOrder::Of(output.change, parameters_.heads, output.rows);
  if (output.rows != output.order.source_rows()) {
    return Fail(ErrorCode::kCorrupt,
                "tensor {} has {} rows; expected {}: {} heads of queries and {} of keys, of {}", weight.name,
                output.rows, output.order.source_rows(), parameters_.heads.queries, parameters_.heads.keys,
                parameters_.heads.width);
  }
  output.rows = output.order.rows();
  outputs_.push_back(std::move(output));
  return {};
}

void Converter::PlaceComputed() {
  for (const ComputedTensor& tensor : parameters_.tensors) {
    outputs_.push_back({.name = tensor.name,
                        .rows = tensor.values.size(),
                        .columns = 1,
                        .vector = true,
                        .values = tensor.values});
  }
}

Status Converter::PlaceTensors() {
  SLUICE_TRY_ASSIGN(const std::vector<Weight> weights, Weights());
  std::vector<std::string> unplaced;
  for (const Weight& weight : weights) {
    Status placed = Place(weight);
    if (placed) continue;
    if (placed.error().code != ErrorCode::kNotFound) return placed;
    unplaced.push_back(weight.name);
  }
  if (!unplaced.empty()) {
    const auto shown = std::span(unplaced).first(std::min(unplaced.size(), kMostNames));
    return Fail(ErrorCode::kUnsupported,
                "{} tensors have no place in a model of type {}; without them the output would be "
                "wrong: {}{}",
                unplaced.size(), parameters_.family->model_type, fmt::join(shown, ", "),
                unplaced.size() > kMostNames ? " …" : "");
  }
  PlaceComputed();
  std::ranges::stable_sort(outputs_, {}, [](const OutputTensor& output) { return OrderOf(output.name); });
  std::set<std::string_view> names;
  for (const OutputTensor& output : outputs_) {
    if (!names.insert(output.name).second)
      return Fail(ErrorCode::kCorrupt, "two tensors of the checkpoint are {}", output.name);
  }
  return {};
}

Status Converter::WriteNumbers(gguf::Metadata& metadata) const {
  std::map<std::string_view, std::map<size_t, float>> arrays;
  for (const SourceTensor& tensor : checkpoint_.tensors()) {
    const auto place = NumberPlaceOf(*parameters_.family, tensor.name);
    if (!place) continue;
    float value = 0;
    if (tensor.elements() != 1)
      return Fail(ErrorCode::kCorrupt, "tensor {} has {} elements; expected 1", tensor.name,
                  tensor.elements());
    SLUICE_TRY(checkpoint_.Read(tensor, 0, {&value, 1}));
    arrays[place->key][place->layer] = value;
  }
  for (const auto& [key, by_layer] : arrays) {
    std::vector<float> values;
    for (const auto& [layer, value] : by_layer) {
      if (layer != values.size())
        return Fail(ErrorCode::kCorrupt, "layer {} has no number for {}", values.size(), key);
      values.push_back(value);
    }
    metadata.SetF32s(key, values);
  }
  return {};
}

// The type that keeps a packed weight's codes.
Result<DType> Converter::BlockTypeOf(const OutputTensor& output) const {
  SLUICE_TRY_ASSIGN(const TensorReader reader, TensorReader::Open(checkpoint_, output, *packing_));
  if (const auto type = reader.packed()->BlockType()) return *type;
  return Fail(
      ErrorCode::kUnsupported,
      "tensor {}: neighbouring columns have scales of different groups (its columns were put in the order of "
      "their importance, desc_act), which blocks of 32 can't keep; --type f16 or q8_0 unpacks the weights",
      output.named().name);
}

// Vectors are F32. A matrix that F16 can't hold stays BF16; one whose rows are no whole blocks becomes F16.
// Packed ones keep their codes unless another type was asked for.
Status Converter::ChooseType(OutputTensor& output, uint64_t* kept) {
  if (output.packed && !options_.type) {
    SLUICE_TRY_ASSIGN(output.dtype, BlockTypeOf(output));
    return {};
  }
  output.dtype = options_.type ? *options_.type : OwnType(output.source->type);
  if (output.dtype == DType::kQ8_0 && output.columns % 32 != 0) output.dtype = DType::kF16;
  const bool is_f16 = !output.packed && output.source->type == ElementType::kF16;
  if (output.dtype != DType::kF16 || is_f16) return {};
  bool fits = true;
  SLUICE_TRY(ForEachPiece(output, [&](uint64_t, std::span<const float> floats) -> Status {
    fits = fits && formats::FindUnfitValue(DType::kF16, floats) == floats.size();
    return {};
  }));
  scanned_bytes_ += output.source_bytes(output.rows);
  if (fits) return {};
  output.dtype = DType::kBF16;
  ++*kept;
  return {};
}

Status Converter::ChooseTypes() {
  uint64_t kept = 0;
  for (OutputTensor& output : outputs_) {
    if (!output.vector) SLUICE_TRY(ChooseType(output, &kept));
  }
  if (kept > 0) {
    warnings_.push_back(fmt::format("{} tensors hold numbers beyond F16's 65504 and became BF16", kept));
  }
  return {};
}

uint64_t Converter::TotalBytes() const {
  uint64_t total = scanned_bytes_;
  for (const OutputTensor& output : outputs_) total += output.source_bytes(output.rows);
  return total;
}

Status Converter::Advance(uint64_t bytes) {
  done_bytes_ += bytes;
  if (!options_.progress || options_.progress(std::min(done_bytes_, TotalBytes()), TotalBytes())) return {};
  return Fail(ErrorCode::kInterrupted, "stopped while converting");
}

template <typename F>
Status Converter::ForEachPiece(const OutputTensor& output, F&& fn) {
  if (output.is_computed()) return fn(output.rows, std::span<const float>(output.values));
  SLUICE_TRY_ASSIGN(TensorReader reader,
                    TensorReader::Open(checkpoint_, output, packing_.value_or(PackingConfig{})));
  const uint64_t step = std::max<uint64_t>(1, kPieceFloats / output.columns);
  std::vector<float> floats;
  for (uint64_t first = 0; first < output.rows; first += step) {
    const uint64_t rows = std::min(step, output.rows - first);
    floats.resize(static_cast<size_t>(rows * output.columns));
    SLUICE_TRY(reader.Read(first, floats));
    SLUICE_TRY(Advance(output.source_bytes(rows)));
    SLUICE_TRY(fn(rows, std::span<const float>(floats)));
  }
  return {};
}

Status Converter::WriteFloats(const OutputTensor& output, gguf::Writer& writer) {
  const uint64_t row_bytes = formats::RowBytes(output.dtype, output.columns);
  std::vector<std::byte> bytes;
  return ForEachPiece(output, [&](uint64_t rows, std::span<const float> floats) -> Status {
    bytes.resize(static_cast<size_t>(rows * row_bytes));
    pool_.ParallelFor(static_cast<int64_t>(rows), 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        formats::EncodeRow(output.dtype,
                           floats.subspan(static_cast<size_t>(row) * output.columns, output.columns), {},
                           bytes.data() + static_cast<uint64_t>(row) * row_bytes);
      }
    });
    return writer.WriteData(bytes);
  });
}

// The codes as they are, in the file's blocks.
Status Converter::WritePacked(const OutputTensor& output, gguf::Writer& writer) {
  SLUICE_TRY_ASSIGN(const TensorReader reader, TensorReader::Open(checkpoint_, output, *packing_));
  const uint64_t row_bytes = formats::RowBytes(output.dtype, output.columns);
  const uint64_t step = std::max<uint64_t>(1, kPieceFloats / output.columns);
  std::vector<std::byte> bytes;
  for (uint64_t first = 0; first < output.rows; first += step) {
    const uint64_t rows = std::min(step, output.rows - first);
    bytes.resize(static_cast<size_t>(rows * row_bytes));
    pool_.ParallelFor(static_cast<int64_t>(rows), 16, [&](int64_t begin, int64_t end, int) {
      for (auto row = static_cast<uint64_t>(begin); row < static_cast<uint64_t>(end); ++row)
        reader.packed()->WriteBlocks(output.order.SourceOf(first + row), output.dtype,
                                     bytes.data() + row * row_bytes);
    });
    SLUICE_TRY(Advance(output.source_bytes(rows)));
    SLUICE_TRY(writer.WriteData(bytes));
  }
  return {};
}

Status Converter::Write(gguf::Writer& writer, gguf::ByteSink& sink) {
  SLUICE_TRY(writer.Begin(sink));
  for (const OutputTensor& output : outputs_) {
    const bool keeps_codes = output.packed && !options_.type;
    SLUICE_TRY(keeps_codes ? WritePacked(output, writer) : WriteFloats(output, writer));
  }
  return writer.Finish();
}

// general.file_type, as GGUF files number the types of most of their matrices.
uint32_t FileType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kBF16:
      return 32;
    default:
      return 0;
  }
}

// How weights are packed: as config.json says, or, in older repositories, a file beside it that the method's
// own program wrote.
Result<std::optional<PackingConfig>> ReadPacking(const fs::path& folder, const JsonObject& config) {
  SLUICE_TRY_ASSIGN(const auto quantization, config.Object("quantization_config"));
  if (quantization) {
    SLUICE_TRY_ASSIGN(const PackingConfig packing, ReadPackingConfig(*quantization));
    return std::optional(packing);
  }
  for (const auto& [name, method] :
       {std::pair{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}}) {
    const std::string path = (folder / name).string();
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    SLUICE_TRY_ASSIGN(nlohmann::json json, ReadJsonObject(path, kMaxConfigBytes));
    if (!json.contains("quant_method")) json["quant_method"] = method;
    SLUICE_TRY_ASSIGN(const PackingConfig packing, ReadPackingConfig(JsonObject(json, path)));
    return std::optional(packing);
  }
  return std::optional<PackingConfig>();
}

}  // namespace

Result<ConvertReport> ConvertFolder(const std::string& folder, const std::string& output,
                                    const ConvertOptions& options, parallel::ThreadPool& pool) {
  ConvertReport report;
  SLUICE_TRY_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(folder));
  const std::string config_path = (fs::path(folder) / "config.json").string();
  SLUICE_TRY_ASSIGN(const nlohmann::json config, ReadJsonObject(config_path, kMaxConfigBytes));
  gguf::Metadata metadata;
  SLUICE_TRY_ASSIGN(Hyperparameters parameters,
                    ReadHyperparameters(JsonObject(config, config_path), metadata));
  SLUICE_TRY_ASSIGN(const std::optional<PackingConfig> packing,
                    ReadPacking(folder, JsonObject(config, config_path)));
  report.warnings = std::move(parameters.warnings);
  report.architecture = parameters.family->architecture;
  const std::string folder_name = fs::weakly_canonical(folder).filename().string();
  metadata.SetString("general.type", "model");
  metadata.SetString("general.name", options.name.empty() ? folder_name : options.name);

  Converter converter(checkpoint, parameters, packing, options, pool, &report.warnings);
  SLUICE_TRY(converter.PlaceTensors());
  SLUICE_TRY(converter.WriteNumbers(metadata));
  metadata.SetU32(fmt::format("{}.vocab_size", report.architecture),
                  static_cast<uint32_t>(converter.embedding_rows()));
  SLUICE_TRY(ConvertTokenizer(
      folder, {.embedding_rows = static_cast<int64_t>(converter.embedding_rows()), .pre = options.pre},
      metadata, &report.warnings));
  SLUICE_TRY(converter.ChooseTypes());
  std::map<DType, uint64_t> bytes_of;
  for (const OutputTensor& tensor : converter.outputs())
    bytes_of[tensor.dtype] += tensor.rows * tensor.columns;
  const auto most = std::ranges::max_element(bytes_of, {}, [](const auto& entry) { return entry.second; });
  metadata.SetU32("general.file_type", FileType(most->first));
  metadata.SetU32("general.quantization_version", 2);

  gguf::Writer writer(std::move(metadata));
  for (const OutputTensor& tensor : converter.outputs()) {
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
