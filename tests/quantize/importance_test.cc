// P60 and P61: importance data with zeros, NaN, the wrong shape, of another model, or of some experts only.
#include "quantize/importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gguf/builder.h"
#include "quantize/importance_file.h"
#include "quantize/made_up_importance.h"

namespace sluice::quantize {
namespace {

using formats::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

gguf::Tensor TensorOf(std::string_view name, uint64_t columns, uint64_t rows, uint64_t matrices = 1) {
  gguf::Tensor tensor{
      .name = name, .traits = &formats::Traits(DType::kF32), .n_dims = matrices == 1 ? 2u : 3u};
  tensor.dims = {columns, rows, matrices, 1};
  return tensor;
}

TEST(Importance, OfAMatrix) {
  const MadeUpImportance data({{"a.weight", {1, 2, 3, 4}}});
  const gguf::Tensor tensor = TensorOf("a.weight", 4, 10);
  const auto found = ImportanceOf(data, tensor);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unseen_matrices, 0u);
  EXPECT_THAT(found->Of(tensor, 7, 1, 2), ElementsAre(2, 3));
  EXPECT_TRUE(ImportanceOf(data, TensorOf("b.weight", 4, 10))->Of(tensor, 0, 0, 4).empty());
}

TEST(Importance, ExpertsThatWereNeverSeenCountAlike) {
  const MadeUpImportance data({{"exps.weight", {1, 2, 0, 0, 5, 6}}, {"zero.weight", {0, 0}}});
  const gguf::Tensor tensor = TensorOf("exps.weight", 2, 10, 3);
  const auto found = ImportanceOf(data, tensor);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unseen_matrices, 1u);
  EXPECT_THAT(found->Of(tensor, 9, 0, 2), ElementsAre(1, 2));
  EXPECT_THAT(found->Of(tensor, 10, 0, 2), ElementsAre(1, 1));
  EXPECT_THAT(found->Of(tensor, 29, 1, 1), ElementsAre(6));
  // One row of weights serves all matrices.
  const MadeUpImportance shared({{"exps.weight", {3, 4}}});
  EXPECT_THAT(ImportanceOf(shared, tensor)->Of(tensor, 29, 0, 2), ElementsAre(3, 4));
}

TEST(Importance, BadDataIsNamed) {
  const gguf::Tensor tensor = TensorOf("a.weight", 4, 10);
  const auto message = [&](std::vector<float> weights) {
    const auto found = ImportanceOf(MadeUpImportance({{"a.weight", std::move(weights)}}), tensor);
    EXPECT_FALSE(found);
    return found ? "" : found.error().message;
  };
  EXPECT_THAT(message({1, 2, 3}),
              HasSubstr("made up: tensor a.weight has 3 weights of columns, expected 1 × 4"));
  EXPECT_THAT(message({1, 2, NAN, 4}), HasSubstr("column 2"));
  EXPECT_THAT(message({1, INFINITY, 3, 4}), HasSubstr("inf"));
  EXPECT_THAT(message({1, 2, 3, -1}), HasSubstr("-1"));
}

TEST(Importance, ForAnotherModel) {
  const gguf::Tensor tensors[] = {TensorOf("a.weight", 4, 10)};
  EXPECT_TRUE(CheckSameModel(MadeUpImportance({{"a.weight", {1}}, {"b.weight", {1}}}), tensors));
  const auto foreign = CheckSameModel(MadeUpImportance({{"h.0.mlp.weight", {1}}}), tensors);
  EXPECT_EQ(foreign.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(foreign.error().message, HasSubstr("h.0.mlp.weight"));
  EXPECT_FALSE(CheckSameModel(MadeUpImportance(std::map<std::string, std::vector<float>>()), tensors));
}

Result<ImportanceFile> FileOf(const gguf::testing::ModelBuilder& builder) {
  return ImportanceFile::FromGguf("data.gguf", std::move(*gguf::testing::OpenBytes(builder.Build())));
}

TEST(ImportanceFile, SumsOverCounts) {
  gguf::testing::ModelBuilder builder("imatrix");
  builder.AddF32("exps.weight.in_sum2", {2, 3}, std::vector<float>{2, 4, 0, 0, 9, 27});
  builder.AddF32("exps.weight.counts", {1, 3}, std::vector<float>{2, 0, 9});
  const auto file = FileOf(builder);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(file->tensors(), ElementsAre("exps.weight"));
  EXPECT_THAT(*file->Load("exps.weight"), ElementsAre(1, 2, 0, 0, 1, 3));
}

TEST(ImportanceFile, FilesOfOtherKinds) {
  gguf::testing::ModelBuilder model;
  model.AddRandom("token_embd.weight", DType::kF32, {32, 4});
  EXPECT_EQ(FileOf(model).error().code, ErrorCode::kInvalidArgument);
  gguf::testing::ModelBuilder lonely("imatrix");
  lonely.AddF32("a.weight.in_sum2", {4, 2}, std::vector<float>(8, 1));
  EXPECT_THAT(FileOf(lonely).error().message, HasSubstr("a.weight.counts 0 counts"));
  gguf::testing::ModelBuilder halves("imatrix");
  halves.AddRandom("a.weight.in_sum2", DType::kF16, {4, 1});
  halves.AddF32("a.weight.counts", {1}, std::vector<float>{1});
  EXPECT_THAT(FileOf(halves)->Load("a.weight").error().message, HasSubstr("is F16, expected F32"));
}

}  // namespace
}  // namespace sluice::quantize
