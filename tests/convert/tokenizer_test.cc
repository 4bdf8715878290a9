#include "convert/tokenizer.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/base64.h"
#include "convert/sentencepiece_model.h"
#include "convert/tokenizer_json.h"
#include "gguf/reader.h"
#include "model/vocabulary.h"
#include "platform/file.h"
#include "platform/temp_folder.h"

namespace sluice::convert {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kBundled = fs::path(SLUICE_SOURCE_DIR) / "models" / "sluice-demo-hf";
constexpr int64_t kRows = 4096;

const char* const kTexts[] = {"Hello, world!", " two  spaces and a\ttab\n", "Größe ñandú 東京 🙂",
                              "12 + 34 = 46", "<|im_start|>user\nWhat is the capital of Peru?<|im_end|>\n"};

text::Tokenizer TokenizerOf(const gguf::Metadata& metadata) {
  auto tokenizer = model::ReadTokenizer(metadata);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *std::move(tokenizer);
}

// A copy of the bundled folder's small files without some of them.
void CopyWithout(const TempFolder& to, std::initializer_list<std::string_view> names) {
  for (const auto& entry : fs::directory_iterator(kBundled)) {
    const std::string name = entry.path().filename().string();
    if (name != "model.safetensors" && std::ranges::find(names, name) == names.end())
      fs::copy(entry.path(), to / name);
  }
}

gguf::Metadata Convert(const std::string& folder, int64_t rows = kRows) {
  gguf::Metadata metadata;
  std::vector<std::string> warnings;
  const Status status = ConvertTokenizer(folder, {.embedding_rows = rows}, metadata, &warnings);
  EXPECT_TRUE(status) << status.error().message;
  return metadata;
}

std::string ErrorOf(const std::string& folder, int64_t rows = kRows) {
  gguf::Metadata metadata;
  std::vector<std::string> warnings;
  const Status status = ConvertTokenizer(folder, {.embedding_rows = rows}, metadata, &warnings);
  return status ? "converted" : status.error().message;
}

TEST(ConvertTokenizerTest, IsThatOfTheBundledModel) {
  const gguf::Metadata metadata = Convert(kBundled);
  const auto file = gguf::GgufFile::Open((kBundled.parent_path() / "sluice-demo-f16.gguf").string());
  ASSERT_TRUE(file);
  for (const char* key :
       {"model", "pre", "tokens", "scores", "token_type", "bos_token_id", "eos_token_id", "unknown_token_id",
        "padding_token_id", "add_bos_token", "add_space_prefix", "remove_extra_whitespaces"}) {
    const std::string name = std::string("tokenizer.ggml.") + key;
    const gguf::Entry* ours = metadata.Find(name);
    const gguf::Entry* theirs = file->metadata().Find(name);
    ASSERT_TRUE(ours != nullptr && theirs != nullptr) << name;
    EXPECT_TRUE(std::ranges::equal(ours->payload, theirs->payload)) << name;
  }
  EXPECT_EQ(*metadata.GetString("tokenizer.chat_template"),
            *file->metadata().GetString("tokenizer.chat_template"));
  EXPECT_EQ(*metadata.GetF32("general.sampling.temp"), 0.0f);
}

TEST(ConvertTokenizerTest, RanksGiveTheIdsOfScores) {
  const TempFolder folder;
  CopyWithout(folder, {"tokenizer.model"});
  const text::Tokenizer by_rank = TokenizerOf(Convert(folder.path())),
                        by_score = TokenizerOf(Convert(kBundled));
  for (const char* text : kTexts) EXPECT_EQ(*by_rank.Encode(text), *by_score.Encode(text)) << text;
}

// P63: fewer tokens than rows are padded, more are an error, no tokenizer is another.
TEST(ConvertTokenizerTest, MissingAndSurplusTokens) {
  EXPECT_EQ(*Convert(kBundled, kRows + 3).GetU32("tokenizer.ggml.bos_token_id"), 1u);
  const gguf::Metadata padded = Convert(kBundled, kRows + 3);
  EXPECT_EQ(padded.GetStrings("tokenizer.ggml.tokens")->back(), "[PAD4098]");
  EXPECT_THAT(ErrorOf(kBundled, kRows - 1), HasSubstr("has 4096 tokens, the model 4095 rows"));
  const TempFolder folder;
  CopyWithout(folder, {"tokenizer.model", "tokenizer.json"});
  EXPECT_THAT(ErrorOf(folder.path()), HasSubstr("neither tokenizer.json nor tokenizer.model"));
}

// P63: added tokens below, above, and far above those that there are.
TEST(ConvertTokenizerTest, AddedTokensMayLeaveAGap) {
  const TempFolder folder;
  CopyWithout(folder, {});
  folder.Write("added_tokens.json", R"({"<late>": 4099, "<unk>": 0})");
  const gguf::Metadata metadata = Convert(folder.path(), 4100);
  const auto tokens = *metadata.GetStrings("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens[4099], "<late>");
  EXPECT_EQ(tokens[4097], "[PAD4097]");
  EXPECT_EQ((*metadata.GetInts("tokenizer.ggml.token_type"))[4099],
            static_cast<int64_t>(TokenKind::kUserDefined));
  folder.Write("added_tokens.json", R"({"<far>": 99999999999})");
  EXPECT_THAT(ErrorOf(folder.path()), HasSubstr("'<far>' has the id 99999999999"));
}

TEST(ConvertTokenizerTest, ChatTemplatesAndEndsOfAnswers) {
  const TempFolder folder;
  CopyWithout(folder, {"generation_config.json"});
  folder.Write("chat_template.jinja", "{{ messages }}");
  folder.Write("generation_config.json",
               R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "eos_token_id": [5, 2]})");
  const gguf::Metadata metadata = Convert(folder.path());
  EXPECT_EQ(*metadata.GetString("tokenizer.chat_template"), "{{ messages }}");
  EXPECT_EQ(*metadata.GetF32("general.sampling.temp"), 0.6f);
  EXPECT_EQ(*metadata.GetU32("general.sampling.top_k"), 20u);
  EXPECT_THAT(TokenizerOf(metadata).vocabulary().end_of_generation(), testing::IsSupersetOf({2, 5}));
  folder.Write("generation_config.json", R"({"eos_token_id": 4096})");
  EXPECT_THAT(ErrorOf(folder.path()), HasSubstr("eos_token_id is 4096; expected ids from 0 to 4095"));
}

std::string PreOf(const std::string& pre_tokenizer, const std::string& model_keys = "") {
  const auto json = ParseJsonObject(R"({"pre_tokenizer": )" + pre_tokenizer + R"(, "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"])" +
                                        model_keys + "}}",
                                    "tokenizer.json");
  EXPECT_TRUE(json);
  const auto list = ReadTokenizerJson(JsonObject(*json, "tokenizer.json"), "", true);
  return list ? list->pre : list.error().message;
}

// Patterns as these families publish them.
TEST(TokenizerJsonTest, PreTokenizersAreKnownByWhatTheyDo) {
  const auto split = [](const std::string& pattern) {
    return R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ")" + pattern +
           R"("}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
  };
  EXPECT_EQ(PreOf(R"({"type": "ByteLevel", "add_prefix_space": false})"), "gpt-2");
  EXPECT_EQ(
      PreOf(
          split(
              R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)"),
          R"(, "ignore_merges": true)"),
      "llama-bpe");
  EXPECT_EQ(
      PreOf(split(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)")),
      "stablelm2")
      << "as a decoder that cleans up spaces; without it is qwen2";
  EXPECT_EQ(PreOf(R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
                      {"type": "ByteLevel", "add_prefix_space": false}]})"),
            "starcoder");
  // Characters themselves where the table has their numbers.
  EXPECT_EQ(PreOf(R"({"type": "Sequence", "pretokenizers": [
          {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": false},
          {"type": "Split", "pattern": {"Regex": "[一-龥぀-ゟ゠-ヿ]+"}, "behavior": "Isolated", "invert": false},
          {"type": "Split", "pattern": {"Regex": "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},
           "behavior": "Isolated", "invert": false},
          {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})"),
            "deepseek-v3");
  EXPECT_THAT(PreOf(split("[a-z]+")),
              HasSubstr("not known: [a-z]+; if you know its name in GGUF files, give it with --pre"));
  EXPECT_THAT(PreOf(R"({"type": "Whitespace"})"), HasSubstr("'Whitespace' is not known"));
}

TEST(TokenizerJsonTest, BrokenFilesNameTheKey) {
  const auto error = [](const std::string& text) {
    const auto json = ParseJsonObject(text, "tokenizer.json");
    const auto list = ReadTokenizerJson(JsonObject(*json, "tokenizer.json"), "gpt-2", true);
    return list ? "read" : list.error().message;
  };
  EXPECT_THAT(error("{}"), HasSubstr("model is nothing"));
  EXPECT_THAT(error(R"({"model": {"type": "WordLevel", "vocab": {}}})"),
              HasSubstr("'WordLevel' is not converted"));
  EXPECT_THAT(error(R"({"model": {"type": "BPE", "merges": []}})"), HasSubstr("vocab is nothing"));
  EXPECT_THAT(error(R"({"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}})"),
              HasSubstr("a is \"b\"; expected an id"));
  EXPECT_THAT(error(R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})"),
              HasSubstr("'a' has the id -1"));
  EXPECT_THAT(error(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}})"),
              HasSubstr("merge 0 is [\"a\"]"));
  EXPECT_THAT(
      error(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [{"id": 1}]})"),
      HasSubstr("content is nothing"));
}

// A tokenizer of a tokenizer.json, which has `rows` tokens.
text::Tokenizer TokenizerOfJson(const std::string& json, int64_t rows) {
  const TempFolder folder;
  folder.Write("tokenizer.json", json);
  folder.Write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>", "cls_token": "[CLS]"})");
  return TokenizerOf(Convert(folder.path(), rows));
}

constexpr char kUnigram[] = R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true},
      {"id": 1, "content": "</s>", "special": true}, {"id": 2, "content": "<unk>", "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": ""},
      {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
      {"Sequence": {"id": "A", "type_id": 0}}]},
    "model": {"type": "Unigram", "unk_id": 2, "vocab": [["<s>", 0], ["</s>", 0], ["<unk>", 0], ["▁", -3], ["a", -2.5],
      ["b", -2.5], ["▁a", -4], ["ab", -4], ["▁ab", -4.5]]}})";

TEST(TokenizerJsonTest, Unigram) {
  const text::Tokenizer tokenizer = TokenizerOfJson(kUnigram, 9);
  const std::pair<const char*, std::vector<text::TokenId>> cases[] = {
      {"ab", {8}}, {"a", {6}}, {"ba", {3, 5, 4}}, {"a  ab", {6, 8}}, {"a?b", {6, 2, 5}}};
  for (const auto& [text, ids] : cases)
    EXPECT_EQ(*tokenizer.Encode(text, {.add_special = false}), ids) << text;
  // A prompt begins with BOS and does not end with EOS.
  EXPECT_EQ(*tokenizer.Encode("ab", {.add_special = true}), (std::vector<text::TokenId>{0, 8}));
}

// A map of characters (text/charsmap.h) that makes spaces of a tab, a line feed and a carriage return.
std::string MapOfSpaces() {
  std::vector<uint32_t> units(512);
  const auto node = [](uint32_t offset, bool leaf, uint32_t label) {
    return offset << 10 | (leaf ? 1u << 8 : 0u) | label;
  };
  units[0] = node(256, false, 0);  // the root's children are at 256 ^ byte
  uint32_t value_at = 384;
  for (const uint32_t byte : {9u, 10u, 13u}) {
    const uint32_t at = 256 ^ byte;
    units[at] = node(at ^ value_at, true, byte);
    units[value_at++] = 1u << 31;  // the replacement at 0
  }
  const uint32_t size = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes.append(reinterpret_cast<const char*>(units.data()), size);
  return bytes + std::string(" \0", 2);
}

// The ids are those of the npm package @huggingface/tokenizers.
TEST(TokenizerJsonTest, TabsAndLineEndsAreSpacesForUnigram) {
  std::string json = kUnigram;
  const auto replace = [&json](std::string_view from, const std::string& to) {
    json.replace(json.find(from), from.size(), to);
  };
  const std::string metaspace = R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": true})";
  replace(metaspace,
          R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, )" + metaspace + "]}");
  const auto refused = ParseJsonObject(json, "tokenizer.json");
  ASSERT_TRUE(refused);
  const auto list = ReadTokenizerJson(JsonObject(*refused, "tokenizer.json"), "", true);
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message, HasSubstr("'WhitespaceSplit' takes tabs and line ends for spaces"));

  replace(R"("precompiled_charsmap": "")",
          R"("precompiled_charsmap": ")" + EncodeBase64(MapOfSpaces()) + "\"");
  const text::Tokenizer tokenizer = TokenizerOfJson(json, 9);
  for (const char* text : {"a ab", "a\tab", "a\nab", "a\r\nab", "\ta \n ab\n", "a\t\tab"})
    EXPECT_THAT(*tokenizer.Encode(text, {.add_special = false}), ElementsAre(6, 8)) << text;
}

constexpr char kWordPiece[] = R"({"added_tokens": [{"id": 0, "content": "[UNK]", "special": true},
      {"id": 1, "content": "[CLS]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
      "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": {"[UNK]": 0,
      "[CLS]": 1, "flow": 2, "##ing": 3, "##s": 4, "!": 5, "über": 6, "uber": 7, "ing": 8}}})";

TEST(TokenizerJsonTest, WordPiece) {
  const text::Tokenizer tokenizer = TokenizerOfJson(kWordPiece, 9);
  const std::pair<const char*, std::vector<text::TokenId>> cases[] = {
      {"Flowing", {2, 3}}, {"flows!", {2, 4, 5}}, {"ing", {8}}, {"Über", {7}}, {"flower flow", {0, 2}}};
  for (const auto& [text, ids] : cases)
    EXPECT_EQ(*tokenizer.Encode(text, {.add_special = false}), ids) << text;
}

TEST(TokenizerJsonTest, WhatUnigramAndWordPieceOfGgufCantDoIsRefused) {
  const auto error = [](std::string json, const std::string& from, const std::string& to) {
    json.replace(json.find(from), from.size(), to);
    const auto parsed = ParseJsonObject(json, "tokenizer.json");
    EXPECT_TRUE(parsed) << json;
    const auto list = ReadTokenizerJson(JsonObject(*parsed, "tokenizer.json"), "", true);
    return list ? "read" : list.error().message;
  };
  EXPECT_THAT(error(kUnigram, R"("Precompiled", "precompiled_charsmap": "")", R"("Lowercase")"),
              HasSubstr("a normalizer of type 'Lowercase'"));
  EXPECT_THAT(error(kUnigram, R"("precompiled_charsmap": "")", R"("precompiled_charsmap": "?")"),
              HasSubstr("expected base64"));
  EXPECT_THAT(error(kUnigram, R"(" {2,}")", R"("a+")"), HasSubstr("a normalizer of type 'Replace'"));
  EXPECT_THAT(error(kUnigram, "Metaspace", "ByteLevel"), HasSubstr("a pre-tokenizer of type 'ByteLevel'"));
  EXPECT_THAT(error(kUnigram, R"(["a", -2.5])", R"(["a"])"), HasSubstr("token 4 of vocab is [\"a\"]"));
  EXPECT_THAT(error(kUnigram, R"("unk_id": 2)", R"("unk_id": 9)"), HasSubstr("unk_id is 9"));
  EXPECT_THAT(error(kWordPiece, "BertNormalizer", "NFC"), HasSubstr("expected BertNormalizer"));
  EXPECT_THAT(error(kWordPiece, R"("clean_text": true)", R"("clean_text": false)"),
              HasSubstr("clean_text is false"));
  EXPECT_THAT(error(kWordPiece, "BertPreTokenizer", "Whitespace"), HasSubstr("expected BertPreTokenizer"));
}

TEST(SentencePieceModelTest, EveryReferenceModelReads) {
  const fs::path folder = fs::path(SLUICE_REFERENCE_DIR) / "spm";
  if (!fs::exists(folder)) GTEST_SKIP() << "no SentencePiece models at " << folder;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string bytes = *platform::ReadWholeFile(entry.path(), 64 << 20);
    const auto list = ReadSentencePieceModel(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(list) << entry.path() << ": " << list.error().message;
    EXPECT_EQ(list->texts.size(), list->scores.size());
    EXPECT_NE(list->Find("<unk>"), text::kNoToken);
    // Cut anywhere, it is an error or a shorter list, and no more.
    for (size_t size = 0; size < bytes.size(); size += bytes.size() / 50 + 1)
      (void)ReadSentencePieceModel(std::as_bytes(std::span(bytes).first(size)));
  }
}

TEST(SentencePieceModelTest, BrokenBytesNameTheirPlace) {
  const auto error = [](std::string_view bytes) {
    const auto list = ReadSentencePieceModel(std::as_bytes(std::span(bytes)));
    return list ? "read" : list.error().message;
  };
  EXPECT_THAT(error(""), HasSubstr("no pieces"));
  EXPECT_THAT(error("\x0a\x7f"), HasSubstr("byte 2: a field of 127 bytes, of which 0 are there"));
  EXPECT_THAT(error("\xff\xff"), HasSubstr("does not end"));
  EXPECT_THAT(error("\x0f"), HasSubstr("wire type 7"));
  EXPECT_THAT(error("\x0a\x02\x18\x09"), HasSubstr("has kind 9"));
  EXPECT_THAT(error("\x12\x02\x18\x03"), HasSubstr("of type 3"));
}

}  // namespace
}  // namespace sluice::convert
