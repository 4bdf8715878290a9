// Repacking and splitting: the same model in other files.
#include "gguf/repack.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "base/units.h"
#include "gguf/builder.h"
#include "gguf/split.h"
#include "platform/temp_folder.h"

namespace sluice::gguf {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using testing::ModelBuilder;
using testing::OpenBytes;
using testing::OpenFiles;
using Files = std::map<std::string, Bytes>;

ModelBuilder SmallModel() {
  ModelBuilder model;
  model.metadata().SetString("general.name", "small");
  model.metadata().SetStrings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
  for (const char* name : {"token_embd.weight", "a.weight", "b.weight", "c.weight"})
    model.AddRandom(name, formats::DType::kQ8_0, {64, 32});
  model.AddRandom("norm.weight", formats::DType::kF32, {10});
  return model;
}

Result<Bytes> Repacked(const GgufFile& source, const RepackOptions& options = {}) {
  Bytes bytes;
  SLUICE_TRY(
      Repack(source, source.metadata().Copy(), options, [&](uint64_t) -> Result<std::unique_ptr<ByteSink>> {
        return std::unique_ptr<ByteSink>(std::make_unique<MemorySink>(&bytes));
      }));
  return bytes;
}

// The parts in memory, under their names.
Result<Files> Parts(const GgufFile& source, uint64_t max_file_bytes) {
  SLUICE_TRY_ASSIGN(const std::vector<Part> parts, PlanParts(source, max_file_bytes));
  Files files;
  SLUICE_TRY(Split(
      source, parts, {}, [&](size_t index, size_t count, uint64_t) -> Result<std::unique_ptr<ByteSink>> {
        Bytes& bytes = files[ShardPath("m", static_cast<uint32_t>(index + 1), static_cast<uint32_t>(count))];
        return std::unique_ptr<ByteSink>(std::make_unique<MemorySink>(&bytes));
      }));
  return files;
}

Bytes DataOf(const GgufFile& file, const Tensor& tensor) {
  Bytes bytes(tensor.size_bytes);
  EXPECT_TRUE(file.Read(tensor, 0, bytes));
  return bytes;
}

void ExpectSameTensors(const GgufFile& a, const GgufFile& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const Tensor& tensor : a.tensors()) {
    const Tensor* other = b.Find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.dims, other->dims);
    EXPECT_EQ(tensor.type_id, other->type_id);
    EXPECT_EQ(DataOf(a, tensor), DataOf(b, *other)) << tensor.name;
  }
}

TEST(Repack, OrdersAndAligns) {
  const GgufFile source = *OpenBytes(SmallModel().Build());
  RepackOptions options{.alignment = 4096};
  for (const Tensor& tensor : source.tensors()) options.order.insert(options.order.begin(), &tensor);
  const Bytes bytes = *Repacked(source, options);
  const GgufFile packed = *OpenBytes(bytes);
  ExpectSameTensors(source, packed);
  EXPECT_EQ(packed.alignment(), 4096u);
  EXPECT_EQ(packed.tensors()[0].name, "norm.weight");
  EXPECT_EQ(packed.tensors()[4].name, "token_embd.weight");
  for (const Tensor& tensor : packed.tensors()) EXPECT_EQ(tensor.offset % 4096, 0u);
  EXPECT_EQ(*packed.metadata().GetString("general.name"), "small");
}

TEST(Repack, KeepsChecksumsWhereverTensorsLie) {
  const GgufFile source = *OpenBytes(SmallModel().Build());
  EXPECT_FALSE(ReadChecksums(source.metadata(), source.tensors().size())->has_value());
  const GgufFile packed = *OpenBytes(*Repacked(source, {.alignment = 4096}));
  const GgufFile other = *OpenBytes(*Repacked(source, {.alignment = 64}));
  const Checksums a = **ReadChecksums(packed.metadata(), 5), b = **ReadChecksums(other.metadata(), 5);
  EXPECT_EQ(a.tensors, b.tensors);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.model, ModelChecksum(packed.metadata(), packed.tensors(), a.tensors));
  EXPECT_NE(a.tensors[0], a.tensors[1]);
}

TEST(Repack, DamageIsNotHandedOn) {
  Bytes bytes = *Repacked(*OpenBytes(SmallModel().Build()));
  const Tensor b = *OpenBytes(bytes)->Find("b.weight");
  bytes[b.offset + 100] ^= std::byte{1};
  const GgufFile damaged = *OpenBytes(bytes);
  const auto again = Repacked(damaged);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(again.error().message, HasSubstr("tensor b.weight: its bytes have changed"));
  EXPECT_FALSE(Parts(damaged, 6000));
}

TEST(Repack, ChecksumsThatDoNotFitAreRefused) {
  const auto error = [](auto change) {
    GgufFile file = *OpenBytes(*Repacked(*OpenBytes(SmallModel().Build())));
    change(file.metadata());
    const auto again = Repacked(file);
    return again ? "" : again.error().message;
  };
  EXPECT_EQ(error([](Metadata&) {}), "");
  EXPECT_THAT(error([](Metadata& m) { m.SetString("sluice.checksum.algorithm", "md5"); }), HasSubstr("md5"));
  EXPECT_THAT(error([](Metadata& m) { m.Remove("sluice.checksum.tensors"); }), HasSubstr("is missing"));
  EXPECT_THAT(error([](Metadata& m) {
                m.SetU64s("sluice.checksum.tensors", std::vector<uint64_t>{1, 2});
              }),
              HasSubstr("expected an array of 5 u64"));
  EXPECT_THAT(error([](Metadata& m) { m.SetU32("sluice.checksum.tensors", 3); }),
              HasSubstr("sluice.checksum"));
}

TEST(Repack, ATensorOfUnknownTypeIsRefused) {
  testing::raw::FileParts parts;
  parts.pairs = {
      testing::raw::Pair("general.architecture", ValueType::kString, testing::raw::String("llama"))};
  parts.infos = {testing::raw::Info("odd", {32}, 200, 0)};
  parts.data = Bytes(64);
  const GgufFile file = *OpenBytes(testing::raw::File(parts));
  EXPECT_EQ(Repacked(file).error().code, ErrorCode::kUnsupported);
}

TEST(Repack, ProgressEndsAtTheTotalAndStops) {
  const GgufFile source = *OpenBytes(SmallModel().Build());
  uint64_t last = 0;
  ASSERT_TRUE(Repacked(source, {.progress = [&](uint64_t done, uint64_t total) {
                         last = done;
                         EXPECT_EQ(total, source.tensor_bytes());
                         return true;
                       }}));
  EXPECT_EQ(last, source.tensor_bytes());
  const auto stopped = Repacked(source, {.progress = [](uint64_t, uint64_t) { return false; }});
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
}

TEST(Split, PartsKeepToTheirSizeAndMergeToTheSameFile) {
  const Bytes whole = *Repacked(*OpenBytes(SmallModel().Build()));
  const GgufFile source = *OpenBytes(whole);
  size_t fewer = 6;
  for (const uint64_t most : {uint64_t{3000}, uint64_t{4800}, uint64_t{100000}}) {
    const Files files = *Parts(source, most);
    for (const auto& [name, bytes] : files) EXPECT_LE(bytes.size(), most);
    const GgufFile split = *OpenFiles(files, files.begin()->first);
    EXPECT_LT(split.shards().size(), fewer);
    fewer = split.shards().size();
    ExpectSameTensors(source, split);
    EXPECT_EQ(*Repacked(split), whole) << most;
  }
  EXPECT_EQ(fewer, 1u);
}

// Other programs insist on these types, and find the alignment in each file.
TEST(Split, PartsSayWhatOtherProgramsLookFor) {
  const GgufFile source = *OpenBytes(*Repacked(*OpenBytes(SmallModel().Build()), {.alignment = 64}));
  const Files files = *Parts(source, 4800);
  uint16_t no = 0;
  for (const auto& [name, bytes] : files) {
    const Header part = *ReadHeader(MemorySource(bytes));
    EXPECT_EQ(part.metadata.Find("split.no")->type, ValueType::kU16);
    EXPECT_EQ(*part.metadata.GetU32("split.no"), no++);
    EXPECT_EQ(part.metadata.Find("split.count")->type, ValueType::kU16);
    EXPECT_EQ(part.metadata.Find("split.tensors.count")->type, ValueType::kI32);
    EXPECT_EQ(*part.metadata.GetU32("split.tensors.count"), 5u);
    EXPECT_EQ(part.alignment, 64u);
    EXPECT_EQ(part.metadata.Has("general.name"), no == 1);
  }
}

TEST(Split, PartsThatAreTooSmallAreRefused) {
  const GgufFile source = *OpenBytes(SmallModel().Build());
  EXPECT_THAT(PlanParts(source, 100).error().message, HasSubstr("the metadata takes a part of"));
  const auto small = PlanParts(source, 2000);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(small.error().message, HasSubstr("tensor token_embd.weight takes a part of"));
  ModelBuilder many;
  for (size_t i = 0; i < kMostParts + 1; ++i)
    many.AddRandom(fmt::format("t{}", i), formats::DType::kF32, {8192});
  EXPECT_THAT(PlanParts(*OpenBytes(many.Build()), 64 * kKiB).error().message, HasSubstr("more than 512"));
}

class SplitFileTest : public ::testing::Test {
 protected:
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }
  const TempFolder folder_;
};

TEST_F(SplitFileTest, WritesAllPartsOrNone) {
  const GgufFile source = *OpenBytes(SmallModel().Build());
  const RepackReport report = *SplitFile(source, 4800, {}, folder_ / "m");
  EXPECT_EQ(report.files, 3u);
  EXPECT_EQ(FileCount(), 3u);
  ExpectSameTensors(source, *GgufFile::Open(folder_ / "m-00001-of-00003.gguf"));

  // Never over parts that are there: half a model of each might load.
  std::filesystem::remove(folder_ / "m-00001-of-00003.gguf");
  const auto again = SplitFile(source, 4800, {}, folder_ / "m");
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("m-00002-of-00003.gguf: it exists"));
  EXPECT_EQ(FileCount(), 2u);
}

TEST_F(SplitFileTest, StoppedHalfWayLeavesNothing) {
  const GgufFile source = *OpenBytes(SmallModel().Build());
  const auto stopped = SplitFile(
      source, 4800, [](uint64_t done, uint64_t total) { return done < total / 2; }, folder_ / "m");
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(FileCount(), 0u);
}

}  // namespace
}  // namespace sluice::gguf
