// Filters and methods of strings. All of them keep, for each byte, whether it is trusted.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/format.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

using Call = Invocation;

Result<Value> Finish(TextBuilder* builder) {
  SLUICE_TRY_ASSIGN(Text text, builder->Finish());
  return Value(std::move(text));
}

Result<Value> Part(Call& call, const Text& text, size_t begin, size_t end) {
  SLUICE_TRY_ASSIGN(Text part, Slice(text, begin, end, call.heap.meter()));
  return Value(std::move(part));
}

// The input of a filter as a string; methods have one already.
Result<Text> Self(Call& call) { return ToText(call.self, call.heap.meter()); }

Result<List*> NewList(Call& call) { return call.heap.NewList(); }

// --- Case ---

// Maps each character; `map(c, previous)` gets the original of the one before, too (0 at the beginning).
template <typename Map>
Result<Value> MapChars(Call& call, Map map) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 16));
  TextBuilder builder(call.heap.meter());
  char32_t previous = 0;
  text.VisitRuns([&](std::string_view run, bool trusted) {
    std::string mapped;
    for (size_t i = 0; i < run.size();) {
      const size_t length = CharLength(run, i);
      const char32_t c = CharAt(run, i);
      const char32_t to = map(c, previous);
      if (to == c) {
        mapped.append(run.substr(i, length));
      } else {
        AppendUtf8(to, &mapped);
      }
      previous = c;
      i += length;
    }
    builder.Append(mapped, trusted);
  });
  return Finish(&builder);
}

Result<Value> Upper(Call& call) {
  return MapChars(call, [](char32_t c, char32_t) { return ToUpper(c); });
}
Result<Value> Lower(Call& call) {
  return MapChars(call, [](char32_t c, char32_t) { return ToLower(c); });
}
Result<Value> SwapCase(Call& call) {
  return MapChars(call, [](char32_t c, char32_t) { return ToUpper(c) != c ? ToUpper(c) : ToLower(c); });
}
Result<Value> Capitalize(Call& call) {
  return MapChars(call,
                  [](char32_t c, char32_t previous) { return previous == 0 ? ToUpper(c) : ToLower(c); });
}
bool IsCased(char32_t c) { return ToUpper(c) != c || ToLower(c) != c; }
// The method: a word begins after whatever is no letter.
Result<Value> TitleMethod(Call& call) {
  return MapChars(call,
                  [](char32_t c, char32_t previous) { return IsCased(previous) ? ToLower(c) : ToUpper(c); });
}
// The filter: a word begins after a blank, a hyphen or an opening bracket.
Result<Value> TitleFilter(Call& call) {
  return MapChars(call, [](char32_t c, char32_t previous) {
    const bool starts = previous == 0 || IsSpace(previous) || previous == '-' || previous == '(' ||
                        previous == '{' || previous == '[' || previous == '<';
    return starts ? ToUpper(c) : ToLower(c);
  });
}

// --- Stripping ---

enum Side { kLeft = 1, kRight = 2, kBoth = 3 };

// Without the characters of args[0] (default: whitespace) at the ends.
Result<Value> StripSides(Call& call, int sides) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY_ASSIGN(const Text chars, call.String(0));
  const bool whitespace = !call.Has(0);
  const std::string_view view = text.view();
  const auto strips = [&](std::string_view c) {
    return whitespace ? IsSpace(CharAt(c, 0)) : chars.view().find(c) != std::string_view::npos;
  };
  size_t begin = 0;
  size_t end = view.size();
  while ((sides & kLeft) && begin < end) {
    const size_t length = CharLength(view, begin);
    SLUICE_TRY(call.heap.SpendBytes(chars.size()));
    if (!strips(view.substr(begin, length))) break;
    begin += length;
  }
  while ((sides & kRight) && end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(view[last]) & 0xc0) == 0x80) --last;
    if (last + CharLength(view, last) != end) last = end - 1;  // not UTF-8: byte by byte
    SLUICE_TRY(call.heap.SpendBytes(chars.size()));
    if (!strips(view.substr(last, end - last))) break;
    end = last;
  }
  return Part(call, text, begin, end);
}

Result<Value> Strip(Call& call) { return StripSides(call, kBoth); }
Result<Value> StripLeft(Call& call) { return StripSides(call, kLeft); }
Result<Value> StripRight(Call& call) { return StripSides(call, kRight); }

Result<Value> RemovePrefix(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY_ASSIGN(const Text prefix, call.String(0));
  const bool has = text.view().starts_with(prefix.view());
  return Part(call, text, has ? prefix.size() : 0, text.size());
}

Result<Value> RemoveSuffix(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY_ASSIGN(const Text suffix, call.String(0));
  const bool has = text.view().ends_with(suffix.view());
  return Part(call, text, 0, text.size() - (has ? suffix.size() : 0));
}

// --- Searching ---

// args[0] as one string or a tuple of them: does any of them match?
template <typename Matches>
Result<Value> MatchAny(Call& call, Matches matches) {
  if (call.args[0].is_text()) return Value(matches(call.args[0].text()->view()));
  const List* choices = call.args[0].list();
  if (choices == nullptr)
    return Fail(ErrorCode::kCorrupt, "expected a string, not {}", call.args[0].TypeName());
  for (const Value& choice : choices->items) {
    SLUICE_TRY(call.heap.Spend(1));
    if (choice.is_text() && matches(choice.text()->view())) return Value(true);
  }
  return Value(false);
}

Result<Value> StartsWith(Call& call) {
  const std::string_view view = call.self.text()->view();
  return MatchAny(call, [view](std::string_view prefix) { return view.starts_with(prefix); });
}
Result<Value> EndsWith(Call& call) {
  const std::string_view view = call.self.text()->view();
  return MatchAny(call, [view](std::string_view suffix) { return view.ends_with(suffix); });
}

// The byte offset of character `index`, counted from the end if negative, clamped to the text.
size_t OffsetOf(std::string_view text, int64_t index) {
  if (index < 0) index = std::max<int64_t>(0, index + CountChars(text));
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += CharLength(text, at);
  return at;
}

// The character index of args[0] within [args[1], args[2]), from the left or right; -1 if nowhere.
Result<int64_t> FindIndex(Call& call, bool from_right) {
  const std::string_view view = call.self.text()->view();
  SLUICE_TRY_ASSIGN(const Text needle, call.String(0));
  SLUICE_TRY_ASSIGN(const int64_t start, call.Integer(1, 0));
  SLUICE_TRY_ASSIGN(const int64_t stop, call.Integer(2, INT64_MAX));
  SLUICE_TRY(call.heap.SpendBytes(view.size() * 8));
  const size_t begin = OffsetOf(view, start);
  const size_t end = OffsetOf(view, stop);
  if (begin > end) return -1;
  const std::string_view window = view.substr(0, end);
  size_t found = FindBytes(window, needle.view(), begin);
  if (from_right) {
    if (needle.empty()) return CountChars(window);
    for (size_t next = found; next != std::string_view::npos;
         next = FindBytes(window, needle.view(), next + 1)) {
      SLUICE_TRY(call.heap.Spend(1));
      found = next;
    }
  }
  if (found == std::string_view::npos) return -1;
  return CountChars(view.substr(0, found));
}

Result<Value> Find(Call& call) {
  SLUICE_TRY_ASSIGN(const int64_t index, FindIndex(call, false));
  return Value(index);
}
Result<Value> FindLast(Call& call) {
  SLUICE_TRY_ASSIGN(const int64_t index, FindIndex(call, true));
  return Value(index);
}
Result<Value> Index(Call& call) {
  SLUICE_TRY_ASSIGN(const int64_t index, FindIndex(call, false));
  if (index < 0) return Fail(ErrorCode::kCorrupt, "index: not found");
  return Value(index);
}

Result<Value> CountOccurrences(Call& call) {
  const std::string_view view = call.self.text()->view();
  SLUICE_TRY_ASSIGN(const Text needle, call.String(0));
  SLUICE_TRY(call.heap.SpendBytes(view.size() * 8));
  if (needle.empty()) return Value(CountChars(view) + 1);
  int64_t count = 0;
  for (size_t at = FindBytes(view, needle.view(), 0); at != std::string_view::npos;
       at = FindBytes(view, needle.view(), at + needle.size())) {
    SLUICE_TRY(call.heap.Spend(1));
    ++count;
  }
  return Value(count);
}

Result<Value> Replace(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY_ASSIGN(const Text from, call.String(0));
  SLUICE_TRY_ASSIGN(const Text to, call.String(1));
  SLUICE_TRY_ASSIGN(int64_t left, call.Integer(2, -1));
  const std::string_view view = text.view();
  TextBuilder builder(call.heap.meter());
  size_t at = 0;
  if (from.empty()) {  // before each character, and at the end
    for (; left != 0 && at <= view.size(); --left) {
      SLUICE_TRY(call.heap.Spend(1));
      builder.Append(to);
      const size_t next = at < view.size() ? at + CharLength(view, at) : at + 1;
      builder.Append(text, at, std::min(next, view.size()));
      at = next;
    }
  } else {
    SLUICE_TRY(call.heap.SpendBytes(view.size()));
    for (; left != 0; --left) {
      SLUICE_TRY(call.heap.Spend(1));
      const size_t found = FindBytes(view, from.view(), at);
      if (found == std::string_view::npos) break;
      builder.Append(text, at, found);
      builder.Append(to);
      at = found + from.size();
    }
  }
  if (at < view.size()) builder.Append(text, at, view.size());
  return Finish(&builder);
}

// --- Splitting ---

Status AppendPart(Call& call, const Text& text, size_t begin, size_t end, List* parts) {
  SLUICE_TRY(call.heap.Spend(1));
  SLUICE_TRY_ASSIGN(Value part, Part(call, text, begin, end));
  return call.heap.Append(parts, std::move(part));
}

// At runs of whitespace; none at the ends. `left`: how many cuts, negative for all.
Result<Value> SplitBlanks(Call& call, const Text& text, int64_t left) {
  SLUICE_TRY_ASSIGN(List * parts, NewList(call));
  const std::string_view view = text.view();
  const auto skip = [&](size_t at, bool space) {
    while (at < view.size() && IsSpace(CharAt(view, at)) == space) at += CharLength(view, at);
    return at;
  };
  SLUICE_TRY(call.heap.SpendBytes(view.size() * 8));
  for (size_t begin = skip(0, true); begin < view.size(); --left) {
    if (left == 0) {
      SLUICE_TRY(AppendPart(call, text, begin, view.size(), parts));
      break;
    }
    const size_t end = skip(begin, false);
    SLUICE_TRY(AppendPart(call, text, begin, end, parts));
    begin = skip(end, true);
  }
  return Value(parts);
}

Result<Value> Split(Call& call) {
  const Text& text = *call.self.text();
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  SLUICE_TRY_ASSIGN(int64_t left, call.Integer(1, -1));
  if (!call.Has(0)) return SplitBlanks(call, text, left);
  if (separator.empty()) return Fail(ErrorCode::kCorrupt, "split: the separator is empty");
  SLUICE_TRY_ASSIGN(List * parts, NewList(call));
  SLUICE_TRY(call.heap.SpendBytes(text.size()));
  size_t at = 0;
  for (; left != 0; --left) {
    const size_t found = FindBytes(text.view(), separator.view(), at);
    if (found == std::string_view::npos) break;
    SLUICE_TRY(AppendPart(call, text, at, found, parts));
    at = found + separator.size();
  }
  SLUICE_TRY(AppendPart(call, text, at, text.size(), parts));
  return Value(parts);
}

// Cuts from the right; the parts stand in their order all the same.
Result<Value> SplitRight(Call& call) {
  const Text& text = *call.self.text();
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  SLUICE_TRY_ASSIGN(int64_t left, call.Integer(1, -1));
  if (!call.Has(0) && left < 0) return SplitBlanks(call, text, -1);
  if (separator.empty()) return Fail(ErrorCode::kUnsupported, "rsplit: needs a separator");
  SLUICE_TRY_ASSIGN(List * parts, NewList(call));
  SLUICE_TRY(call.heap.SpendBytes(text.size() * (1 + separator.size())));
  size_t end = text.size();
  for (size_t at = end; left != 0 && at >= separator.size();) {
    const size_t begin = at - separator.size();
    if (text.view().substr(begin, separator.size()) != separator.view()) {
      --at;
      continue;
    }
    SLUICE_TRY(AppendPart(call, text, at, end, parts));
    end = at = begin;
    --left;
  }
  SLUICE_TRY(AppendPart(call, text, 0, end, parts));
  return Invoke(*FindFilter("reverse"), Value(parts), {}, &call.interpreter);
}

// (before, separator, after)
Result<Value> Triple(Call& call, size_t begin, size_t end) {
  const Text& text = *call.self.text();
  SLUICE_TRY_ASSIGN(List * parts, call.heap.NewList({}, /*tuple=*/true));
  SLUICE_TRY(AppendPart(call, text, 0, begin, parts));
  SLUICE_TRY(AppendPart(call, text, begin, end, parts));
  SLUICE_TRY(AppendPart(call, text, end, text.size(), parts));
  return Value(parts);
}

Result<Value> Partition(Call& call) {
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  const std::string_view view = call.self.text()->view();
  SLUICE_TRY(call.heap.SpendBytes(view.size()));
  const size_t found = FindBytes(view, separator.view(), 0);
  if (found == std::string_view::npos) return Triple(call, view.size(), view.size());
  return Triple(call, found, found + separator.size());
}

Result<Value> PartitionRight(Call& call) {
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  const std::string_view view = call.self.text()->view();
  SLUICE_TRY(call.heap.SpendBytes(view.size() * (1 + separator.size())));
  const size_t found = view.rfind(separator.view());
  if (found == std::string_view::npos) return Triple(call, 0, 0);
  return Triple(call, found, found + separator.size());
}

// Calls visit(begin, end, next) for each line: its text without the line end, and where the next one begins.
template <typename Visitor>
Status VisitLines(std::string_view text, Visitor visit) {
  const auto is_end = [](char32_t c) {
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = CharAt(text, at);
    size_t next = at + CharLength(text, at);
    if (is_end(c)) {
      if (c == '\r' && next < text.size() && text[next] == '\n') ++next;
      SLUICE_TRY(visit(begin, at, next));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) SLUICE_TRY(visit(begin, text.size(), text.size()));
  return {};
}

Result<Value> SplitLines(Call& call) {
  const Text& text = *call.self.text();
  const bool keep_ends = call.Boolean(0);
  SLUICE_TRY_ASSIGN(List * parts, NewList(call));
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 8));
  SLUICE_TRY(VisitLines(text.view(), [&](size_t begin, size_t end, size_t next) {
    return AppendPart(call, text, begin, keep_ends ? next : end, parts);
  }));
  return Value(parts);
}

Result<Value> Indent(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  TextBuilder indent_builder(call.heap.meter());
  if (call.args[0].is_text()) {
    indent_builder.Append(*call.args[0].text());
  } else {
    SLUICE_TRY_ASSIGN(const int64_t width, call.Integer(0, 4));
    if (width > 10'000) return Fail(ErrorCode::kResourceExhausted, "indent: a width of {}", width);
    indent_builder.Append(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '), true);
  }
  SLUICE_TRY_ASSIGN(const Text indent, indent_builder.Finish());
  const bool first = call.Boolean(1);
  const bool blank = call.Boolean(2);
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 8));
  TextBuilder builder(call.heap.meter());
  bool at_first = true;
  const auto add_line = [&](size_t begin, size_t end, size_t) -> Status {
    if (!at_first) builder.Append("\n", true);
    if (at_first ? first : (blank || end > begin)) builder.Append(indent);
    builder.Append(text, begin, end);
    at_first = false;
    return call.heap.Spend(1);
  };
  SLUICE_TRY(VisitLines(text.view(), add_line));
  // A line end at the very end begins one more, empty line; no text at all is one empty line.
  const bool open_end = text.empty() || text.view().back() == '\n' || text.view().back() == '\r';
  if (open_end) SLUICE_TRY(add_line(0, 0, 0));
  return Finish(&builder);
}

// --- Joining and padding ---

// separator.join(items): strings only.
Result<Value> Join(Call& call) {
  SLUICE_TRY_ASSIGN(const List* items, Iterate(call.args[0], &call.heap));
  TextBuilder builder(call.heap.meter());
  for (size_t i = 0; i < items->items.size(); ++i) {
    SLUICE_TRY(call.heap.Spend(1));
    if (i > 0) builder.Append(*call.self.text());
    if (!items->items[i].is_text()) {
      return Fail(ErrorCode::kCorrupt, "join: element {} is {}, no string", i, items->items[i].TypeName());
    }
    builder.Append(*items->items[i].text());
  }
  return Finish(&builder);
}

// To args[0] characters with args[1]; `before`: which share of the padding, in halves, goes in front.
Result<Value> Pad(Call& call, int64_t default_width, int before_halves) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY_ASSIGN(const int64_t width, call.Integer(0, default_width));
  SLUICE_TRY_ASSIGN(const Text fill, call.String(1, " "));
  SLUICE_TRY(call.heap.SpendBytes(text.size()));
  const int64_t padding = std::max<int64_t>(0, width - CountChars(text.view()));
  // An odd blank goes to the left of an odd width, as in Python.
  const int64_t before =
      before_halves == 1 ? padding / 2 + (padding & width & 1) : (before_halves == 2 ? padding : 0);
  TextBuilder builder(call.heap.meter());
  for (int64_t i = 0; i < before && !builder.exhausted(); ++i) builder.Append(fill);
  builder.Append(text);
  for (int64_t i = before; i < padding && !builder.exhausted(); ++i) builder.Append(fill);
  return Finish(&builder);
}

Result<Value> Center(Call& call) { return Pad(call, 80, 1); }
Result<Value> PadLeft(Call& call) { return Pad(call, 0, 2); }
Result<Value> PadRight(Call& call) { return Pad(call, 0, 0); }

Result<Value> ZeroFill(Call& call) {
  const Text& text = *call.self.text();
  SLUICE_TRY_ASSIGN(const int64_t width, call.Integer(0, 0));
  const bool sign = !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+');
  TextBuilder builder(call.heap.meter());
  if (sign) builder.Append(text, 0, 1);
  for (int64_t i = CountChars(text.view()); i < width && !builder.exhausted(); ++i) builder.Append("0", true);
  builder.Append(text, sign ? 1 : 0, text.size());
  return Finish(&builder);
}

// --- What kind of characters ---

template <typename Accepts>
Result<Value> AllChars(Call& call, Accepts accepts) {
  const std::string_view view = call.self.text()->view();
  SLUICE_TRY(call.heap.SpendBytes(view.size() * 16));
  for (size_t i = 0; i < view.size(); i += CharLength(view, i)) {
    if (!accepts(CharAt(view, i))) return Value(false);
  }
  return Value(!view.empty());
}

Result<Value> IsDigits(Call& call) { return AllChars(call, IsDecimal); }
Result<Value> IsLetters(Call& call) { return AllChars(call, IsLetter); }
Result<Value> IsAlphanumeric(Call& call) {
  return AllChars(call, [](char32_t c) { return IsLetter(c) || IsDecimal(c); });
}
Result<Value> IsSpaces(Call& call) { return AllChars(call, IsSpace); }

// All cased characters are of one case, and there is one.
Result<Value> IsCase(Call& call, char32_t (*to_case)(char32_t)) {
  bool any = false;
  SLUICE_TRY_ASSIGN(const Value right_case, AllChars(call, [&](char32_t c) {
                      any = any || IsCased(c);
                      return to_case(c) == c;
                    }));
  return Value(any && right_case.Truthy());
}
Result<Value> IsUpper(Call& call) { return IsCase(call, ToUpper); }
Result<Value> IsLower(Call& call) { return IsCase(call, ToLower); }

// --- Others ---

Result<Value> FormatMethod(Call& call) { return FormatBraces(*call.self.text(), call.all, &call.heap); }

Result<Value> FormatFilter(Call& call) {
  SLUICE_TRY_ASSIGN(const Text format, Self(call));
  if (call.all.named.empty()) {
    SLUICE_TRY_ASSIGN(List * values, call.heap.NewList(call.all.positional, /*tuple=*/true));
    return FormatPercent(format, Value(values), &call.heap);
  }
  SLUICE_TRY_ASSIGN(Dict * values, call.heap.NewDict());
  for (const auto& [name, value] : call.all.named) SLUICE_TRY(call.heap.Set(values, name, value));
  return FormatPercent(format, Value(values), &call.heap);
}

Result<Value> String(Call& call) {
  SLUICE_TRY_ASSIGN(Text text, Self(call));
  return Value(std::move(text));
}

Result<Value> Escape(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 4));
  TextBuilder builder(call.heap.meter());
  text.VisitRuns([&](std::string_view run, bool trusted) {
    std::string escaped;
    for (const char c : run) {
      static constexpr std::string_view kSpecial = "&<>'\"";
      static constexpr std::string_view kNames[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
      const size_t special = kSpecial.find(c);
      if (special == std::string_view::npos) {
        escaped.push_back(c);
      } else {
        escaped += kNames[special];
      }
    }
    builder.Append(escaped, trusted);
  });
  return Finish(&builder);
}

Result<Value> WordCount(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 16));
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size(); i += CharLength(text.view(), i)) {
    const char32_t c = CharAt(text.view(), i);
    const bool is_word = IsLetter(c) || IsDecimal(c) || c == '_';
    if (is_word && !inside) ++words;
    inside = is_word;
  }
  return Value(words);
}

// truncate(length=255, killwords=false, end='...', leeway=5)
Result<Value> Truncate(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, Self(call));
  SLUICE_TRY_ASSIGN(const int64_t length, call.Integer(0, 255));
  SLUICE_TRY_ASSIGN(const Text end, call.String(2, "..."));
  SLUICE_TRY_ASSIGN(const int64_t leeway, call.Integer(3, 5));
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 4));
  const int64_t end_length = CountChars(end.view());
  if (length < end_length || leeway < 0) return Fail(ErrorCode::kCorrupt, "truncate: length is too small");
  const int64_t size = CountChars(text.view());
  if (size <= length || size - length <= leeway) return Value(text);
  size_t cut = OffsetOf(text.view(), length - end_length);
  if (!call.Boolean(1)) {
    const size_t blank = text.view().substr(0, cut).rfind(' ');
    if (blank != std::string_view::npos) cut = blank;
  }
  TextBuilder builder(call.heap.meter());
  builder.Append(text, 0, cut);
  builder.Append(end);
  return Finish(&builder);
}

constexpr Builtin kTextFilters[] = {
    {"upper", "", Upper},
    {"lower", "", Lower},
    {"capitalize", "", Capitalize},
    {"title", "", TitleFilter},
    {"trim", "| chars", Strip},
    {"replace", "old new | count", Replace},
    {"indent", "| width first blank", Indent},
    {"center", "| width", Center},
    {"format", "*", FormatFilter},
    {"string", "", String},
    {"safe", "", String},
    {"escape", "", Escape},
    {"e", "", Escape},
    {"forceescape", "", Escape},
    {"wordcount", "", WordCount},
    {"truncate", "| length killwords end leeway", Truncate},
};

constexpr Builtin kTextMethods[] = {
    {"split", "| sep maxsplit", Split},
    {"strip", "| chars", Strip},
    {"lstrip", "| chars", StripLeft},
    {"rstrip", "| chars", StripRight},
    {"startswith", "prefix", StartsWith},
    {"endswith", "suffix", EndsWith},
    {"replace", "old new | count", Replace},
    {"upper", "", Upper},
    {"lower", "", Lower},
    {"casefold", "", Lower},
    {"swapcase", "", SwapCase},
    {"title", "", TitleMethod},
    {"capitalize", "", Capitalize},
    {"join", "iterable", Join},
    {"format", "*", FormatMethod},
    {"find", "sub | start end", Find},
    {"rfind", "sub | start end", FindLast},
    {"index", "sub | start end", Index},
    {"count", "sub", CountOccurrences},
    {"rsplit", "| sep maxsplit", SplitRight},
    {"splitlines", "| keepends", SplitLines},
    {"partition", "sep", Partition},
    {"rpartition", "sep", PartitionRight},
    {"removeprefix", "prefix", RemovePrefix},
    {"removesuffix", "suffix", RemoveSuffix},
    {"isdigit", "", IsDigits},
    {"isdecimal", "", IsDigits},
    {"isnumeric", "", IsDigits},
    {"isalpha", "", IsLetters},
    {"isalnum", "", IsAlphanumeric},
    {"isspace", "", IsSpaces},
    {"isupper", "", IsUpper},
    {"islower", "", IsLower},
    {"center", "width | fillchar", Center},
    {"ljust", "width | fillchar", PadRight},
    {"rjust", "width | fillchar", PadLeft},
    {"zfill", "width", ZeroFill},
};

}  // namespace

std::span<const Builtin> TextFilters() { return kTextFilters; }
std::span<const Builtin> TextMethods() { return kTextMethods; }

}  // namespace sluice::chat::jinja
