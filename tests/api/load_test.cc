// Model files that are wrong, and what is said about them: always the key or the tensor, and what was expected.
#include <gmock/gmock.h>

#include "api/fixture.h"
#include "sluice/gguf.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using whole::DType;
using whole::ModelParts;
using whole::TinyLlama;

class LoadTest : public ApiTest {
 protected:
  // The refusal of a sound model after `spoil`.
  template <typename F>
  std::string After(F&& spoil) {
    ModelParts model = TinyLlama();
    spoil(model);
    return Refusal(model);
  }
  // Those behind a few tokens.
  std::vector<float> Logits(const ModelParts& parts) {
    const auto conversation = Converse(Open(parts));
    EXPECT_TRUE(conversation->session().Read(std::vector<TokenId>{1, 10, 20, 30}));
    const auto values = conversation->session().logits();
    return {values.begin(), values.end()};
  }
};

TEST_F(LoadTest, ASoundModelLoads) {
  const auto model = Open(TinyLlama());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->config().layers.size(), 2u);
}

TEST_F(LoadTest, EveryTensorIsMissed) {
  const ModelParts sound = TinyLlama();
  for (const ModelParts::Tensor& tensor : sound.tensors) {
    if (tensor.name == "output.weight") continue;  // tied then
    EXPECT_THAT(After([&](ModelParts& model) { model.Remove(tensor.name); }), HasSubstr(tensor.name));
  }
}

TEST_F(LoadTest, EveryWrongShapeIsNamed) {
  const ModelParts sound = TinyLlama();
  for (const ModelParts::Tensor& tensor : sound.tensors) {
    const std::string refusal = After([&](ModelParts& model) {
      ModelParts::Tensor& other = model.At(tensor.name);
      other.dims.front() += 1;
      other.data.resize(formats::RowBytes(DType::kF32, other.dims[0]) * (other.dims.size() > 1 ? other.dims[1] : 1));
    });
    EXPECT_THAT(refusal, AllOf(HasSubstr(tensor.name), HasSubstr("expected"))) << tensor.name;
  }
}

TEST_F(LoadTest, TransposedMatricesAreNotTaken) {
  EXPECT_THAT(After([](ModelParts& model) { std::ranges::reverse(model.At("blk.1.ffn_down.weight").dims); }),
              AllOf(HasSubstr("blk.1.ffn_down.weight"), HasSubstr("[32, 64]"), HasSubstr("[64, 32]")));
}

TEST_F(LoadTest, ExtraTensorsAreNamed) {
  EXPECT_THAT(After([](ModelParts& model) { model.AddRandom("blk.0.attn_sinks.weight", {4}); }),
              HasSubstr("blk.0.attn_sinks.weight"));
}

TEST_F(LoadTest, IntegerMatricesAreNamed) {
  EXPECT_THAT(After([](ModelParts& model) { model.At("blk.0.ffn_up.weight").dtype = DType::kI32; }),
              AllOf(HasSubstr("blk.0.ffn_up.weight"), HasSubstr("I32")));
}

TEST_F(LoadTest, SizesThatMakeNoSenseAreNamed) {
  const auto with = [this](const char* key, uint32_t value) {
    return After([&](ModelParts& model) { model.metadata.SetU32(key, value); });
  };
  for (const char* key : {"llama.context_length", "llama.embedding_length", "llama.block_count", "llama.feed_forward_length",
                          "llama.attention.head_count", "llama.attention.head_count_kv", "llama.attention.key_length",
                          "llama.attention.value_length"}) {
    EXPECT_THAT(with(key, 0), AllOf(HasSubstr(key), HasSubstr("is 0"))) << key;
    EXPECT_THAT(with(key, UINT32_MAX), HasSubstr(key)) << key;
  }
  EXPECT_THAT(with("llama.attention.head_count_kv", 3), AllOf(HasSubstr("head_count_kv is 3"), HasSubstr("divide")));
  EXPECT_THAT(with("llama.rope.dimension_count", 7), HasSubstr("rope.dimension_count is 7"));
  EXPECT_THAT(with("llama.rope.dimension_count", 16), HasSubstr("rope.dimension_count is 16"));
  EXPECT_THAT(with("llama.expert_count", 8), AllOf(HasSubstr("expert_count is 8"), HasSubstr("mixtures of experts")));
  EXPECT_THAT(with("llama.attention.head_count", 5), HasSubstr("head_count"));
  EXPECT_THAT(with("llama.block_count", 3), HasSubstr("blk.2."));
  EXPECT_THAT(with("llama.block_count", 1), HasSubstr("blk.1."));
}

TEST_F(LoadTest, HugeSizesAreRefusedBeforeAnythingIsTaken) {
  const uint64_t before = engine_->context().ledger->Snapshot().total_bytes();
  for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length"}) {
    for (const uint32_t value : {4096u, 1u << 20})
      EXPECT_NE(After([&](ModelParts& model) { model.metadata.SetU32(key, value); }), "it was loaded");
  }
  EXPECT_LT(engine_->context().ledger->Snapshot().total_bytes(), before + kMiB);
}

TEST_F(LoadTest, KeysOfTheWrongTypeAndMissingKeysAreNamed) {
  EXPECT_THAT(After([](ModelParts& model) { model.metadata.SetString("llama.block_count", "two"); }), HasSubstr("block_count"));
  for (const char* key : {"llama.block_count", "llama.context_length", "llama.attention.layer_norm_rms_epsilon",
                          "general.architecture"})
    EXPECT_THAT(After([&](ModelParts& model) { model.metadata.Remove(key); }), HasSubstr(key));
  EXPECT_THAT(After([](ModelParts& model) { model.metadata.SetString("general.architecture", "perceptron"); }),
              AllOf(HasSubstr("perceptron"), HasSubstr("llama")));
}

TEST_F(LoadTest, NumbersThatAreNoneAreNamed) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const char* key : {"llama.rope.freq_base", "llama.rope.scaling.factor", "llama.attention.scale"})
      EXPECT_THAT(After([&](ModelParts& model) { model.metadata.SetF32(key, value); }), HasSubstr(key)) << value;
  }
}

TEST_F(LoadTest, AWindowOfZeroIsNone) {
  EXPECT_EQ(After([](ModelParts& model) { model.metadata.SetU32("llama.attention.sliding_window", 0); }), "it was loaded");
}

TEST_F(LoadTest, VocabularyAndEmbeddingMustAgree) {
  EXPECT_THAT(After([](ModelParts& model) {
                whole::TinyVocabulary vocabulary;
                vocabulary.Add("one more", whole::TinyVocabulary::kNormal);
                vocabulary.WriteTo(model.metadata);
              }),
              AllOf(HasSubstr("token_embd.weight has 291 rows"), HasSubstr("292 tokens")));
  EXPECT_THAT(After([](ModelParts& model) { model.metadata.SetStrings("tokenizer.ggml.tokens", std::vector<std::string>{}); }),
              HasSubstr("tokenizer.ggml.tokens"));
}

// Rows beyond the last token pad the matrices to a round number: they change nothing.
TEST_F(LoadTest, PaddingRowsOfTheVocabularyAreIgnored) {
  for (const bool tied : {false, true}) {
    ModelParts exact = TinyLlama(), padded = TinyLlama();
    for (const char* name : {"token_embd.weight", "output.weight"}) {
      ModelParts::Tensor& tensor = padded.At(name);
      tensor.dims[1] += 29;
      tensor.data.resize(tensor.data.size() + formats::RowBytes(DType::kF32, 29 * tensor.dims[0]));
    }
    if (tied) {
      exact.Remove("output.weight");
      padded.Remove("output.weight");
    }
    EXPECT_EQ(Logits(padded), Logits(exact)) << tied;
  }
}

TEST_F(LoadTest, TruncatedFilesSayHowMuchIsMissing) {
  const std::string whole = TinyLlama().BuildString();
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{100}, size_t{4}, size_t{0}}) {
    const auto model = Model::Open(*engine_, folder_.Write("cut.gguf", whole.substr(0, size)));
    ASSERT_FALSE(model) << size;
    EXPECT_THAT(model.error().message, HasSubstr("cut.gguf")) << size;
  }
}

TEST_F(LoadTest, SpecialIdsOutOfRangeAreDisabledWithAWarning) {
  for (const char* role : {"bos", "eos", "eot", "padding", "unknown"}) {
    for (const uint32_t id : {300u, 100'000u, UINT32_MAX}) {
      ModelParts parts = TinyLlama();
      parts.metadata.SetU32(fmt::format("tokenizer.ggml.{}_token_id", role), id);
      const auto model = Open(parts);
      ASSERT_NE(model, nullptr) << role;
      EXPECT_THAT(model->warnings(), Contains(HasSubstr(std::to_string(id)))) << role;
      const auto ids = model->EncodeText("abc");
      ASSERT_TRUE(ids);
      for (const TokenId token : *ids) EXPECT_LT(token, model->config().vocab_size);
    }
  }
}

// A vocabulary of BERT's kind may name its first token CLS, BOS or both.
TEST_F(LoadTest, BertBeginsWithItsClassToken) {
  const auto bos = [this](std::initializer_list<std::pair<const char*, uint32_t>> ids) {
    ModelParts parts = TinyLlama();
    parts.metadata.SetString("tokenizer.ggml.model", "bert");
    parts.metadata.Remove("tokenizer.ggml.bos_token_id");
    for (const auto& [name, id] : ids) parts.metadata.SetU32(fmt::format("tokenizer.ggml.{}_token_id", name), id);
    const auto vocabulary = OpenVocabulary(folder_.Write("model.gguf", parts.BuildString()));
    EXPECT_TRUE(vocabulary) << vocabulary.error().message;
    return vocabulary ? vocabulary->tokenizer.vocabulary().bos() : -1;
  };
  EXPECT_EQ(bos({{"cls", 5}}), 5);
  EXPECT_EQ(bos({{"bos", 6}}), 6);
  EXPECT_EQ(bos({{"cls", 5}, {"bos", 6}}), 5);
}

TEST_F(LoadTest, OverridesChangeTheModel) {
  EXPECT_EQ(Refusal(TinyLlama(), {.overrides = {"llama.rope.freq_base=float:500000"}}), "it was loaded");
  EXPECT_THAT(Refusal(TinyLlama(), {.overrides = {"llama.block_count=int:7"}}), HasSubstr("blk.2."));
  EXPECT_THAT(Refusal(TinyLlama(), {.overrides = {"llama.block_count=str:7"}}), HasSubstr("llama.block_count"));
  EXPECT_THAT(Refusal(TinyLlama(), {.overrides = {"nonsense"}}), HasSubstr("nonsense"));
}

TEST_F(LoadTest, AlibiNeedsTheSameHeadsInEveryLayer) {
  ModelParts model = TinyLlama();
  model.metadata.SetString("general.architecture", "mpt");
  for (const char* key : {"context_length", "embedding_length", "block_count", "feed_forward_length"})
    model.metadata.SetU32(fmt::format("mpt.{}", key), 32);
  model.metadata.SetU32("mpt.block_count", 2);
  model.metadata.SetU32s("mpt.attention.head_count", std::vector<uint32_t>{1, 4});
  model.metadata.SetF32("mpt.attention.layer_norm_epsilon", 1e-5f);
  EXPECT_THAT(Refusal(model), AllOf(HasSubstr("mpt.attention.head_count"), HasSubstr("layer 1")));
}

// P12: without output.weight the embeddings are the output matrix, held once.
TEST_F(LoadTest, TiedOutputEqualsAnUntiedCopy) {
  ModelParts untied = TinyLlama(), tied = TinyLlama();
  untied.At("output.weight").data = untied.At("token_embd.weight").data;
  tied.Remove("output.weight");
  EXPECT_EQ(Logits(tied), Logits(untied));
  const auto bytes = [this](const ModelParts& parts) {
    const auto model = Open(parts);
    return engine_->context().ledger->Snapshot().used(memory::Account::kWeightsPinned);
  };
  // Held once in both: embeddings are looked up in the file.
  EXPECT_EQ(bytes(tied), bytes(untied));
}

TEST_F(LoadTest, TooSmallABudgetGivesNumbersAndANextStep) {
  const auto engine = MakeEngine({.threads = 1, .memory_bytes = 16 * kKiB});
  const auto model = Model::Open(*engine, folder_.Write("model.gguf", TinyLlama().BuildString()));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(model.error().message, AllOf(HasSubstr("16.0 KiB"), HasSubstr("it takes a budget of ")));
}

}  // namespace
}  // namespace sluice
