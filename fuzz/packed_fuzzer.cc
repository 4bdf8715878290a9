// The tensors of a GPTQ or AWQ weight are hostile: their types, shapes, groups, scales and codes. What is
// taken for a matrix must give the same numbers as floats and as blocks.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "convert/packed_matrix.h"
#include "formats/decode.h"

using namespace sluice;
using namespace sluice::convert;

namespace {

// A folder with the one file that a checkpoint is read from.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "packed_fuzzer_XXXXXX").string();
  Folder() {
    if (mkdtemp(path.data()) == nullptr) __builtin_trap();
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

// Takes decisions from the input; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : bytes_(data, size) {}
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  // What belongs there; one time in sixteen anything else.
  uint64_t Size(uint64_t right) {
    const uint8_t byte = Byte();
    return byte % 16 == 15 ? byte / 16 : right;
  }
  std::string Bytes(size_t count) {
    std::string bytes;
    while (bytes.size() < count) bytes += static_cast<char>(Byte());
    return bytes;
  }

 private:
  std::span<const uint8_t> bytes_;
};

class SafetensorsFile {
 public:
  void Add(const std::string& name, Input& input, std::string_view type, uint64_t rows, uint64_t columns) {
    rows = input.Size(rows);
    columns = input.Size(columns);
    constexpr std::array<std::string_view, 3> kOthers = {"F32", "I16", "BF16"};
    if (const uint8_t other = input.Byte(); other % 16 < kOthers.size()) type = kOthers[other % 16];
    const uint64_t bytes = rows * columns * ElementBytes(*ElementTypeByName(type));
    const std::string shape = columns == 1 ? fmt::format("{}", rows) : fmt::format("{},{}", rows, columns);
    header_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                           header_.empty() ? "" : ",", name, type, shape, data_.size(), data_.size() + bytes);
    data_ += input.Bytes(static_cast<size_t>(bytes));
  }
  void Write(const std::string& path) const {
    const std::string header = "{" + header_ + "}";
    const uint64_t size = header.size();
    std::ofstream(path, std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&size), sizeof(size)) << header << data_;
  }

 private:
  std::string header_, data_;
};

// Floats and blocks of each row agree: of Q4_1 the minimum is rounded to f16, and scales that were no f16
// are.
void Compare(const PackedMatrix& matrix) {
  std::vector<float> floats(matrix.columns()), decoded(matrix.columns());
  const auto type = matrix.BlockType();
  std::vector<std::byte> blocks(type ? formats::RowBytes(*type, matrix.columns()) : 0);
  for (uint64_t row = 0; row < matrix.rows(); ++row) {
    matrix.ReadRow(row, floats);
    if (!type) continue;
    matrix.WriteBlocks(row, *type, blocks.data());
    formats::DecodeRow(*type, blocks.data(), decoded);
    float largest = 0;
    for (const float value : floats) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < floats.size(); ++i) {
      // Two roundings to 11 bits of up to 16 scales each, and what f16 has below its normal numbers.
      if (!(std::fabs(floats[i] - decoded[i]) <= 0x1p-5f * largest + 0x1p-18f)) __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  Input input(data, size);
  const uint8_t kind = input.Byte();
  const PackingConfig config{.packing = static_cast<Packing>(kind % 3),
                             .group_size = input.Size(std::array{0u, 8u, 32u, 64u}[kind / 4 % 4])};
  const uint64_t rows = 8 * (1 + input.Byte() % 3), columns = 8 * (1 + input.Byte() % 12);
  const uint64_t group = config.group_size == 0 ? columns : config.group_size;
  const uint64_t groups = (columns + group - 1) / group;
  const bool awq = config.packing == Packing::kAwq;
  SafetensorsFile file;
  file.Add("w.qweight", input, "I32", awq ? columns : columns / 8, awq ? rows / 8 : rows);
  file.Add("w.qzeros", input, "I32", groups, rows / 8);
  file.Add("w.scales", input, "F16", groups, rows);
  if (kind >= 128) file.Add("w.g_idx", input, "I32", columns, 1);
  file.Write(folder.path + "/model.safetensors");
  const auto checkpoint = Checkpoint::Open(folder.path);
  if (!checkpoint) return 0;
  const auto tensors = FindPacked(*checkpoint, "w");
  if (!tensors) return 0;
  const auto matrix = PackedMatrix::Load(*checkpoint, *tensors, config);
  if (matrix && matrix->rows() <= 4096 && matrix->columns() <= 4096) Compare(*matrix);
  return 0;
}
