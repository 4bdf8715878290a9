#include "quantize/importance_gatherer.h"

#include <gmock/gmock.h>

#include "platform/temp_folder.h"
#include "quantize/small_shape.h"

namespace sluice::quantize {
namespace {

using testing::HasSubstr;

constexpr SynthShape kShape = SmallShape("imatrix", 2);

class ImportanceGathererTest : public testing::Test {
 protected:
  ImportanceGathererTest() {
    const std::string path = folder_ / "model.gguf";
    EXPECT_TRUE(SynthesizeFile(kShape, **FindMix("F16"), {}, path));
    auto model = model::Model::Open(context_, path, {});
    EXPECT_TRUE(model) << model.error().message;
    model_ = *std::move(model);
  }
  std::unique_ptr<ImportanceGatherer> Make(int64_t chunk = 32) {
    auto gatherer = ImportanceGatherer::Create(context_, *model_, chunk);
    EXPECT_TRUE(gatherer) << gatherer.error().message;
    return *std::move(gatherer);
  }
  static std::vector<int32_t> SomeIds(int count, int seed = 0) {
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back((i * 7 + seed) % 50);
    return ids;
  }
  ImportanceFile Written(const ImportanceGatherer& gatherer, const std::string& name) {
    const std::string path = folder_ / name;
    const Status status =
        gatherer.Write("text", [&](uint64_t file_bytes) { return gguf::CreateFileSink(path, file_bytes); });
    EXPECT_TRUE(status) << status.error().message;
    auto file = ImportanceFile::Open(path);
    EXPECT_TRUE(file) << file.error().message;
    return *std::move(file);
  }

  TempFolder folder_;
  memory::Ledger ledger_{uint64_t{1} << 30};
  parallel::ThreadPool pool_{2};
  MonotonicClock clock_;
  runtime::Context context_{.kernels = &kernels::BestKernels(platform::DetectCpuFeatures()),
                            .pool = &pool_,
                            .ledger = &ledger_,
                            .clock = &clock_};
  std::unique_ptr<model::Model> model_;
};

TEST_F(ImportanceGathererTest, EveryMatrixOfTheLayersHasItsColumns) {
  const auto gatherer = Make();
  ASSERT_TRUE(gatherer->Read(SomeIds(32)));
  ASSERT_TRUE(gatherer->Read(SomeIds(10, 3)));
  const ImportanceFile file = Written(*gatherer, "a.gguf");
  EXPECT_EQ(file.tensors().size(), 14u);
  const auto down = file.LoadSums("blk.1.ffn_down.weight");
  ASSERT_TRUE(down) << down.error().message;
  EXPECT_EQ(down->squares.size(), 96u);
  EXPECT_THAT(down->counts, testing::ElementsAre(42.0f));
  EXPECT_THAT(down->squares, testing::Each(testing::Ge(0.0f)));
  EXPECT_EQ(file.LoadSums("blk.0.attn_q.weight")->squares, file.LoadSums("blk.0.attn_v.weight")->squares)
      << "both met the same inputs";
}

// A norm with weights near 1 leaves rows whose squares are about 1 on average.
TEST_F(ImportanceGathererTest, InputsBehindANormHaveSquaresNearOne) {
  const auto gatherer = Make();
  ASSERT_TRUE(gatherer->Read(SomeIds(32)));
  const auto means = Written(*gatherer, "a.gguf").Load("blk.0.attn_q.weight");
  ASSERT_TRUE(means);
  double sum = 0;
  for (const float mean : *means) sum += static_cast<double>(mean);
  EXPECT_NEAR(sum / static_cast<double>(means->size()), 1.0, 0.2);
}

TEST_F(ImportanceGathererTest, MergingIsAsIfBothTextsWereRead) {
  const auto both = Make(), first = Make(), second = Make();
  ASSERT_TRUE(both->Read(SomeIds(32)));
  ASSERT_TRUE(first->Read(SomeIds(32)));
  ASSERT_TRUE(both->Read(SomeIds(20, 5)));
  ASSERT_TRUE(second->Read(SomeIds(20, 5)));
  ASSERT_TRUE(second->Merge(Written(*first, "first.gguf")));
  const ImportanceFile merged = Written(*second, "merged.gguf"), whole = Written(*both, "both.gguf");
  for (const std::string& tensor : whole.tensors()) {
    const auto a = merged.LoadSums(tensor), b = whole.LoadSums(tensor);
    EXPECT_EQ(a->counts, b->counts);
    for (size_t i = 0; i < b->squares.size(); ++i)
      EXPECT_NEAR(a->squares[i], b->squares[i], 1e-5f * b->squares[i]);
  }
}

TEST_F(ImportanceGathererTest, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(ImportanceGatherer::Create(context_, *model_, 0).error().message,
              HasSubstr("chunks of 0 tokens"));
  EXPECT_THAT(ImportanceGatherer::Create(context_, *model_, 65).error().message,
              HasSubstr("expected 1 to 64"));
  const auto gatherer = Make();
  const Status nothing =
      gatherer->Write("text", [&](uint64_t) { return gguf::CreateFileSink(folder_ / "x", 0); });
  EXPECT_THAT(nothing.error().message, HasSubstr("no text was read"));
  EXPECT_EQ(gatherer->Read(SomeIds(5), [] { return false; }).error().code, ErrorCode::kInterrupted);

  SynthShape other = kShape;
  other.d_ff = 128;
  ASSERT_TRUE(SynthesizeFile(other, **FindMix("F16"), {}, folder_ / "other.gguf"));
  const auto other_model = model::Model::Open(context_, folder_ / "other.gguf", {});
  const auto theirs = ImportanceGatherer::Create(context_, **other_model, 8);
  ASSERT_TRUE((*theirs)->Read(SomeIds(8)));
  EXPECT_THAT(gatherer->Merge(Written(**theirs, "theirs.gguf")).error().message,
              HasSubstr("blk.0.ffn_down.weight has 128 columns"));
}

}  // namespace
}  // namespace sluice::quantize
