#include "convert/wordpiece_json.h"

namespace sluice::convert {

namespace {

// "[CLS]": special tokens keep their spelling.
bool InBrackets(std::string_view text) {
  return text.size() > 2 && text.front() == '[' && text.back() == ']';
}

Status ReadNormalizer(const JsonObject& file, TokenList& list) {
  SLUICE_TRY_ASSIGN(const auto normalizer, file.Object("normalizer"));
  if (!normalizer) return file.Wrong("normalizer", "BertNormalizer");
  SLUICE_TRY_ASSIGN(const auto type, normalizer->String("type"));
  if (type != "BertNormalizer")
    return normalizer->Wrong("type", "BertNormalizer, the only one that GGUF has for it");
  for (const std::string_view key : {"clean_text", "handle_chinese_chars"}) {
    SLUICE_TRY_ASSIGN(const auto set, normalizer->Bool(key));
    if (!set.value_or(true)) return normalizer->Wrong(key, "true, the only value that GGUF's tokenizer has");
  }
  SLUICE_TRY_ASSIGN(const auto lowercase, normalizer->Bool("lowercase"));
  SLUICE_TRY_ASSIGN(const auto strips, normalizer->Bool("strip_accents"));
  list.lowercase = lowercase.value_or(true);
  list.strip_accents = strips.value_or(*list.lowercase);
  return {};
}

}  // namespace

Status ReadWordPiece(const JsonObject& file, const JsonObject& model, TokenList& list) {
  list.model = "bert";
  list.pre = "default";
  SLUICE_TRY(ReadNormalizer(file, list));
  SLUICE_TRY_ASSIGN(const auto cutter, file.Object("pre_tokenizer"));
  SLUICE_TRY_ASSIGN(const auto cut, cutter ? cutter->String("type") : std::optional<std::string>());
  if (cut != "BertPreTokenizer") return file.Wrong("pre_tokenizer", "BertPreTokenizer");
  SLUICE_TRY_ASSIGN(const auto inner, model.String("continuing_subword_prefix"));
  const std::string continued = inner.value_or("##");
  SLUICE_TRY_ASSIGN(const auto unknown, model.String("unk_token"));
  SLUICE_TRY_ASSIGN(const auto vocabulary, model.Object("vocab"));
  if (!vocabulary) return model.Wrong("vocab", "an object");
  for (const auto& [text, id] : vocabulary->json().items()) {
    if (!id.is_number_integer()) return vocabulary->Wrong(text, "an id");
    const bool continues = !continued.empty() && text.starts_with(continued);
    const std::string ours = InBrackets(text) ? text : continues ? text.substr(continued.size()) : "▁" + text;
    SLUICE_TRY(list.Put(id.get<int64_t>(), ours, text == unknown ? TokenKind::kUnknown : TokenKind::kNormal));
  }
  return {};
}

}  // namespace sluice::convert
