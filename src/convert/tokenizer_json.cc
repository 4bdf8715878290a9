#include "convert/tokenizer_json.h"

#include <algorithm>

#include "convert/unigram_json.h"
#include "convert/wordpiece_json.h"
#include "text/pretokenizer_table.h"
#include "text/utf8.h"

namespace sluice::convert {

namespace {

using nlohmann::json;

// English contractions in any case, as several libraries write them; and as the table of pre-tokenizers does.
constexpr std::string_view kContractions[] = {"(?i:'s|'t|'re|'ve|'m|'ll|'d)", "'(?i:[sdmt]|ll|ve|re)",
                                              "(?i:[sdmt]|ll|ve|re)"};
constexpr std::string_view kContraction = "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])";

// Control characters and those beyond ASCII by their numbers, as the table has them.
std::string Escaped(std::string_view pattern) {
  std::string escaped;
  for (size_t at = 0; at < pattern.size();) {
    const text::Utf8Step c = text::DecodeUtf8(pattern.substr(at));
    if (c.code_point == '\n') {
      escaped += "\\n";
    } else if (c.code_point == '\r') {
      escaped += "\\r";
    } else if (c.code_point < 0x80) {
      escaped += static_cast<char>(c.code_point);
    } else {
      escaped += fmt::format("\\x{{{:X}}}", c.code_point);
    }
    at += c.size;
  }
  return escaped;
}

std::string Canonical(std::string pattern) {
  pattern = Escaped(pattern);
  for (const std::string_view theirs : kContractions) {
    const size_t at = pattern.find(theirs);
    if (at == std::string::npos) continue;
    for (size_t from = at; (from = pattern.find(theirs, from)) != std::string::npos;) {
      const bool optional = from + theirs.size() < pattern.size() && pattern[from + theirs.size()] == '?';
      const std::string ours = optional ? fmt::format("(?:{})", kContraction) : std::string(kContraction);
      pattern.replace(from, theirs.size(), ours);
      from += ours.size();
    }
    break;
  }
  return pattern;
}

// How the text is cut before merging, gathered from the pre_tokenizer's parts.
struct Cutting {
  std::vector<std::string> patterns;
  bool over_bytes = false;
  bool space_in_front = false;  // a first space is made up
};

Status Gather(const JsonObject& part, int depth, Cutting& cutting) {
  SLUICE_TRY_ASSIGN(const auto type, part.String("type"));
  if (type == "Sequence") {
    const json* parts = part.Find("pretokenizers");
    if (parts == nullptr || !parts->is_array() || depth > 4) return part.Wrong("pretokenizers", "a list");
    for (const json& inner : *parts) {
      if (!inner.is_object()) return part.Wrong("pretokenizers", "a list of objects");
      SLUICE_TRY(Gather(JsonObject(inner, part.name()), depth + 1, cutting));
    }
    return {};
  }
  if (type == "ByteLevel") {
    cutting.over_bytes = true;
    SLUICE_TRY_ASSIGN(const auto cuts, part.Bool("use_regex"));
    if (cuts.value_or(true)) cutting.patterns.emplace_back(text::kGpt2Pattern);
    SLUICE_TRY_ASSIGN(const auto space, part.Bool("add_prefix_space"));
    cutting.space_in_front |= space.value_or(false);
    return {};
  }
  if (type == "Digits") {
    SLUICE_TRY_ASSIGN(const auto single, part.Bool("individual_digits"));
    cutting.patterns.emplace_back(single.value_or(false) ? text::kSingleDigitPattern : R"(\p{N}+)");
    return {};
  }
  if (type == "Split") {
    SLUICE_TRY_ASSIGN(const auto pattern, part.Object("pattern"));
    if (!pattern) return part.Wrong("pattern", "an object");
    SLUICE_TRY_ASSIGN(const auto expression, pattern->String("Regex"));
    if (!expression) return pattern->Wrong("Regex", "text");
    cutting.patterns.push_back(Canonical(*expression));
    return {};
  }
  return Fail(ErrorCode::kUnsupported, "{}: a pre-tokenizer of type '{}' is not known", part.name(),
              type.value_or(""));
}

Status ReadVocabulary(const JsonObject& model, TokenList& list) {
  SLUICE_TRY_ASSIGN(const auto vocabulary, model.Object("vocab"));
  if (!vocabulary) return model.Wrong("vocab", "an object");
  for (const auto& [text, id] : vocabulary->json().items()) {
    if (!id.is_number_integer()) return vocabulary->Wrong(text, "an id");
    SLUICE_TRY(list.Put(id.get<int64_t>(), text, TokenKind::kNormal));
  }
  return {};
}

Status ReadMerges(const JsonObject& model, TokenList& list) {
  const json* merges = model.Find("merges");
  if (merges == nullptr || !merges->is_array()) return model.Wrong("merges", "a list");
  for (const json& merge : *merges) {
    if (merge.is_string()) {
      list.merges.push_back(merge.get<std::string>());
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      list.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    } else {
      return Fail(ErrorCode::kCorrupt, "{}: merge {} is {}; expected \"left right\" or [left, right]",
                  model.name(), list.merges.size(),
                  merge.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80));
    }
  }
  return {};
}

// Merges by rank become merges by score: of what comes out first, the higher one.
void ScoreByRank(TokenList& list) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < list.texts.size(); ++i) ids.emplace(list.texts[i], i);
  list.scores.assign(list.texts.size(), 0.0f);
  std::vector<bool> scored(list.texts.size());
  for (size_t rank = 0; rank < list.merges.size(); ++rank) {
    std::string whole = list.merges[rank];
    const size_t space = whole.find(' ');
    if (space == std::string::npos) continue;
    whole.erase(space, 1);
    const auto found = ids.find(whole);
    if (found == ids.end() || scored[found->second]) continue;
    scored[found->second] = true;
    list.scores[found->second] = -static_cast<float>(rank + 1);
  }
  list.merges.clear();
}

// Whether the normalizer, or the pre-tokenizer of character BPE, puts "▁" before a text.
Result<bool> PutsSpaceInFront(const JsonObject& file) {
  SLUICE_TRY_ASSIGN(const auto normalizer, file.Object("normalizer"));
  if (normalizer) {
    const auto prepends = [](const json& part) {
      return part.is_object() && part.value("type", json()) == "Prepend";
    };
    if (prepends(normalizer->json())) return true;
    const json* parts = normalizer->Find("normalizers");
    if (parts != nullptr && parts->is_array() && std::ranges::any_of(*parts, prepends)) return true;
  }
  SLUICE_TRY_ASSIGN(const auto cutter, file.Object("pre_tokenizer"));
  if (!cutter) return false;
  return MetaspaceInFront(*cutter);
}

// TemplateProcessing begins with a special token: BOS, in all tokenizers of language models; or ends with
// EOS.
Status ReadPostProcessor(const json& processor, int depth, TokenList& list) {
  if (!processor.is_object() || depth > 4) return {};
  const json type = processor.value("type", json());
  if (type == "Sequence") {
    const auto parts = processor.find("processors");
    if (parts == processor.end() || !parts->is_array()) return {};
    for (const json& part : *parts) SLUICE_TRY(ReadPostProcessor(part, depth + 1, list));
    return {};
  }
  if (type != "TemplateProcessing") return {};
  const auto single = processor.find("single");
  if (single == processor.end() || !single->is_array() || single->empty()) return {};
  const auto special = [](const json& part) { return part.is_object() && part.contains("SpecialToken"); };
  list.adds_bos = special(single->front());
  list.adds_eos = single->size() > 1 && special(single->back());
  return {};
}

Status NamePreTokenizer(const JsonObject& file, const JsonObject& model, const std::string& pre,
                        bool clean_up_spaces, TokenList& list) {
  SLUICE_TRY_ASSIGN(const auto cutter, file.Object("pre_tokenizer"));
  Cutting cutting;
  if (cutter) {
    Status gathered = Gather(*cutter, 0, cutting);
    if (!gathered && pre.empty()) return gathered;
  }
  if (!pre.empty()) {
    if (text::FindPreTokenizer(pre) == nullptr)
      return Fail(ErrorCode::kInvalidArgument, "there is no pre-tokenizer '{}'", pre);
    list.pre = pre;
    return {};
  }
  SLUICE_TRY_ASSIGN(const auto ignore_merges, model.Bool("ignore_merges"));
  const std::vector<std::string_view> patterns(cutting.patterns.begin(), cutting.patterns.end());
  const text::PreTokenizerSpec* spec =
      text::FindPreTokenizer(patterns, ignore_merges.value_or(false), clean_up_spaces);
  if (spec == nullptr) {
    return Fail(ErrorCode::kUnsupported,
                "{}: this way of cutting text into words is not known: {}; if you know its name in "
                "GGUF files, give it with --pre",
                file.name(), fmt::join(patterns, "  then  "));
  }
  list.pre = spec->names.front();
  return {};
}

Status ReadBpe(const JsonObject& file, const JsonObject& model, const std::string& pre, bool clean_up_spaces,
               TokenList& list) {
  SLUICE_TRY(ReadVocabulary(model, list));
  SLUICE_TRY(ReadMerges(model, list));
  SLUICE_TRY_ASSIGN(const auto byte_fallback, model.Bool("byte_fallback"));
  if (byte_fallback.value_or(false)) {
    list.model = "llama";
    list.pre = "default";
    ScoreByRank(list);
    list.MarkBytes();
    SLUICE_TRY_ASSIGN(const auto unknown, model.String("unk_token"));
    if (const text::TokenId id = unknown ? list.Find(*unknown) : text::kNoToken; id != text::kNoToken)
      list.kinds[static_cast<size_t>(id)] = TokenKind::kUnknown;
    SLUICE_TRY_ASSIGN(list.add_space_prefix, PutsSpaceInFront(file));
    list.remove_extra_whitespaces = false;
  } else {
    list.model = "gpt2";
    SLUICE_TRY(NamePreTokenizer(file, model, pre, clean_up_spaces, list));
  }
  return {};
}

}  // namespace

Status AddTokens(const JsonObject& file, TokenList& list) {
  const json* added = file.Find("added_tokens");
  if (added == nullptr) return {};
  if (!added->is_array()) return file.Wrong("added_tokens", "a list");
  for (const json& entry : *added) {
    const JsonObject token(entry, file.name() + ": added_tokens");
    if (!entry.is_object()) return file.Wrong("added_tokens", "a list of objects");
    SLUICE_TRY_ASSIGN(const int64_t id, token.RequireInt({"id"}, 0, INT32_MAX));
    SLUICE_TRY_ASSIGN(const auto text, token.String("content"));
    if (!text) return token.Wrong("content", "text");
    SLUICE_TRY_ASSIGN(const auto special, token.Bool("special"));
    const bool unknown = static_cast<size_t>(id) < list.kinds.size() &&
                         list.kinds[static_cast<size_t>(id)] == TokenKind::kUnknown;
    SLUICE_TRY(list.Put(id, *text,
                        unknown                   ? TokenKind::kUnknown
                        : special.value_or(false) ? TokenKind::kControl
                                                  : TokenKind::kUserDefined));
  }
  return {};
}

Result<TokenList> ReadTokenizerJson(const JsonObject& file, const std::string& pre, bool clean_up_spaces) {
  SLUICE_TRY_ASSIGN(const auto model, file.Object("model"));
  if (!model) return file.Wrong("model", "an object");
  // Old files leave the type out; only BPE has merges.
  SLUICE_TRY_ASSIGN(const auto named, model->String("type"));
  const std::string type = named.value_or(model->Find("merges") != nullptr ? "BPE" : "");
  TokenList list;
  if (type == "BPE") {
    SLUICE_TRY(ReadBpe(file, *model, pre, clean_up_spaces, list));
  } else if (type == "Unigram") {
    SLUICE_TRY(ReadUnigram(file, *model, list));
  } else if (type == "WordPiece") {
    SLUICE_TRY(ReadWordPiece(file, *model, list));
  } else {
    return Fail(ErrorCode::kUnsupported,
                "{}: a tokenizer of type '{}' is not converted; BPE, Unigram and WordPiece are", file.name(),
                type);
  }
  SLUICE_TRY(AddTokens(file, list));
  if (const json* processor = file.Find("post_processor")) SLUICE_TRY(ReadPostProcessor(*processor, 0, list));
  return list;
}

}  // namespace sluice::convert
