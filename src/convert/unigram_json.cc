#include "convert/unigram_json.h"

#include <cmath>
#include <span>

#include "base/base64.h"
#include "text/charsmap.h"

namespace sluice::convert {

namespace {

using nlohmann::json;

constexpr int kMaxDepth = 4;

// What happens to a text before it is cut into tokens.
struct Preparation {
  std::string charsmap;
  bool joins_spaces = false;
  bool space_in_front = false;
  std::string_view needs_spaces;  // what takes tabs and line ends for spaces
};

// Calls fn for each part of a Sequence, and for anything else itself.
template <typename F>
Status ForEachPart(const JsonObject& part, std::string_view list_key, int depth, F&& fn) {
  SLUICE_TRY_ASSIGN(const auto named, part.String("type"));
  const std::string type = named.value_or("");
  if (type != "Sequence") return fn(part, type);
  const json* parts = part.Find(list_key);
  if (parts == nullptr || !parts->is_array() || depth == kMaxDepth) return part.Wrong(list_key, "a list");
  for (const json& inner : *parts) {
    if (!inner.is_object()) return part.Wrong(list_key, "a list of objects");
    SLUICE_TRY(ForEachPart(JsonObject(inner, part.name()), list_key, depth + 1, fn));
  }
  return {};
}

// Several spaces become one: the only replacement that GGUF's tokenizer makes.
Result<bool> JoinsSpaces(const JsonObject& replace) {
  SLUICE_TRY_ASSIGN(const auto pattern, replace.Object("pattern"));
  if (!pattern) return false;
  SLUICE_TRY_ASSIGN(const auto expression, pattern->String("Regex"));
  SLUICE_TRY_ASSIGN(const auto content, replace.String("content"));
  return expression == " {2,}" && (content == " " || content == "▁");
}

Status ReadNormalizer(const JsonObject& normalizer, Preparation& preparation) {
  return ForEachPart(normalizer, "normalizers", 0,
                     [&](const JsonObject& part, const std::string& type) -> Status {
                       if (type == "Precompiled") {
                         SLUICE_TRY_ASSIGN(const auto text, part.String("precompiled_charsmap"));
                         const auto bytes = DecodeBase64(text.value_or(""));
                         if (!bytes) return part.Wrong("precompiled_charsmap", "base64");
                         preparation.charsmap = *bytes;
                         return {};
                       }
                       if (type == "Replace") {
                         SLUICE_TRY_ASSIGN(const bool joins, JoinsSpaces(part));
                         if (joins) {
                           preparation.joins_spaces = true;
                           return {};
                         }
                       }
                       // Spaces at the ends go with joining the others.
                       if (type == "Strip") {
                         preparation.needs_spaces = "Strip";
                         return {};
                       }
                       return Fail(ErrorCode::kUnsupported,
                                   "{}: a normalizer of type '{}' that Unigram tokenizers of GGUF don't have",
                                   part.name(), type);
                     });
}

Status ReadPreTokenizer(const JsonObject& cutter, Preparation& preparation) {
  return ForEachPart(
      cutter, "pretokenizers", 0, [&](const JsonObject& part, const std::string& type) -> Status {
        if (type == "WhitespaceSplit") {
          preparation.joins_spaces = true;
          preparation.needs_spaces = "WhitespaceSplit";
          return {};
        }
        if (type == "Metaspace") {
          SLUICE_TRY_ASSIGN(preparation.space_in_front, MetaspaceInFront(part));
          return {};
        }
        return Fail(ErrorCode::kUnsupported,
                    "{}: a pre-tokenizer of type '{}' that Unigram tokenizers of GGUF don't have",
                    part.name(), type);
      });
}

// GGUF's tokenizer knows spaces only: others must have become such before.
Status CheckSpaces(const JsonObject& file, const Preparation& preparation) {
  if (preparation.needs_spaces.empty()) return {};
  text::CharsMap map;
  if (!preparation.charsmap.empty()) {
    SLUICE_TRY_ASSIGN(map, text::CharsMap::Create(std::as_bytes(std::span(preparation.charsmap))));
  }
  for (const std::string_view space : {"\t", "\n", "\r"}) {
    const text::CharsMap::Prefix found = map.Match(space);
    if (found.size == space.size() && found.replacement == " ") continue;
    return Fail(ErrorCode::kUnsupported,
                "{}: '{}' takes tabs and line ends for spaces, and no map of characters makes spaces of them "
                "first; Unigram tokenizers of GGUF know spaces only",
                file.name(), preparation.needs_spaces);
  }
  return {};
}

// "vocab": [["▁the", -3.2], …], by id.
Status ReadPieces(const JsonObject& model, TokenList& list) {
  const json* vocabulary = model.Find("vocab");
  if (vocabulary == nullptr || !vocabulary->is_array()) return model.Wrong("vocab", "a list");
  for (const json& piece : *vocabulary) {
    const bool right = piece.is_array() && piece.size() == 2 && piece[0].is_string() &&
                       piece[1].is_number() && std::isfinite(piece[1].get<double>());
    if (!right) {
      return Fail(ErrorCode::kCorrupt, "{}: token {} of vocab is {}; expected [text, score]", model.name(),
                  list.texts.size(),
                  piece.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80));
    }
    list.texts.push_back(piece[0].get<std::string>());
    list.scores.push_back(piece[1].get<float>());
    list.kinds.push_back(TokenKind::kNormal);
  }
  return {};
}

}  // namespace

Result<bool> MetaspaceInFront(const JsonObject& pre_tokenizer) {
  SLUICE_TRY_ASSIGN(const auto type, pre_tokenizer.String("type"));
  if (type != "Metaspace") return false;
  SLUICE_TRY_ASSIGN(const auto scheme, pre_tokenizer.String("prepend_scheme"));
  // Older files say it with a flag.
  SLUICE_TRY_ASSIGN(const auto prefix, pre_tokenizer.Bool("add_prefix_space"));
  return scheme ? *scheme != "never" : prefix.value_or(true);
}

Status ReadUnigram(const JsonObject& file, const JsonObject& model, TokenList& list) {
  list.model = "t5";
  list.pre = "default";
  SLUICE_TRY(ReadPieces(model, list));
  SLUICE_TRY_ASSIGN(const auto unknown, model.Int("unk_id", 0, static_cast<int64_t>(list.texts.size()) - 1));
  if (unknown) list.kinds[static_cast<size_t>(*unknown)] = TokenKind::kUnknown;
  SLUICE_TRY_ASSIGN(const auto falls_back, model.Bool("byte_fallback"));
  if (falls_back.value_or(false)) list.MarkBytes();
  Preparation preparation;
  SLUICE_TRY_ASSIGN(const auto normalizer, file.Object("normalizer"));
  if (normalizer) SLUICE_TRY(ReadNormalizer(*normalizer, preparation));
  SLUICE_TRY_ASSIGN(const auto cutter, file.Object("pre_tokenizer"));
  if (cutter) SLUICE_TRY(ReadPreTokenizer(*cutter, preparation));
  SLUICE_TRY(CheckSpaces(file, preparation));
  list.precompiled_charsmap = std::move(preparation.charsmap);
  list.add_space_prefix = preparation.space_in_front;
  list.remove_extra_whitespaces = preparation.joins_spaces;
  return {};
}

}  // namespace sluice::convert
