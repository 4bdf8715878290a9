#include "convert/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "convert/json_file.h"
#include "convert/sentencepiece_model.h"
#include "convert/tokenizer_json.h"
#include "platform/file.h"

namespace sluice::convert {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxTokenizerBytes = 256u << 20;
constexpr uint64_t kMaxConfigBytes = 16u << 20;

// A JSON file of the folder, empty where there is none.
Result<json> ReadOptional(const fs::path& path, uint64_t max_bytes) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return json::object();
  return ReadJsonObject(path, max_bytes);
}

// The files, and what they are called in messages.
struct Files {
  fs::path folder;
  json tokenizer, config, generation, added, special;

  JsonObject Object(const json& value, const char* name) const { return {value, (folder / name).string()}; }
  JsonObject tokenizer_config() const { return Object(config, "tokenizer_config.json"); }
  JsonObject generation_config() const { return Object(generation, "generation_config.json"); }
};

Result<Files> ReadFiles(const fs::path& folder) {
  Files files{.folder = folder};
  SLUICE_TRY_ASSIGN(files.tokenizer, ReadOptional(folder / "tokenizer.json", kMaxTokenizerBytes));
  SLUICE_TRY_ASSIGN(files.config, ReadOptional(folder / "tokenizer_config.json", kMaxConfigBytes));
  SLUICE_TRY_ASSIGN(files.generation, ReadOptional(folder / "generation_config.json", kMaxConfigBytes));
  SLUICE_TRY_ASSIGN(files.added, ReadOptional(folder / "added_tokens.json", kMaxConfigBytes));
  SLUICE_TRY_ASSIGN(files.special, ReadOptional(folder / "special_tokens_map.json", kMaxConfigBytes));
  return files;
}

Result<TokenList> ReadTokens(const Files& files, const std::string& pre) {
  std::error_code ignored;
  const JsonObject tokenizer = files.Object(files.tokenizer, "tokenizer.json");
  if (const fs::path path = files.folder / "tokenizer.model"; fs::exists(path, ignored)) {
    SLUICE_TRY_ASSIGN(const std::string bytes, platform::ReadWholeFile(path, kMaxTokenizerBytes));
    Result<TokenList> list = ReadSentencePieceModel(std::as_bytes(std::span(bytes)));
    if (!list) return Fail(list.error().code, "{}: {}", path.string(), list.error().message);
    SLUICE_TRY(AddTokens(tokenizer, *list));
    return list;
  }
  if (files.tokenizer.empty())
    return Fail(ErrorCode::kNotFound, "{} has neither tokenizer.json nor tokenizer.model",
                files.folder.string());
  SLUICE_TRY_ASSIGN(const auto clean, files.tokenizer_config().Bool("clean_up_tokenization_spaces"));
  return ReadTokenizerJson(tokenizer, pre, clean.value_or(true));
}

// tokenizer_config.json: "added_tokens_decoder": {"32000": {"content": …, "special": …}}; added_tokens.json:
// {text: id}.
Status AddMoreTokens(const Files& files, TokenList& list) {
  SLUICE_TRY_ASSIGN(const auto decoder, files.tokenizer_config().Object("added_tokens_decoder"));
  if (decoder) {
    for (const auto& [id, entry] : decoder->json().items()) {
      const bool number = !id.empty() && id.size() < 10 &&
                          std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; });
      if (!number || !entry.is_object()) return decoder->Wrong(id, "an object under a token's id");
      const JsonObject token(entry, decoder->name() + ": " + id);
      SLUICE_TRY_ASSIGN(const auto text, token.String("content"));
      if (!text) return token.Wrong("content", "text");
      const auto index = static_cast<size_t>(std::stoul(id));
      if (index < list.texts.size() && list.texts[index] == *text && list.kinds[index] != TokenKind::kNormal)
        continue;
      SLUICE_TRY_ASSIGN(const auto special, token.Bool("special"));
      SLUICE_TRY(list.Put(static_cast<int64_t>(index), *text,
                          special.value_or(false) ? TokenKind::kControl : TokenKind::kUserDefined));
    }
  }
  for (const auto& [text, id] : files.added.items()) {
    if (!id.is_number_integer()) return files.Object(files.added, "added_tokens.json").Wrong(text, "an id");
    const auto index = id.get<int64_t>();
    if (index >= 0 && static_cast<size_t>(index) < list.texts.size() &&
        list.texts[static_cast<size_t>(index)] == text)
      continue;
    SLUICE_TRY(list.Put(index, text, TokenKind::kUserDefined));
  }
  return {};
}

// A special token's text: itself, or an object's content.
Result<std::optional<std::string>> SpecialText(const JsonObject& config, std::string_view key) {
  const json* found = config.Find(key);
  if (found == nullptr || found->is_string()) return config.String(key);
  if (!found->is_object()) return config.Wrong(key, "text, or an object with content");
  return JsonObject(*found, config.name() + ": " + std::string(key)).String("content");
}

Status WriteSpecials(const Files& files, const TokenList& list, gguf::Metadata& metadata) {
  constexpr std::pair<std::string_view, std::string_view> kSpecials[] = {
      {"bos_token", "bos"},       {"eos_token", "eos"}, {"unk_token", "unknown"}, {"pad_token", "padding"},
      {"sep_token", "seperator"}, {"cls_token", "cls"}, {"mask_token", "mask"}};
  for (const auto& [theirs, ours] : kSpecials) {
    SLUICE_TRY_ASSIGN(auto text, SpecialText(files.tokenizer_config(), theirs));
    if (!text) {
      SLUICE_TRY_ASSIGN(text, SpecialText(files.Object(files.special, "special_tokens_map.json"), theirs));
    }
    if (!text) continue;
    const text::TokenId id = list.Find(*text);
    if (id != text::kNoToken)
      metadata.SetU32(fmt::format("tokenizer.ggml.{}_token_id", ours), static_cast<uint32_t>(id));
  }
  // The token list itself knows which one stands for what has none.
  const auto unknown = std::ranges::find(list.kinds, TokenKind::kUnknown);
  if (unknown != list.kinds.end() && !metadata.Has("tokenizer.ggml.unknown_token_id"))
    metadata.SetU32("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(unknown - list.kinds.begin()));
  return {};
}

// Ids that end an answer, and how the makers sample.
Status WriteGeneration(const Files& files, const TokenList& list, gguf::Metadata& metadata) {
  const JsonObject generation = files.generation_config();
  std::vector<int32_t> ends;
  if (const json* eos = generation.Find("eos_token_id")) {
    for (const json& id : eos->is_array() ? *eos : json::array({*eos})) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
          id.get<int64_t>() >= static_cast<int64_t>(list.texts.size()))
        return generation.Wrong("eos_token_id", fmt::format("ids from 0 to {}", list.texts.size() - 1));
      ends.push_back(id.get<int32_t>());
    }
  }
  if (!ends.empty()) {
    metadata.SetI32s("tokenizer.ggml.eos_token_ids", ends);
    if (!metadata.Has("tokenizer.ggml.eos_token_id"))
      metadata.SetU32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(ends.front()));
  }
  SLUICE_TRY_ASSIGN(const auto samples, generation.Bool("do_sample"));
  if (!samples.value_or(true)) metadata.SetF32("general.sampling.temp", 0);
  if (!samples.value_or(false)) return {};
  constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {
      {"temperature", "temp"},
      {"top_p", "top_p"},
      {"min_p", "min_p"},
      {"repetition_penalty", "penalty_repeat"}};
  for (const auto& [theirs, ours] : kNumbers) {
    SLUICE_TRY_ASSIGN(const auto value, generation.Number(theirs));
    if (value) metadata.SetF32(fmt::format("general.sampling.{}", ours), static_cast<float>(*value));
  }
  SLUICE_TRY_ASSIGN(const auto top_k, generation.Int("top_k", 0, INT32_MAX));
  if (top_k) metadata.SetI32("general.sampling.top_k", static_cast<int32_t>(*top_k));
  return {};
}

// A file of its own, one text, or a list of named ones, of which "default" is the chat template.
Status WriteChatTemplate(const Files& files, gguf::Metadata& metadata) {
  std::error_code ignored;
  if (const fs::path path = files.folder / "chat_template.jinja"; fs::exists(path, ignored)) {
    SLUICE_TRY_ASSIGN(const std::string text, platform::ReadWholeFile(path, kMaxConfigBytes));
    metadata.SetString("tokenizer.chat_template", text);
    return {};
  }
  const JsonObject config = files.tokenizer_config();
  const json* found = config.Find("chat_template");
  if (found == nullptr) return {};
  if (found->is_string()) {
    metadata.SetString("tokenizer.chat_template", found->get<std::string>());
    return {};
  }
  if (!found->is_array()) return config.Wrong("chat_template", "text, or a list of named ones");
  for (const json& entry : *found) {
    if (!entry.is_object()) return config.Wrong("chat_template", "a list of objects");
    const JsonObject named(entry, config.name() + ": chat_template");
    SLUICE_TRY_ASSIGN(const auto name, named.String("name"));
    SLUICE_TRY_ASSIGN(const auto text, named.String("template"));
    if (!name || !text) return config.Wrong("chat_template", "objects with name and template");
    metadata.SetString(*name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + *name,
                       *text);
  }
  return {};
}

Status WriteFlags(const Files& files, const TokenList& list, gguf::Metadata& metadata) {
  const JsonObject config = files.tokenizer_config();
  SLUICE_TRY_ASSIGN(auto adds_bos, config.Bool("add_bos_token"));
  if (!adds_bos) adds_bos = list.adds_bos;
  // SentencePiece tokenizers begin with BOS unless they say otherwise.
  if (!adds_bos && list.model == "llama") adds_bos = true;
  if (adds_bos) metadata.SetBool("tokenizer.ggml.add_bos_token", *adds_bos);
  SLUICE_TRY_ASSIGN(auto adds_eos, config.Bool("add_eos_token"));
  // GGUF's default for "t5" is that of an encoder, whose texts end with EOS; a prompt doesn't.
  if (!adds_eos && list.model == "t5") adds_eos = list.adds_eos.value_or(false);
  if (adds_eos) metadata.SetBool("tokenizer.ggml.add_eos_token", *adds_eos);
  SLUICE_TRY_ASSIGN(const auto space, config.Bool("add_prefix_space"));
  if (list.add_space_prefix)
    metadata.SetBool("tokenizer.ggml.add_space_prefix", space.value_or(*list.add_space_prefix));
  if (list.lowercase) metadata.SetBool("tokenizer.ggml.normalizer.lowercase", *list.lowercase);
  if (list.strip_accents) metadata.SetBool("tokenizer.ggml.normalizer.strip_accents", *list.strip_accents);
  if (list.remove_extra_whitespaces)
    metadata.SetBool("tokenizer.ggml.remove_extra_whitespaces", *list.remove_extra_whitespaces);
  return {};
}

void WriteTokens(const TokenList& list, gguf::Metadata& metadata) {
  metadata.SetString("tokenizer.ggml.model", list.model);
  metadata.SetString("tokenizer.ggml.pre", list.pre);
  metadata.SetStrings("tokenizer.ggml.tokens", list.texts);
  if (!list.scores.empty()) metadata.SetF32s("tokenizer.ggml.scores", list.scores);
  std::vector<int32_t> kinds;
  for (const TokenKind kind : list.kinds) kinds.push_back(static_cast<int32_t>(kind));
  metadata.SetI32s("tokenizer.ggml.token_type", kinds);
  if (!list.merges.empty()) metadata.SetStrings("tokenizer.ggml.merges", list.merges);
  if (!list.precompiled_charsmap.empty()) {
    const auto bytes = std::as_bytes(std::span(list.precompiled_charsmap));
    metadata.Set({.key = "tokenizer.ggml.precompiled_charsmap",
                  .type = gguf::ValueType::kArray,
                  .element_type = gguf::ValueType::kU8,
                  .count = bytes.size(),
                  .payload = bytes});
  }
}

}  // namespace

Status ConvertTokenizer(const std::string& folder, const TokenizerOptions& options, gguf::Metadata& metadata,
                        std::vector<std::string>* warnings) {
  SLUICE_TRY_ASSIGN(const Files files, ReadFiles(folder));
  SLUICE_TRY_ASSIGN(TokenList list, ReadTokens(files, options.pre));
  SLUICE_TRY(AddMoreTokens(files, list));
  const auto rows = static_cast<size_t>(options.embedding_rows);
  if (list.texts.size() > rows) {
    return Fail(ErrorCode::kCorrupt,
                "{}: the tokenizer has {} tokens, the model {} rows for them; the first without one is '{}'",
                folder, list.texts.size(), rows, list.texts[rows].substr(0, 80));
  }
  if (list.texts.size() < rows)
    warnings->push_back(
        fmt::format("the model has rows for {} tokens more than the tokenizer, which stay unused",
                    rows - list.texts.size()));
  list.PadTo(rows);
  WriteTokens(list, metadata);
  SLUICE_TRY(WriteSpecials(files, list, metadata));
  SLUICE_TRY(WriteFlags(files, list, metadata));
  SLUICE_TRY(WriteGeneration(files, list, metadata));
  return WriteChatTemplate(files, metadata);
}

}  // namespace sluice::convert
