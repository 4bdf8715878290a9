// Token ids against independent programs: llama.cpp (data/oracle/tokenizer), the Hugging Face tokenizers
// (data/tokenizer-vectors) and SentencePiece. Skipped where the reference data is absent.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gguf/reader.h"
#include "model/vocabulary.h"
#include "text/tokenizer.h"

namespace sluice::text {
namespace {

using nlohmann::json;

const std::filesystem::path kReference = SLUICE_REFERENCE_DIR;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<Tokenizer> Load(const std::filesystem::path& path) {
  SLUICE_TRY_ASSIGN(const gguf::GgufFile file, gguf::GgufFile::Open(path, gguf::Purpose::kInspect));
  return model::ReadTokenizer(file.metadata());
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::vector<TokenId> Encode(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const Result<std::vector<TokenId>> ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.has_value());
  return ids.has_value() ? *ids : std::vector<TokenId>{};
}

// U+2581 in a text can't be told from a space afterwards, and BERT's tokens don't say how words were written.
bool IsReversible(const Tokenizer& tokenizer, const std::string& text) {
  const TokenizerModel model = tokenizer.vocabulary().model();
  if (model == TokenizerModel::kByteLevelBpe) return true;
  return model != TokenizerModel::kWordPiece && text.find("\u2581") == std::string::npos;
}

// One string of data/oracle/tokenizer: whichever of the fields it has.
void CheckCase(const Tokenizer& t, const json& c) {
  const std::string text = c.contains("hex") ? FromHex(c["hex"]) : c["text"].get<std::string>();
  SCOPED_TRACE(json(text).dump(-1, ' ', true));
  struct {
    const char* field;
    EncodeOptions options;
  } const encodings[] = {{"plain", {false, false}},
                         {"special", {false, true}},
                         {"bos_plain", {true, false}},
                         {"bos_special", {true, true}}};
  for (const auto& [field, options] : encodings) {
    if (c.contains(field)) {
      EXPECT_EQ(Encode(t, text, options), c[field].get<std::vector<TokenId>>()) << field;
    }
  }
  const bool clean = t.cleans_up_spaces();
  struct {
    const char* ids;
    const char* field;
    DecodeOptions options;
  } const decodings[] = {
      {"plain", "detok_plain_hex", {.clean_up_spaces = clean}},
      {"special", "detok_special_unparse_hex", {.render_special = true, .clean_up_spaces = clean}},
      {"bos_special", "detok_bos_remove_hex", {.strip_bos_eos = true, .clean_up_spaces = clean}}};
  for (const auto& [ids, field, options] : decodings) {
    if (c.contains(field)) {
      EXPECT_EQ(t.Decode(c[ids].get<std::vector<TokenId>>(), options), FromHex(c[field])) << field;
    }
  }
  if (IsReversible(t, text)) {
    EXPECT_EQ(t.Decode(Encode(t, text)), text);
  }
}

class RealVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(RealVocabulary, EqualsTheOracle) {
  const std::filesystem::path path = kReference / "oracle/tokenizer" / (std::string(GetParam()) + ".json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference data at " << path;
  const json reference = json::parse(ReadFile(path));
  const Result<Tokenizer> t = Load(kReference / "vocab" / reference["vocab_file"].get<std::string>());
  ASSERT_TRUE(t.has_value()) << t.error().message;
  EXPECT_EQ(t->vocabulary().size(), reference["n_vocab"].get<size_t>());
  EXPECT_EQ(t->vocabulary().add_bos(), reference["add_bos"] != 0);
  EXPECT_EQ(t->vocabulary().add_eos(), reference["add_eos"] != 0);
  EXPECT_EQ(t->vocabulary().bos(), reference["bos"].get<TokenId>());
  EXPECT_EQ(t->vocabulary().eos(), reference["eos"].get<TokenId>());
  size_t checked = 0;
  for (const json& c : reference["cases"]) {
    // The oracle loses parts of decomposed Hangul, which BERT's own tokenizer keeps.
    const bool differs = c["text"].get<std::string>().find("한국어") != std::string::npos;
    if (differs && t->vocabulary().model() == TokenizerModel::kWordPiece) continue;
    CheckCase(*t, c);
    ++checked;
  }
  EXPECT_GE(checked, 80u);
}

INSTANTIATE_TEST_SUITE_P(All, RealVocabulary,
                         testing::Values("bert-bge", "deepseek-coder", "deepseek-llm", "falcon", "gpt-2",
                                         "gpt-neox", "llama-spm", "mpt", "phi-3", "stablelm-3b-4e1t"));

TEST(TinyVocabularies, EqualTheOracle) {
  const std::filesystem::path path = kReference / "oracle/tokenizer/tiny_models.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference data at " << path;
  size_t checked = 0;
  for (const json& reference : json::parse(ReadFile(path))) {
    SCOPED_TRACE(reference["tokenizer"].get<std::string>());
    const std::filesystem::path model = kReference / "oracle" / reference["model"].get<std::string>();
    if (!std::filesystem::exists(model)) continue;  // two are listed but not there
    const Result<Tokenizer> t = Load(model);
    ASSERT_TRUE(t.has_value()) << t.error().message;
    EXPECT_EQ(t->vocabulary().add_bos(), reference["add_bos"] != 0);
    for (const json& c : reference["cases"]) CheckCase(*t, c);
    ++checked;
  }
  EXPECT_GE(checked, 24u);
}

// *.inp holds texts with a separator line behind each, *.out the ids, one line for each.
class ConvertedVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(ConvertedVocabulary, EqualsTheOriginalTokenizer) {
  const std::string name = std::string("ggml-vocab-") + GetParam() + ".gguf";
  if (!std::filesystem::exists(kReference / "vocab" / name))
    GTEST_SKIP() << "no reference data at " << kReference;
  const Result<Tokenizer> t = Load(kReference / "vocab" / name);
  ASSERT_TRUE(t.has_value()) << t.error().message;
  for (const char* folder : {"tokenizer-vectors", "tokenizer-vectors/newer"}) {
    const std::string texts = ReadFile(kReference / folder / (name + ".inp"));
    std::istringstream expected(ReadFile(kReference / folder / (name + ".out")));
    constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
    size_t checked = 0;
    for (size_t begin = 0, end; (end = texts.find(kSeparator, begin)) != std::string::npos;
         begin = end + kSeparator.size()) {
      const std::string text = texts.substr(begin, end - begin);
      std::string line;
      std::getline(expected, line);
      std::istringstream numbers(line);
      const std::vector<TokenId> ids{std::istream_iterator<TokenId>(numbers), {}};
      EXPECT_EQ(Encode(*t, text), ids) << folder << " " << json(text).dump(-1, ' ', true);
      ++checked;
    }
    EXPECT_GE(checked, 40u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvertedVocabulary,
                         testing::Values("bert-bge", "deepseek-coder", "deepseek-llm", "falcon", "gpt-2",
                                         "llama-spm", "mpt", "phi-3"));

std::string Unescape(std::string_view line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    const size_t which = line[i] == '\\' && i + 1 < line.size() ? std::string_view("nrts").find(line[i + 1])
                                                                : std::string::npos;
    text += which == std::string::npos ? line[i] : "\n\r\t "[which];
    if (which != std::string::npos) ++i;
  }
  return text;
}

std::vector<TokenId> Numbers(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream numbers(text);
  return {std::istream_iterator<TokenId>(numbers), {}};
}

// data/tokenizer-vectors/multi: longer and odder texts in many scripts.
void CheckMulti(const char* vocabulary, const std::string& name, EncodeOptions options) {
  const std::filesystem::path multi = kReference / "tokenizer-vectors/multi";
  if (!std::filesystem::exists(multi)) GTEST_SKIP() << "no reference data at " << multi;
  const Result<Tokenizer> t = Load(kReference / "vocab" / vocabulary);
  ASSERT_TRUE(t.has_value()) << t.error().message;
  for (const std::string set : {"small", "mixed"}) {
    std::istringstream texts(ReadFile(multi / (set + "_input.txt")));
    std::istringstream expected(ReadFile(multi / "tokenizers" / (set + "_tokens_" + name + ".txt")));
    std::string text, ids;
    for (int line = 1; std::getline(texts, text) && std::getline(expected, ids); ++line) {
      EXPECT_EQ(Encode(*t, Unescape(text), options), Numbers(ids)) << set << " line " << line;
    }
  }
  EXPECT_EQ(Encode(*t, ReadFile(multi / "utf8_input.txt"), options),
            Numbers(ReadFile(multi / "tokenizers" / ("utf8_tokens_" + name + ".txt"))));
}

TEST(ManyScripts, Gpt2) { CheckMulti("ggml-vocab-gpt-2.gguf", "gpt2", {.parse_special = true}); }
TEST(ManyScripts, Llama2) { CheckMulti("ggml-vocab-llama-spm.gguf", "llama2", {.parse_special = true}); }

}  // namespace
}  // namespace sluice::text
