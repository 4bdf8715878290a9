#include "model/vocabulary.h"

#include <array>

namespace sluice::model {

namespace {

// A special id under the first of its names that the file uses.
Status ReadId(const gguf::Metadata& metadata, std::initializer_list<std::string_view> names, std::optional<int64_t>& id) {
  for (const std::string_view name : names) {
    const std::string key = fmt::format("tokenizer.ggml.{}", name);
    if (!metadata.Has(key)) continue;
    SLUICE_TRY_ASSIGN(id, metadata.GetI64(key));
    return {};
  }
  return {};
}

Status ReadFlag(const gguf::Metadata& metadata, std::string_view name, std::optional<bool>& flag) {
  const std::string key = fmt::format("tokenizer.ggml.{}", name);
  if (!metadata.Has(key)) return {};
  SLUICE_TRY_ASSIGN(flag, metadata.GetBool(key));
  return {};
}

template <typename T>
Status ReadInts(const gguf::Metadata& metadata, std::string_view key, std::vector<T>& out) {
  if (!metadata.Has(key)) return {};
  SLUICE_TRY_ASSIGN(const gguf::IntArray array, metadata.GetInts(key));
  out.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) out.push_back(static_cast<T>(array[i]));
  return {};
}

Status ReadScores(const gguf::Metadata& metadata, std::vector<float>& scores) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  const gguf::Entry* entry = metadata.Find(kKey);
  if (entry == nullptr) return {};
  if (gguf::IsInteger(entry->element_type)) return ReadInts(metadata, kKey, scores);
  SLUICE_TRY_ASSIGN(const gguf::FloatArray array, metadata.GetFloats(kKey));
  scores.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) scores.push_back(array[i]);
  return {};
}

Status ReadSpecials(const gguf::Metadata& metadata, text::VocabularySource& source) {
  // BERT's sequences begin with its class token; newer files call that one BOS, too.
  if (source.model == "bert") SLUICE_TRY(ReadId(metadata, {"cls_token_id"}, source.bos));
  if (!source.bos) SLUICE_TRY(ReadId(metadata, {"bos_token_id"}, source.bos));
  SLUICE_TRY(ReadId(metadata, {"eos_token_id"}, source.eos));
  SLUICE_TRY(ReadId(metadata, {"eot_token_id"}, source.eot));
  SLUICE_TRY(ReadId(metadata, {"eom_token_id"}, source.eom));
  SLUICE_TRY(ReadId(metadata, {"unknown_token_id"}, source.unknown));
  SLUICE_TRY(ReadId(metadata, {"seperator_token_id", "separator_token_id"}, source.separator));
  SLUICE_TRY(ReadId(metadata, {"padding_token_id"}, source.padding));
  SLUICE_TRY(ReadId(metadata, {"mask_token_id"}, source.mask));
  SLUICE_TRY(ReadId(metadata, {"fim_pre_token_id", "prefix_token_id"}, source.fim_prefix));
  SLUICE_TRY(ReadId(metadata, {"fim_suf_token_id", "suffix_token_id"}, source.fim_suffix));
  SLUICE_TRY(ReadId(metadata, {"fim_mid_token_id", "middle_token_id"}, source.fim_middle));
  SLUICE_TRY(ReadId(metadata, {"fim_pad_token_id"}, source.fim_pad));
  SLUICE_TRY(ReadId(metadata, {"fim_rep_token_id"}, source.fim_repository));
  SLUICE_TRY(ReadId(metadata, {"fim_sep_token_id"}, source.fim_separator));
  SLUICE_TRY(ReadInts(metadata, "tokenizer.ggml.eos_token_ids", source.end_of_generation));
  SLUICE_TRY(ReadInts(metadata, "tokenizer.ggml.suppress_tokens", source.suppressed));
  SLUICE_TRY(ReadFlag(metadata, "add_bos_token", source.add_bos));
  SLUICE_TRY(ReadFlag(metadata, "add_eos_token", source.add_eos));
  SLUICE_TRY(ReadFlag(metadata, "add_sep_token", source.add_sep));
  SLUICE_TRY(ReadFlag(metadata, "add_space_prefix", source.add_space_prefix));
  SLUICE_TRY(ReadFlag(metadata, "remove_extra_whitespaces", source.remove_extra_whitespaces));
  SLUICE_TRY(ReadFlag(metadata, "normalizer.lowercase", source.lowercase));
  SLUICE_TRY(ReadFlag(metadata, "normalizer.strip_accents", source.strip_accents));
  return {};
}

}  // namespace

Result<text::Tokenizer> ReadTokenizer(const gguf::Metadata& metadata) {
  text::VocabularySource source;
  SLUICE_TRY_ASSIGN(source.model, metadata.GetStringOr("tokenizer.ggml.model", "none"));
  SLUICE_TRY_ASSIGN(source.pre, metadata.GetStringOr("tokenizer.ggml.pre", ""));
  SLUICE_TRY_ASSIGN(source.name, metadata.GetStringOr("general.name", ""));
  SLUICE_TRY_ASSIGN(source.architecture, metadata.GetStringOr("general.architecture", ""));
  if (metadata.Has("tokenizer.ggml.tokens")) {
    SLUICE_TRY_ASSIGN(source.tokens, metadata.GetStrings("tokenizer.ggml.tokens"));
  }
  if (metadata.Has("tokenizer.ggml.merges")) {
    SLUICE_TRY_ASSIGN(source.merges, metadata.GetStrings("tokenizer.ggml.merges"));
  }
  SLUICE_TRY(ReadScores(metadata, source.scores));
  SLUICE_TRY(ReadInts(metadata, "tokenizer.ggml.token_type", source.token_types));
  SLUICE_TRY_ASSIGN(const uint32_t vocab_size,
                    metadata.GetU32Or(fmt::format("{}.vocab_size", source.architecture), 0));
  source.n_tokens_without_list = vocab_size;
  if (const gguf::Entry* map = metadata.Find("tokenizer.ggml.precompiled_charsmap");
      map != nullptr && gguf::FixedSize(map->element_type) == 1) {
    source.precompiled_charsmap = map->payload;
  }
  SLUICE_TRY(ReadSpecials(metadata, source));
  return text::Tokenizer::Create(source);
}

}  // namespace sluice::model
