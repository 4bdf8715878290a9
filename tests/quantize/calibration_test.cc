#include "quantize/calibration.h"

#include <gmock/gmock.h>

#include "platform/temp_folder.h"
#include "quantize/importance_gatherer.h"
#include "quantize/small_shape.h"

namespace sluice::quantize {
namespace {

constexpr SynthShape kShape = SmallShape("calibration", 3);

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() {
    EXPECT_TRUE(SynthesizeFile(kShape, **FindMix("F16"), {}, path_));
    for (int c = 0; c < 3; ++c) {
      std::vector<int32_t>& chunk = text_.emplace_back();
      for (int i = 0; i < 40 - 5 * c; ++i) chunk.push_back((7 * i * i + 11 * c) % 500);
    }
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "model.gguf";
  TextChunks text_;
  memory::Ledger ledger_{uint64_t{1} << 30};
  parallel::ThreadPool pool_{2};
  MonotonicClock clock_;
  runtime::Context context_{.kernels = &kernels::BestKernels(platform::DetectCpuFeatures()),
                            .pool = &pool_,
                            .ledger = &ledger_,
                            .clock = &clock_};
};

// Layer by layer, the matrices meet what they meet in a whole pass.
TEST_F(CalibrationTest, GathersWhatAWholePassShows) {
  const auto model = model::Model::Open(context_, path_, {});
  ASSERT_TRUE(model);
  const auto gatherer = ImportanceGatherer::Create(context_, **model, 40);
  ASSERT_TRUE(gatherer);
  for (const std::vector<int32_t>& chunk : text_) ASSERT_TRUE((*gatherer)->Read(chunk));
  const std::string importance = folder_ / "importance.gguf";
  ASSERT_TRUE(
      (*gatherer)->Write("text", [&](uint64_t bytes) { return gguf::CreateFileSink(importance, bytes); }));
  const auto whole = ImportanceFile::Open(importance);
  ASSERT_TRUE(whole);

  const auto file = gguf::GgufFile::Open(path_);
  const auto calibration = Calibration::Create(context_, *file, text_);
  ASSERT_TRUE(calibration) << calibration.error().message;
  EXPECT_EQ((*calibration)->tokens(), 105);
  ASSERT_TRUE((*calibration)->Embed(*file));
  for (int layer = 0; layer < 3; ++layer) {
    const std::pair<model::Stage, const char*> stages[] = {{model::Stage::kAttentionInput, "attn_q"},
                                                           {model::Stage::kAttended, "attn_output"},
                                                           {model::Stage::kFfnInput, "ffn_up"},
                                                           {model::Stage::kFfnActivated, "ffn_down"}};
    for (const auto& stage : stages) {
      const auto means = whole->Load(fmt::format("blk.{}.{}.weight", layer, stage.second));
      ASSERT_TRUE(means);
      auto hessian = Hessian::Create(context_, static_cast<int64_t>(means->size()), 256);
      ASSERT_TRUE(hessian);
      ASSERT_TRUE((*calibration)->Gather(*file, layer, stage.first, *hessian));
      EXPECT_EQ(hessian->count(), 105);
      ASSERT_TRUE(hessian->Finish(0));
      for (size_t c = 0; c < means->size(); ++c) {
        EXPECT_NEAR(hessian->matrix().at(static_cast<int64_t>(c)), (*means)[c], 1e-5f * (*means)[c])
            << stage.second << " of layer " << layer;
      }
    }
    ASSERT_TRUE((*calibration)->Advance(*file, layer));
  }
  auto hessian = Hessian::Create(context_, 64, 256);
  ASSERT_TRUE((*calibration)->GatherOutput(*file, *hessian));
  EXPECT_EQ(hessian->count(), 105);
}

TEST_F(CalibrationTest, Refusals) {
  const auto file = gguf::GgufFile::Open(path_);
  EXPECT_THAT(Calibration::Create(context_, *file, {}).error().message, testing::HasSubstr("no tokens"));
  memory::Ledger little(20'000);
  runtime::Context context = context_;
  context.ledger = &little;
  EXPECT_EQ(Calibration::Create(context, *file, text_).error().code, ErrorCode::kDoesNotFit);
  const auto calibration = Calibration::Create(context_, *file, text_);
  (*calibration)->set_go_on([] { return false; });
  EXPECT_EQ((*calibration)->Embed(*file).error().code, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace sluice::quantize
