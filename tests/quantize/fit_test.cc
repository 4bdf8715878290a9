#include "quantize/fit.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "platform/temp_folder.h"
#include "quantize/quantizer.h"
#include "quantize/synth.h"
#include "quantize/tensor_role.h"

namespace sluice::quantize {
namespace {

using formats::DType;
using testing::HasSubstr;

constexpr SynthShape kShape{.name = "fit",
                            .architecture = "llama",
                            .layers = 3,
                            .d_model = 64,
                            .d_ff = 128,
                            .n_heads = 2,
                            .n_kv_heads = 1,
                            .head_dim = 32,
                            .context_length = 64};

class FitTest : public testing::Test {
 protected:
  FitTest() {
    EXPECT_TRUE(SynthesizeFile(kShape, **FindMix("F16"), {}, path_));
    auto source = gguf::GgufFile::Open(path_);
    EXPECT_TRUE(source);
    source_.emplace(*std::move(source));
  }

  // Bytes of the file in so many times the size that it has in the smallest types (rows are too short for
  // those of 256).
  uint64_t Times(double factor) const {
    std::vector<TypeChoice> smallest;
    for (const gguf::Tensor& tensor : source_->tensors())
      smallest.push_back({IsQuantisable(tensor) ? DType::kQ4_0 : tensor.traits->dtype});
    const auto bytes = QuantizedBytes(*source_, AllMixes().front(), smallest);
    EXPECT_TRUE(bytes);
    return static_cast<uint64_t>(factor * static_cast<double>(*bytes));
  }

  // What measuring would say: each matrix costs its weight, the same for all unless told.
  FitOptions Options(uint64_t budget) {
    FitOptions options{.budget_bytes = budget, .scratch = folder_ / "probe.gguf"};
    options.make = [this](std::span<const TypeChoice> choices, const std::string& path) -> Status {
      QuantizeOptions quantize;
      quantize.types.mix = &AllMixes().front();
      quantize.choices.assign(choices.begin(), choices.end());
      SLUICE_TRY(QuantizeFile(path_, path, quantize, pool_));
      return {};
    };
    options.measure = [this](std::span<const gguf::Replacement> replacements) -> Result<double> {
      ++runs_;
      SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(path_));
      double kl = 0;
      for (const gguf::Replacement& replacement : replacements) {
        SLUICE_TRY(file.Replace(replacement));
        for (const std::string& name : replacement.tensors) kl += costs_.contains(name) ? costs_[name] : 0.01;
      }
      return kl;
    };
    return options;
  }
  FitReport Fitted(const FitOptions& options) {
    auto report = Fit(*source_, options, pool_);
    EXPECT_TRUE(report) << report.error().message;
    return *std::move(report);
  }
  static DType TypeOf(const FitReport& report, const std::string& name) {
    return std::ranges::find(report.tensors, name, &FitTensor::name)->dtype;
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "model.gguf";
  parallel::ThreadPool pool_{2};
  std::optional<gguf::GgufFile> source_;
  std::map<std::string, double> costs_;
  int runs_ = 0;
};

TEST_F(FitTest, TheFileIsNeverLargerThanTheBudget) {
  std::set<uint64_t> sizes;
  for (const double factor : {1.0, 1.07, 1.2, 1.35, 1.5}) {
    const uint64_t budget = Times(factor);
    const FitReport report = Fitted(Options(budget));
    EXPECT_LE(report.file_bytes, budget);
    EXPECT_LE(report.bound_kl, report.predicted_kl);
    QuantizeOptions quantize{.choices = report.choices};
    quantize.types.mix = report.name;
    const auto written = QuantizeFile(path_, folder_ / "out.gguf", quantize, pool_);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(written->file_bytes, report.file_bytes);
    sizes.insert(report.file_bytes);
  }
  EXPECT_EQ(sizes.size(), 5u) << "more room was used";
}

TEST_F(FitTest, WhatMattersGetsMoreBits) {
  costs_["blk.1.ffn_down.weight"] = 1.0;
  costs_["blk.2.attn_q.weight"] = 0.00001;
  const FitReport report = Fitted(Options(Times(1.2)));
  const auto bits = [&](const std::string& name) {
    const formats::DTypeTraits& traits = formats::Traits(TypeOf(report, name));
    return 8.0 * traits.block_bytes / traits.block_length;
  };
  EXPECT_EQ(bits("blk.1.ffn_down.weight"), 8.5);
  EXPECT_LT(bits("blk.2.attn_q.weight"), 5);
}

TEST_F(FitTest, OneBitOnlyWhereNothingElseFits) {
  SynthShape shape = kShape;
  shape.layers = 1;
  shape.d_model = shape.d_ff = 256;
  ASSERT_TRUE(SynthesizeFile(shape, **FindMix("F16"), {}, path_));
  source_.emplace(*gguf::GgufFile::Open(path_));
  const auto one_bit = [&](double bits) {
    uint64_t elements = 0;
    for (const gguf::Tensor& tensor : source_->tensors())
      elements += IsQuantisable(tensor) ? tensor.elements() : 0;
    // What the header takes, and the norms.
    const uint64_t rest = Times(1) - elements * 9 / 16;
    const FitReport report =
        Fitted(Options(rest + static_cast<uint64_t>(static_cast<double>(elements) * bits / 8)));
    return std::ranges::count_if(report.tensors, [](const FitTensor& tensor) {
      return tensor.dtype == DType::kIQ1_S || tensor.dtype == DType::kIQ1_M;
    });
  };
  EXPECT_EQ(one_bit(2.2), 0);
  EXPECT_GT(one_bit(1.8), 0);
}

TEST_F(FitTest, NormsStayAndWishesAreKept) {
  FitOptions options = Options(Times(1.2));
  options.types.overrides.push_back({"attn_v", DType::kQ8_0});
  const FitReport report = Fitted(options);
  for (size_t i = 0; i < report.choices.size(); ++i) {
    const gguf::Tensor& tensor = source_->tensors()[i];
    if (tensor.n_dims == 1) {
      EXPECT_EQ(report.choices[i].dtype, tensor.traits->dtype) << tensor.name;
    }
    if (tensor.name.find("attn_v") != tensor.name.npos) {
      EXPECT_EQ(report.choices[i].dtype, DType::kQ8_0);
    }
  }
}

// 21 matrices in the layers, and two outside: of seven kinds, in two groups at most.
TEST_F(FitTest, FewProbesMeasureNeighboursTogether) {
  FitOptions options = Options(Times(1.2));
  Fitted(options);
  EXPECT_EQ(runs_, 24) << "each, and all together";
  runs_ = 0;
  options.most_probes = 16;
  const FitReport report = Fitted(options);
  EXPECT_EQ(runs_, 17);
  EXPECT_EQ(report.probes, 16);
  double sum = 0;
  for (const FitTensor& tensor : report.tensors) sum += tensor.probe_kl;
  EXPECT_NEAR(sum, 23 * 0.01, 1e-9) << "each group's cost is shared out";
}

// All matrices at once cost a little more than the sum of what each costs by itself.
TEST_F(FitTest, PredictionsAreScaledByWhatAllCostTogether) {
  FitOptions options = Options(Times(1.2));
  const FitReport additive = Fitted(options);
  EXPECT_NEAR(additive.together, 1, 1e-9);
  options.measure = [measure =
                         options.measure](std::span<const gguf::Replacement> replacements) -> Result<double> {
    SLUICE_TRY_ASSIGN(const double kl, measure(replacements));
    return replacements[0].tensors.size() > 1 ? 1.25 * kl : kl;
  };
  const FitReport report = Fitted(options);
  EXPECT_NEAR(report.together, 1.25, 1e-9);
  EXPECT_NEAR(report.predicted_kl, 1.25 * additive.predicted_kl, 1e-9);
  for (size_t i = 0; i < report.tensors.size(); ++i)
    EXPECT_EQ(report.tensors[i].dtype, additive.tensors[i].dtype) << report.tensors[i].name;
}

// A matrix that costs nothing by itself, and much when others are in few bits.
TEST_F(FitTest, WhereCostsDoNotAddUpMatricesAreMeasuredAmongTheOthers) {
  FitOptions options = Options(Times(1.2));
  const std::string later = "blk.2.ffn_down.weight";
  costs_[later] = 0;
  const FitReport alone = Fitted(options);
  options.measure =
      [&later, measure = options.measure](std::span<const gguf::Replacement> replacements) -> Result<double> {
    SLUICE_TRY_ASSIGN(const double kl, measure(replacements));
    const std::vector<std::string>& names = replacements[0].tensors;
    return names.size() > 1 && std::ranges::find(names, later) != names.end() ? kl + 0.5 : kl;
  };
  runs_ = 0;
  const FitReport report = Fitted(options);
  EXPECT_EQ(report.probes, 46);
  EXPECT_EQ(runs_, 47);
  const auto found = std::ranges::find(report.tensors, later, &FitTensor::name);
  EXPECT_NEAR(found->probe_kl, 0.25, 1e-9);
  EXPECT_LT(formats::Traits(TypeOf(alone, later)).block_bytes, formats::Traits(found->dtype).block_bytes);
  EXPECT_EQ(formats::Name(found->dtype), "Q8_0");
  // Not where errors are to make up for one another.
  options.independent = false;
  EXPECT_EQ(Fitted(options).probes, 23);
}

TEST_F(FitTest, TheSameForAnyNumberOfThreads) {
  parallel::ThreadPool one(1), three(3);
  const FitOptions options = Options(Times(1.2));
  const auto a = Fit(*source_, options, one), b = Fit(*source_, options, three);
  ASSERT_TRUE(a && b);
  for (size_t i = 0; i < a->tensors.size(); ++i) EXPECT_EQ(a->tensors[i].dtype, b->tensors[i].dtype);
  EXPECT_EQ(a->predicted_kl, b->predicted_kl);
}

TEST_F(FitTest, WhatCanNotBeIsRefusedBeforeAnythingIsMeasured) {
  const auto small = Fit(*source_, Options(10'000), pool_);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(runs_, 0);

  FitOptions nowhere = Options(Times(1.2));
  nowhere.types.overrides.push_back({"no_such", DType::kQ8_0});
  EXPECT_THAT(Fit(*source_, nowhere, pool_).error().message, HasSubstr("\"no_such\" matches no tensor"));

  FitOptions stopped = Options(Times(1.2));
  stopped.progress = [](std::string_view, double, double) { return false; };
  EXPECT_EQ(Fit(*source_, stopped, pool_).error().code, ErrorCode::kInterrupted);

  costs_["blk.0.attn_k.weight"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Fit(*source_, Options(Times(1.2)), pool_).error().message, HasSubstr("blk.0.attn_k.weight"));
  EXPECT_FALSE(gguf::GgufFile::Open(folder_ / "probe.gguf")) << "removed";

  ASSERT_TRUE(SynthesizeFile(kShape, **FindMix("Q4_0"), {}, folder_ / "q4.gguf"));
  const auto quantised = gguf::GgufFile::Open(folder_ / "q4.gguf");
  EXPECT_THAT(Fit(*quantised, Options(1'000'000), pool_).error().message, HasSubstr("already"));
}

}  // namespace
}  // namespace sluice::quantize
