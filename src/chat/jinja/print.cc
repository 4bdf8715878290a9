#include "chat/jinja/print.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sluice::chat::jinja {
namespace {

// Lists and dicts nested deeper are not printed; one that contains itself ends here.
constexpr int kMaxDepth = 100;

Error TooDeep() { return Fail(ErrorCode::kResourceExhausted, "a printed value is nested too deep"); }

// A string with its quotes as Python's repr shows it.
void PrintRepr(const Text& text, TextBuilder* out) {
  out->Work(text.size() * 16);
  const bool has_single = text.view().find('\'') != std::string_view::npos;
  const char quote = has_single && text.view().find('"') == std::string_view::npos ? '"' : '\'';
  out->Append(std::string_view(&quote, 1), false);
  text.VisitRuns([&](std::string_view run, bool trusted) {
    std::string plain;
    for (size_t i = 0; i < run.size();) {
      const size_t length = CharLength(run, i);
      const char32_t c = CharAt(run, i);
      const std::string_view bytes = run.substr(i, length);
      i += length;
      if (c == '\n') {
        plain += "\\n";
      } else if (c == '\r') {
        plain += "\\r";
      } else if (c == '\t') {
        plain += "\\t";
      } else if (c == '\\' || c == static_cast<unsigned char>(quote)) {
        plain.append({'\\', static_cast<char>(c)});
      } else if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad) {
        plain += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
      } else if (c != 0x20 && IsSpace(c)) {
        plain += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
      } else {
        plain += bytes;
      }
    }
    out->Append(plain, trusted);
  });
  out->Append(std::string_view(&quote, 1), false);
}

Status PrintInside(const Value& value, TextBuilder* out, int depth);

Status PrintList(const List& list, TextBuilder* out, int depth) {
  out->Append(list.tuple ? "(" : "[", false);
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out->Append(", ", false);
    SLUICE_TRY(PrintInside(list.items[i], out, depth + 1));
  }
  if (list.tuple && list.items.size() == 1) out->Append(",", false);
  out->Append(list.tuple ? ")" : "]", false);
  return {};
}

Status PrintDict(const Dict& dict, TextBuilder* out, int depth) {
  out->Append("{", false);
  bool first = true;
  for (const Dict::Entry& entry : dict.entries) {
    if (!first) out->Append(", ", false);
    first = false;
    SLUICE_TRY(PrintInside(entry.key, out, depth + 1));
    out->Append(": ", false);
    SLUICE_TRY(PrintInside(entry.value, out, depth + 1));
  }
  out->Append("}", false);
  return {};
}

Status PrintAt(const Value& value, TextBuilder* out, int depth) {
  if (depth > kMaxDepth) return TooDeep();
  if (out->exhausted()) return {};  // Finish tells
  if (const Text* text = value.text()) {
    out->Append(*text);
  } else if (const bool* b = value.Get<bool>()) {
    out->Append(*b ? "True" : "False", true);
  } else if (const int64_t* i = value.Get<int64_t>()) {
    out->Append(fmt::format("{}", *i), true);
  } else if (const double* d = value.Get<double>()) {
    out->Append(FormatFloat(*d), true);
  } else if (value.is_none()) {
    out->Append("None", true);
  } else if (value.list()) {
    return PrintList(*value.list(), out, depth);
  } else if (value.dict()) {
    return PrintDict(*value.dict(), out, depth);
  } else if (value.ns()) {
    out->Append("<Namespace ", false);
    SLUICE_TRY(PrintDict(*value.ns()->attributes, out, depth + 1));
    out->Append(">", false);
  } else if (!value.is_undefined()) {
    out->Append(fmt::format("<{}>", value.TypeName()), true);
  }
  return {};
}

// An element of a list or dict: strings in quotes.
Status PrintInside(const Value& value, TextBuilder* out, int depth) {
  if (const Text* text = value.text()) {
    PrintRepr(*text, out);
    return {};
  }
  if (value.is_undefined()) {
    out->Append("Undefined", true);
    return {};
  }
  return PrintAt(value, out, depth);
}

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, TextBuilder* out) : style_(style), out_(out) {}

  Status Print(const Value& value, int depth) {
    if (depth > kMaxDepth) return TooDeep();
    if (out_->exhausted()) return {};  // Finish tells
    if (const Text* text = value.text()) {
      PrintString(*text);
    } else if (value.list()) {
      return PrintList(*value.list(), depth);
    } else if (value.dict()) {
      return PrintDict(*value.dict(), depth);
    } else {
      SLUICE_TRY_ASSIGN(const std::string scalar, Scalar(value));
      out_->Append(scalar, false);
    }
    return {};
  }

 private:
  static Result<std::string> Scalar(const Value& value) {
    if (const bool* b = value.Get<bool>()) return std::string(*b ? "true" : "false");
    if (value.is_none()) return std::string("null");
    if (value.is_integer()) return fmt::format("{}", value.AsInteger());
    if (!value.is_number())
      return Fail(ErrorCode::kCorrupt, "JSON can't hold a value that is {}", value.TypeName());
    const double number = value.AsDouble();
    if (std::isnan(number)) return std::string("NaN");
    if (std::isinf(number)) return std::string(number < 0 ? "-Infinity" : "Infinity");
    return FormatFloat(number);
  }

  void PrintString(const Text& text) {
    out_->Work(text.size() * 16);
    out_->Append("\"", false);
    text.VisitRuns([this](std::string_view run, bool trusted) { out_->Append(Escape(run), trusted); });
    out_->Append("\"", false);
  }

  std::string Escape(std::string_view run) const {
    std::string escaped;
    escaped.reserve(run.size());
    for (size_t i = 0; i < run.size();) {
      const unsigned char byte = static_cast<unsigned char>(run[i]);
      static constexpr std::string_view kSpecial = "\"\\\n\r\t\b\f";
      static constexpr std::string_view kNames = "\"\\nrtbf";
      if (const size_t special = kSpecial.find(run[i]); special != std::string_view::npos) {
        escaped.append({'\\', kNames[special]});
        ++i;
      } else if (byte < 0x20) {
        escaped += fmt::format("\\u{:04x}", byte);
        ++i;
      } else if (byte < 0x80 || !style_.ascii) {
        escaped.push_back(run[i++]);
      } else {
        const uint32_t c = CharAt(run, i);
        i += CharLength(run, i);
        escaped += c < 0x10000 ? fmt::format("\\u{:04x}", c)
                               : fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
      }
    }
    return escaped;
  }

  void NewLine(int depth) {
    if (!style_.multiline) return;
    out_->Append("\n", false);
    for (int i = 0; i < depth; ++i) out_->Append(style_.indent, false);
  }

  Status PrintList(const List& list, int depth) {
    out_->Append("[", false);
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_->Append(style_.item_separator, false);
      NewLine(depth + 1);
      SLUICE_TRY(Print(list.items[i], depth + 1));
    }
    if (!list.items.empty()) NewLine(depth);
    out_->Append("]", false);
    return {};
  }

  Status PrintDict(const Dict& dict, int depth) {
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
        return a->key.is_text() && b->key.is_text() && a->key.text()->view() < b->key.text()->view();
      });
    }
    out_->Append("{", false);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_->Append(style_.item_separator, false);
      NewLine(depth + 1);
      if (const Text* key = entries[i]->key.text()) {
        PrintString(*key);
      } else {
        SLUICE_TRY_ASSIGN(const std::string key_text, Scalar(entries[i]->key));
        out_->Append(fmt::format("\"{}\"", key_text), false);
      }
      out_->Append(style_.key_separator, false);
      SLUICE_TRY(Print(entries[i]->value, depth + 1));
    }
    if (!entries.empty()) NewLine(depth);
    out_->Append("}", false);
    return {};
  }

  const JsonStyle& style_;
  TextBuilder* out_;
};

}  // namespace

std::string FormatFloat(double number) {
  if (std::isnan(number)) return "nan";
  // The shortest digits that read back as the same number, with an exponent below 1e-4 and from 1e16 on: as Python does.
  std::string text = fmt::format("{}", number);
  if (std::isfinite(number) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Status Print(const Value& value, TextBuilder* out) { return PrintAt(value, out, 0); }

Result<Text> ToText(const Value& value, Meter* meter) {
  if (const Text* text = value.text()) return *text;
  TextBuilder builder(meter);
  SLUICE_TRY(Print(value, &builder));
  return builder.Finish();
}

Status PrintJson(const Value& value, const JsonStyle& style, TextBuilder* out) {
  return JsonPrinter(style, out).Print(value, 0);
}

}  // namespace sluice::chat::jinja
