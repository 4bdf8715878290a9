#include "chat/tool_calls.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chat/jinja/print.h"
#include "chat/jinja/value.h"

namespace sluice::chat {
namespace {

using jinja::Dict;
using jinja::Heap;
using jinja::Value;

constexpr jinja::Limits kLimits;
constexpr size_t kMaxCalls = 128;  // in one turn
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':';
}

// The JSON object or list at the beginning of `text`, by its brackets; empty if it doesn't close.
std::string_view JsonExtent(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return text.substr(0, i + 1);
    }
  }
  return {};
}

// A quoted JSON string.
std::string JsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Reader {
 public:
  explicit Reader(bool bare) : heap_(kLimits), bare_(bare) {}

  // All of `text`, call by call. False where something is no call.
  bool Read(std::string_view text) {
    for (text = Trim(text); !text.empty(); text = Trim(text)) {
      if (calls_.size() >= kMaxCalls) return false;
      const size_t begin = text.find_first_of("{[");
      const size_t json = SkipTags(text, begin);
      if (!bare_ && text.find("<function=") < json) {
        if (!ReadTagged(&text, "<function=", ">", "</function>", "<parameter=", ">", "</parameter>"))
          return false;
      } else if (!bare_ && text.find("<invoke name=\"") < json) {
        if (!ReadTagged(&text, "<invoke name=\"", "\">", "</invoke>", "<parameter name=\"", "\">",
                        "</parameter>")) {
          return false;
        }
      } else if (!bare_ && text.find("<arg_key>") < json) {
        return ReadArgKeys(text);
      } else if (json == text.npos) {
        // What is left after the last call: closing tags and separators, or a bare name.
        return !calls_.empty() && FirstName(text).empty();
      } else {
        const std::string_view before = text.substr(0, json);
        const std::string_view value = JsonExtent(text.substr(json));
        if (value.empty() || !ReadJson(before, value)) return false;
        text.remove_prefix(json + value.size());
        if (text.starts_with(';') || text.starts_with(',')) text.remove_prefix(1);
      }
    }
    return !calls_.empty();
  }

  std::vector<ToolCall>& calls() { return calls_; }

 private:
  // Where JSON begins, passing over "[ARGS]" and its like.
  static size_t SkipTags(std::string_view text, size_t at) {
    while (at < text.size() && text[at] == '[') {
      size_t end = at + 1;
      while (end < text.size() && ((text[end] >= 'A' && text[end] <= 'Z') || text[end] == '_')) ++end;
      if (end == at + 1 || end >= text.size() || text[end] != ']') break;
      at = text.find_first_of("{[", end);
    }
    return at;
  }

  // The first word outside of <tags> and [TAGS] that names a function.
  static std::string_view FirstName(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      if (text[i] == '<' || text[i] == '[') {
        const size_t end = text.find(text[i] == '<' ? '>' : ']', i);
        if (end == text.npos) return {};
        i = end + 1;
        continue;
      }
      size_t end = i;
      while (end < text.size() && IsNameChar(text[end])) ++end;
      std::string_view word = text.substr(i, end - i);
      if (word.starts_with("functions.")) word.remove_prefix(10);
      if (const size_t colon = word.find(':'); colon != word.npos) word = word.substr(0, colon);  // "f:0"
      if (!word.empty() && word != "function" && word != "json") return word;
      i = std::max(end, i + 1);
    }
    return {};
  }

  // `value` is a call, or a list of them, or the arguments of a function that `before` names.
  bool ReadJson(std::string_view before, std::string_view value) {
    Result<Value> parsed = jinja::ParseJson(value, false, &heap_);
    if (!parsed) return false;
    if (const std::string_view name = bare_ ? std::string_view() : FirstName(before); !name.empty()) {
      if (parsed->dict() == nullptr) return false;
      calls_.push_back({"", std::string(name), std::string(value)});
      return true;
    }
    if (bare_ && !before.empty()) return false;
    if (parsed->dict() != nullptr) return ReadCall(parsed->dict());
    for (const Value& item : parsed->list()->items) {
      if (item.dict() == nullptr || !ReadCall(item.dict())) return false;
    }
    return !parsed->list()->items.empty();
  }

  // {"name": …, "arguments": …}, under the names that models use, possibly inside of "function".
  bool ReadCall(Dict* call) {
    const auto find = [&](std::initializer_list<std::string_view> keys) -> const Value* {
      for (const std::string_view key : keys) {
        if (const Value* found = call->Find(key)) return found;
      }
      return nullptr;
    };
    ToolCall result;
    if (const Value* id = find({"id", "tool_call_id"}); id != nullptr && id->is_text())
      result.id = id->text()->view();
    if (const Value* function = find({"function"}); function != nullptr && function->dict() != nullptr) {
      call = function->dict();
    }
    const Value* name = find({"name", "tool_name", "function"});
    const Value* arguments = find({"arguments", "parameters", "args"});
    if (name == nullptr || !name->is_text() || name->text()->empty()) return false;
    if (arguments == nullptr && bare_) return false;  // {"name": …} alone may be an answer
    result.name = name->text()->view();
    if (arguments == nullptr || arguments->is_none()) {
      result.arguments = "{}";
    } else if (arguments->is_text()) {
      result.arguments = arguments->text()->view();  // JSON in a string
    } else {
      jinja::TextBuilder builder(heap_.meter());
      if (!jinja::PrintJson(*arguments, {}, &builder)) return false;
      const Result<jinja::Text> text = builder.Finish();
      if (!text) return false;
      result.arguments = text->view();
    }
    calls_.push_back(std::move(result));
    return true;
  }

  // Adds "key": value. A value that reads as a JSON number, boolean, object … is one, everything else is a
  // string.
  void AddArgument(std::string_view key, std::string_view value, std::string* object) {
    *object += object->empty() ? "{" : ", ";
    *object += JsonString(key) + ": ";
    const std::string_view trimmed = Trim(value);
    const bool quoted = trimmed.starts_with('"');
    const Result<Value> parsed =
        quoted ? Error{ErrorCode::kCorrupt, ""} : jinja::ParseJson(trimmed, false, &heap_);
    *object += parsed ? std::string(trimmed) : JsonString(value);
  }

  // One call written with tags for the function and for each parameter; moves *text behind it. Where
  // </function> is missing, the text's end closes.
  bool ReadTagged(std::string_view* text, std::string_view open, std::string_view open_end,
                  std::string_view close, std::string_view key_open, std::string_view key_end,
                  std::string_view value_close) {
    std::string_view rest = text->substr(text->find(open) + open.size());
    const size_t name_end = rest.find(open_end);
    if (name_end == rest.npos) return false;
    ToolCall call;
    call.name = Trim(rest.substr(0, name_end));
    rest.remove_prefix(name_end + open_end.size());
    const size_t end = std::min(rest.find(close), rest.size());
    std::string_view body = rest.substr(0, end);
    *text = rest.substr(std::min(end + close.size(), rest.size()));
    if (Trim(body).starts_with('{')) {  // <function=f>{…}</function>
      call.arguments = Trim(body);
      if (!jinja::ParseJson(call.arguments, false, &heap_)) return false;
    } else {
      for (size_t at = body.find(key_open); at != body.npos; at = body.find(key_open)) {
        body.remove_prefix(at + key_open.size());
        const size_t key_stop = body.find(key_end);
        const size_t value_stop = body.find(value_close);
        if (key_stop == body.npos || value_stop == body.npos || value_stop < key_stop) return false;
        const std::string_view key = Trim(body.substr(0, key_stop));
        std::string_view value =
            body.substr(key_stop + key_end.size(), value_stop - key_stop - key_end.size());
        if (value.starts_with('\n')) value.remove_prefix(1);
        if (value.ends_with('\n')) value.remove_suffix(1);
        AddArgument(key, value, &call.arguments);
        body.remove_prefix(value_stop + value_close.size());
      }
      call.arguments += call.arguments.empty() ? "{}" : "}";
    }
    if (call.name.empty()) return false;
    calls_.push_back(std::move(call));
    return true;
  }

  // f <arg_key>key</arg_key> <arg_value>value</arg_value> …: one call that fills the text.
  bool ReadArgKeys(std::string_view text) {
    ToolCall call;
    call.name = Trim(text.substr(0, text.find("<arg_key>")));
    for (size_t at = text.find("<arg_key>"); at != text.npos; at = text.find("<arg_key>")) {
      text.remove_prefix(at + 9);
      const size_t key_stop = text.find("</arg_key>");
      const size_t value_at = text.find("<arg_value>");
      const size_t value_stop = text.find("</arg_value>");
      if (value_stop == text.npos || key_stop > value_at || value_at > value_stop) return false;
      AddArgument(Trim(text.substr(0, key_stop)), text.substr(value_at + 11, value_stop - value_at - 11),
                  &call.arguments);
      text.remove_prefix(value_stop + 12);
    }
    call.arguments += call.arguments.empty() ? "{}" : "}";
    if (call.name.empty() || call.name.find_first_of(kBlanks) != call.name.npos) return false;
    calls_.push_back(std::move(call));
    return true;
  }

  Heap heap_;
  bool bare_;
  std::vector<ToolCall> calls_;
};

}  // namespace

std::vector<ToolCall> ParseToolCalls(std::string_view text) {
  Reader reader(/*bare=*/false);
  return reader.Read(text) ? std::move(reader.calls()) : std::vector<ToolCall>();
}

std::vector<ToolCall> ParseBareToolCalls(std::string_view text) {
  Reader reader(/*bare=*/true);
  return reader.Read(text) ? std::move(reader.calls()) : std::vector<ToolCall>();
}

bool MayBeBareToolCall(std::string_view text) {
  // Up to the first key: {"name" … or [{"name" …
  constexpr std::string_view kKeys[] = {"name\"",       "type\"",      "function\"",
                                        "parameters\"", "arguments\"", "id\""};
  const size_t key = text.find_first_not_of(" \t\r\n[{");
  const std::string_view brackets = text.substr(0, key);
  if (key == text.npos) return brackets.find("{{") == brackets.npos;
  if (brackets.find('{') == brackets.npos || text[key] != '"') return false;
  const std::string_view rest = text.substr(key + 1);
  for (const std::string_view name : kKeys) {
    const size_t common = std::min(name.size(), rest.size());
    if (name.substr(0, common) == rest.substr(0, common)) return true;
  }
  return false;
}

}  // namespace sluice::chat
