// Checkpoints of GPTQ and AWQ. The test packs codes of its own and compares what the file holds with them.
#include <cmath>

#include "convert/convert_fixture.h"
#include "formats/blocks.h"

namespace sluice::convert {
namespace {

using formats::DType;
using testing::HasSubstr;

const std::string kStem = "model.layers.0.mlp.up_proj";
constexpr uint64_t kRows = 64, kColumns = 128;  // of OneLayer's, widened

// A matrix in codes, scales and zeros, as these methods understand it.
struct Codes {
  uint64_t rows = kRows, columns = kColumns, group_size = 32;
  std::vector<int> codes;          // [rows, columns]
  std::vector<float> scales;       // [groups, rows], each an f16
  std::vector<int> zeros;          // [groups, rows]
  std::vector<uint32_t> group_of;  // [columns]

  uint64_t groups() const { return columns / group_size; }
  float Value(uint64_t row, uint64_t column) const {
    const uint64_t at = group_of[column] * rows + row;
    return scales[at] * static_cast<float>(codes[row * columns + column] - zeros[at]);
  }
};

Codes MakeCodes(uint64_t group_size, bool symmetric) {
  Codes made{.group_size = group_size};
  uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
  for (uint64_t i = 0; i < made.rows * made.columns; ++i) made.codes.push_back(static_cast<int>(next() % 16));
  for (uint64_t i = 0; i < made.groups() * made.rows; ++i) {
    made.scales.push_back(F16ToF32(F32ToF16(0.001f + static_cast<float>(next() % 1000) * 1e-5f)));
    made.zeros.push_back(symmetric ? 8 : static_cast<int>(next() % 16));
  }
  for (uint64_t column = 0; column < made.columns; ++column)
    made.group_of.push_back(static_cast<uint32_t>(column / group_size));
  return made;
}

std::string Bytes(const std::vector<uint32_t>& words) {
  return std::string(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t));
}
std::string Halves(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const uint16_t half = F32ToF16(value);
    bytes.append(reinterpret_cast<const char*>(&half), sizeof(half));
  }
  return bytes;
}

void AddZerosAndScales(const Codes& codes, const std::array<int, 8>& order, int offset, OneLayer& layer) {
  std::vector<uint32_t> zeros;
  for (uint64_t group = 0; group < codes.groups(); ++group) {
    for (uint64_t first = 0; first < codes.rows; first += 8) {
      uint32_t word = 0;
      for (int bits = 0; bits < 8; ++bits) {
        const int zero = codes.zeros[group * codes.rows + first + static_cast<uint64_t>(order[bits])];
        word |= static_cast<uint32_t>((zero - offset) & 15) << 4 * bits;
      }
      zeros.push_back(word);
    }
  }
  layer.Add(kStem + ".qzeros", "I32", {codes.groups(), codes.rows / 8}, Bytes(zeros));
  layer.Add(kStem + ".scales", "F16", {codes.groups(), codes.rows}, Halves(codes.scales));
}

constexpr std::array<int, 8> kInTurn{0, 1, 2, 3, 4, 5, 6, 7}, kAwqOrder{0, 2, 4, 6, 1, 3, 5, 7};

// Eight rows of codes of one column in a word.
void AddGptq(const Codes& codes, bool v2, OneLayer& layer) {
  std::vector<uint32_t> words;
  for (uint64_t first = 0; first < codes.columns; first += 8) {
    for (uint64_t row = 0; row < codes.rows; ++row) {
      uint32_t word = 0;
      for (uint64_t i = 0; i < 8; ++i)
        word |= static_cast<uint32_t>(codes.codes[row * codes.columns + first + i]) << 4 * i;
      words.push_back(word);
    }
  }
  layer.Add(kStem + ".qweight", "I32", {codes.columns / 8, codes.rows}, Bytes(words));
  layer.Add(kStem + ".g_idx", "I32", {codes.columns}, Bytes(codes.group_of));
  AddZerosAndScales(codes, kInTurn, v2 ? 0 : 1, layer);
}

void AddAwq(const Codes& codes, OneLayer& layer) {
  std::vector<uint32_t> words;
  for (uint64_t column = 0; column < codes.columns; ++column) {
    for (uint64_t first = 0; first < codes.rows; first += 8) {
      uint32_t word = 0;
      for (int bits = 0; bits < 8; ++bits) {
        const uint64_t row = first + static_cast<uint64_t>(kAwqOrder[bits]);
        word |= static_cast<uint32_t>(codes.codes[row * codes.columns + column]) << 4 * bits;
      }
      words.push_back(word);
    }
  }
  layer.Add(kStem + ".qweight", "I32", {codes.columns, codes.rows / 8}, Bytes(words));
  AddZerosAndScales(codes, kAwqOrder, 0, layer);
}

class ConvertPackedTest : public ConvertTest {
 protected:
  // A layer as wide as the packed matrix wants, without the matrix that it takes the place of.
  static OneLayer Layer(const std::string& quantization) {
    OneLayer layer(kColumns);
    layer.Drop(kStem + ".weight");
    layer.Configure(R"(, "quantization_config": )" + quantization);
    return layer;
  }
  // Compares the file's matrix with the codes, block by block.
  void ExpectCodes(const Codes& codes, DType type) {
    const gguf::GgufFile made = Opened();
    const auto found = std::ranges::find(made.tensors(), "blk.0.ffn_up.weight", &gguf::Tensor::name);
    ASSERT_NE(found, made.tensors().end());
    ASSERT_EQ(found->traits->dtype, type);
    const std::vector<float> values = ValuesOf(made, *found);
    for (uint64_t row = 0; row < codes.rows; ++row) {
      for (uint64_t column = 0; column < codes.columns; ++column) {
        const uint64_t at = codes.group_of[column] * codes.rows + row;
        // Q4_1: the minimum is rounded to f16 once, and d · q + m to float.
        const float bound =
            type == DType::kQ4_0
                ? 0.0f
                : std::fabs(codes.scales[at]) * (static_cast<float>(codes.zeros[at]) * 0x1p-11f + 0x1p-20f);
        ASSERT_NEAR(values[row * codes.columns + column], codes.Value(row, column), bound)
            << row << ", " << column;
      }
    }
  }
};

TEST_F(ConvertPackedTest, GptqKeepsItsCodes) {
  for (const uint64_t group_size : {32u, 64u, 128u}) {
    for (const bool symmetric : {true, false}) {
      for (const bool v2 : {false, true}) {
        const Codes codes = MakeCodes(group_size, symmetric);
        OneLayer layer = Layer(fmt::format(
            R"({{"quant_method": "gptq", "bits": 4, "group_size": {}, "desc_act": false, "checkpoint_format": "{}"}})",
            group_size == 128 ? -1 : static_cast<int>(group_size), v2 ? "gptq_v2" : "gptq"));
        AddGptq(codes, v2, layer);
        const auto report = Convert(layer.Write(folder_));
        ASSERT_TRUE(report) << report.error().message;
        ExpectCodes(codes, symmetric ? DType::kQ4_0 : DType::kQ4_1);
      }
    }
  }
}

// GPTQ's first format stores zero − 1 in four bits, of zeros from 0 to 15 (its quantiser's range): 15 is what
// 0 − 1 leaves, and no 16.
TEST_F(ConvertPackedTest, AZeroOfNothingIsStoredAsFifteen) {
  Codes codes = MakeCodes(32, false);
  for (size_t i = 0; i < codes.zeros.size(); ++i) codes.zeros[i] = i % 3 == 0 ? 0 : 15;
  OneLayer layer = Layer(R"({"quant_method": "gptq", "bits": 4, "group_size": 32})");
  AddGptq(codes, false, layer);
  const auto report = Convert(layer.Write(folder_));
  ASSERT_TRUE(report) << report.error().message;
  ExpectCodes(codes, DType::kQ4_1);
}

TEST_F(ConvertPackedTest, AwqKeepsItsCodes) {
  for (const bool symmetric : {true, false}) {
    const Codes codes = MakeCodes(64, symmetric);
    OneLayer layer = Layer(
        R"({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": true, "version": "gemm"})");
    AddAwq(codes, layer);
    const auto report = Convert(layer.Write(folder_));
    ASSERT_TRUE(report) << report.error().message;
    ExpectCodes(codes, symmetric ? DType::kQ4_0 : DType::kQ4_1);
  }
}

constexpr char kGptq[] = R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true})";

// Queries are put in pairs like those that are not packed.
TEST_F(ConvertPackedTest, RowsOfHeadsArePaired) {
  const Codes codes = MakeCodes(32, true);
  OneLayer layer(kColumns);
  layer.Configure(std::string(R"(, "quantization_config": )") + kGptq);
  const std::string query = "model.layers.0.self_attn.q_proj";
  layer.Drop(query + ".weight");
  std::vector<uint32_t> words, zeros(kColumns / 32 * kColumns / 8, 0x77777777u);
  for (uint64_t first = 0; first < kColumns; first += 8) {
    for (uint64_t row = 0; row < kColumns; ++row)
      words.push_back(static_cast<uint32_t>(row % 16) * 0x11111111u);
  }
  layer.Add(query + ".qweight", "I32", {kColumns / 8, kColumns}, Bytes(words));
  layer.Add(query + ".qzeros", "I32", {kColumns / 32, kColumns / 8}, Bytes(zeros));
  layer.Add(query + ".scales", "F16", {kColumns / 32, kColumns},
            Halves(std::vector<float>(kColumns / 32 * kColumns, 1)));
  ASSERT_TRUE(Convert(layer.Write(folder_)));
  const gguf::GgufFile made = Opened();
  const auto found = std::ranges::find(made.tensors(), "blk.0.attn_q.weight", &gguf::Tensor::name);
  const std::vector<float> values = ValuesOf(made, *found);
  const uint64_t half = kColumns / 2 / 2;  // of one of two heads
  EXPECT_EQ(values[0], -8.0f);
  EXPECT_EQ(values[kColumns], static_cast<float>(half % 16) - 8.0f);
  EXPECT_EQ(values[2 * kColumns], 1.0f - 8.0f);
}

TEST_F(ConvertPackedTest, ColumnsInTheOrderOfImportance) {
  Codes codes = MakeCodes(32, false);
  std::ranges::reverse(codes.group_of);  // whole blocks still have one group
  OneLayer whole = Layer(kGptq);
  AddGptq(codes, false, whole);
  ASSERT_TRUE(Convert(whole.Write(folder_)));
  ExpectCodes(codes, DType::kQ4_1);
  fs::remove(folder_ / "out.gguf");

  for (uint64_t column = 0; column < codes.columns; ++column) codes.group_of[column] = column % 4;
  OneLayer mixed = Layer(kGptq);
  AddGptq(codes, false, mixed);
  EXPECT_THAT(ErrorOf(mixed.Write(folder_)), HasSubstr("up_proj.qweight: neighbouring columns"));
  // Unpacked on request, as the method itself would multiply.
  ASSERT_TRUE(Convert(folder_ / "in", {.type = DType::kF32}));
  const gguf::GgufFile made = Opened();
  const auto found = std::ranges::find(made.tensors(), "blk.0.ffn_up.weight", &gguf::Tensor::name);
  const std::vector<float> values = ValuesOf(made, *found);
  for (uint64_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], codes.Value(i / codes.columns, i % codes.columns)) << i;
}

// As repositories were before config.json said how weights are packed.
TEST_F(ConvertPackedTest, OldRepositoriesHaveAFileOfTheirOwn) {
  const Codes codes = MakeCodes(32, false);
  OneLayer gptq(kColumns);
  gptq.Drop(kStem + ".weight");
  AddGptq(codes, false, gptq);
  const std::string folder = gptq.Write(folder_);
  fs::rename(fs::path(folder) / "model.safetensors", fs::path(folder) / "gptq_model-4bit-32g.safetensors");
  folder_.Write("in/quantize_config.json", R"({"bits": 4, "group_size": 32, "desc_act": false, "sym": false,
      "damp_percent": 0.01, "true_sequential": true, "model_file_base_name": null})");
  const auto report = Convert(folder);
  ASSERT_TRUE(report) << report.error().message;
  ExpectCodes(codes, DType::kQ4_1);

  fs::remove(folder_ / "out.gguf");
  fs::remove_all(folder);
  OneLayer awq(kColumns);
  awq.Drop(kStem + ".weight");
  AddAwq(codes, awq);
  awq.Write(folder_);
  folder_.Write("in/quant_config.json",
                R"({"zero_point": true, "q_group_size": 32, "w_bit": 4, "version": "GEMM"})");
  ASSERT_TRUE(Convert(folder));
  ExpectCodes(codes, DType::kQ4_1);

  fs::remove(folder_ / "out.gguf");
  folder_.Write("in/quant_config.json", R"({"zero_point": true, "q_group_size": 32, "w_bit": 3})");
  EXPECT_THAT(ErrorOf(folder), HasSubstr("quant_config.json: weights of 3 bits"));
}

TEST_F(ConvertPackedTest, OtherMethodsAreRefused) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"quant_method": "bitsandbytes"})", "quantised by 'bitsandbytes'"},
      {R"({"quant_method": "fp8"})", "quantised by 'fp8'"},
      {R"({"bits": 4})", "quantised by ''"},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": 32})", "weights of 8 bits"},
      {R"({"quant_method": "gptq", "checkpoint_format": "marlin"})", "layout marlin"},
      {R"({"quant_method": "awq", "bits": 4, "version": "gemv"})", "layout gemv"},
      {R"({"quant_method": "gptq", "bits": "4"})", "bits is \"4\""},
      {R"("gptq")", "quantization_config is \"gptq\""}};
  for (const auto& [config, expected] : refused)
    EXPECT_THAT(ErrorOf(Layer(config).Write(folder_)), HasSubstr(expected));
}

TEST_F(ConvertPackedTest, PartsThatDoNotBelongTogetherAreNamed) {
  const Codes codes = MakeCodes(32, true);
  const auto error = [&](const Codes& packed, const char* config) {
    OneLayer layer = Layer(config);
    AddGptq(packed, false, layer);
    return ErrorOf(layer.Write(folder_));
  };
  EXPECT_THAT(error(codes, R"({"quant_method": "gptq", "bits": 4, "group_size": 64})"),
              HasSubstr("has 4 groups; expected 2 of 64 columns"));
  Codes beyond = codes;
  beyond.group_of[5] = 4;
  EXPECT_THAT(error(beyond, kGptq), HasSubstr("g_idx: column 5 is in group 4; there are 4"));
  Codes large = codes;
  large.scales[0] = INFINITY;
  EXPECT_THAT(error(large, kGptq), HasSubstr("up_proj.scales has the scale inf"));
  OneLayer empty = Layer(kGptq);
  for (const char* part : {".qweight", ".qzeros", ".scales"}) empty.Add(kStem + part, "I32", {0, 64}, "");
  EXPECT_THAT(ErrorOf(empty.Write(folder_)), HasSubstr("qweight has the shape [0, 64]"));
  OneLayer alone = Layer(kGptq);
  alone.Add(kStem + ".qweight", "I32", {1, 1}, std::string(4, '\0'));
  EXPECT_THAT(ErrorOf(alone.Write(folder_)), HasSubstr("up_proj lacks one of qweight, qzeros and scales"));
}

}  // namespace
}  // namespace sluice::convert
