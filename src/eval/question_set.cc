#include "eval/question_set.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "text/utf8.h"

namespace sluice::eval {
namespace {

using nlohmann::json;

constexpr size_t kMaxLineBytes = 1 << 20;

Result<std::string> TakeString(const json& value, std::string_view what) {
  if (!value.is_string())
    return Fail(ErrorCode::kCorrupt, "{} is {}; expected a string", what, value.type_name());
  return value.get<std::string>();
}

Result<std::vector<std::string>> TakeStrings(const json& value, std::string_view what) {
  if (!value.is_array())
    return Fail(ErrorCode::kCorrupt, "{} is {}; expected an array of strings", what, value.type_name());
  std::vector<std::string> strings;
  for (const json& element : value) {
    SLUICE_TRY_ASSIGN(std::string text, TakeString(element, fmt::format("{}[{}]", what, strings.size())));
    strings.push_back(std::move(text));
  }
  return strings;
}

Result<json> ParseObject(std::string_view line) {
  if (line.size() > kMaxLineBytes)
    return Fail(ErrorCode::kCorrupt, "{} bytes in one line; at most {} are allowed", line.size(),
                kMaxLineBytes);
  size_t keys = 0;
  const auto count_keys = [&](int depth, json::parse_event_t event, const json&) {
    keys += event == json::parse_event_t::key && depth == 1 ? 1 : 0;
    return true;
  };
  try {
    json object = json::parse(line, count_keys);
    if (!object.is_object())
      return Fail(ErrorCode::kCorrupt, "found {}; expected an object", object.type_name());
    if (object.size() != keys) return Fail(ErrorCode::kCorrupt, "a key stands there twice");
    return object;
  } catch (const json::exception& e) {
    return Fail(ErrorCode::kCorrupt, "not JSON: {}", e.what());
  }
}

Result<Question> ParseQuestion(std::string_view line) {
  SLUICE_TRY_ASSIGN(const json object, ParseObject(line));
  for (const auto& member : object.items()) {
    const std::string& key = member.key();
    if (key != "kind" && key != "prompt" && key != "answer" && key != "accept")
      return Fail(ErrorCode::kCorrupt, "unknown key \"{}\"", key);
  }
  Question question;
  const std::pair<const char*, std::string*> required[] = {
      {"kind", &question.kind}, {"prompt", &question.prompt}, {"answer", &question.answer}};
  for (const auto& [key, target] : required) {
    if (!object.contains(key)) return Fail(ErrorCode::kCorrupt, "\"{}\" is missing", key);
    SLUICE_TRY_ASSIGN(*target, TakeString(object[key], key));
    if (target->empty()) return Fail(ErrorCode::kCorrupt, "\"{}\" is empty", key);
  }
  if (object.contains("accept")) {
    SLUICE_TRY_ASSIGN(question.accept, TakeStrings(object["accept"], "accept"));
  }
  return question;
}

bool IsSpace(uint32_t code_point) {
  if (code_point <= 0x20) return code_point == ' ' || (code_point >= '\t' && code_point <= '\r');
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// `text` must be valid UTF-8.
std::string_view Trim(std::string_view text) {
  while (!text.empty()) {
    const text::Utf8Step step = text::DecodeUtf8(text);
    if (!IsSpace(step.code_point)) break;
    text.remove_prefix(step.size);
  }
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (text[last] & 0xc0) == 0x80) --last;
    if (!IsSpace(text::DecodeUtf8(text.substr(last)).code_point)) break;
    text = text.substr(0, last);
  }
  return text;
}

}  // namespace

Result<std::vector<Question>> ParseQuestions(std::string_view text) {
  std::vector<Question> questions;
  for (size_t line_number = 1; !text.empty(); ++line_number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    Result<Question> question = ParseQuestion(line);
    if (!question) return Annotate(std::move(question).error(), fmt::format("line {}", line_number));
    questions.push_back(*std::move(question));
  }
  if (questions.empty()) return Fail(ErrorCode::kInvalidArgument, "the question set holds no question");
  return questions;
}

std::string NormalAnswer(std::string_view text) {
  const std::string valid = text::ToValidUtf8(text);
  utf8proc_uint8_t* folded = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(valid.data()), static_cast<utf8proc_ssize_t>(valid.size()),
      &folded, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(folded, &std::free);
  SLUICE_CHECK(size >= 0);  // valid UTF-8 folds
  std::string_view normal = Trim({reinterpret_cast<const char*>(folded), static_cast<size_t>(size)});
  for (const std::string_view stop : {".", "。"}) {
    if (!normal.ends_with(stop)) continue;
    normal = Trim(normal.substr(0, normal.size() - stop.size()));
    break;
  }
  return std::string(normal);
}

bool IsRight(const Question& question, std::string_view answer) {
  const std::string normal = NormalAnswer(answer);
  return normal == NormalAnswer(question.answer) ||
         std::any_of(question.accept.begin(), question.accept.end(),
                     [&](const std::string& accepted) { return normal == NormalAnswer(accepted); });
}

void Scoreboard::Add(std::string_view kind, bool right) {
  auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const KindScore& k) { return k.kind == kind; });
  if (found == kinds_.end()) found = kinds_.insert(found, {std::string(kind), {}});
  for (Score* score : {&found->score, &all_}) {
    ++score->total;
    score->right += right ? 1 : 0;
  }
}

}  // namespace sluice::eval
