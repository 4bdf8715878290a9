// Filters and methods of strings that search, replace, split and join.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/interpreter.h"

namespace sluice::chat::jinja {
namespace {

using Call = Invocation;

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
  const std::string_view view = call.text().view();
  return MatchAny(call, [view](std::string_view prefix) { return view.starts_with(prefix); });
}
Result<Value> EndsWith(Call& call) {
  const std::string_view view = call.text().view();
  return MatchAny(call, [view](std::string_view suffix) { return view.ends_with(suffix); });
}

// The character index of args[0] within [args[1], args[2]), from the left or right; -1 if nowhere.
Result<int64_t> FindIndex(Call& call, bool from_right) {
  const std::string_view view = call.text().view();
  SLUICE_TRY_ASSIGN(const Text needle, call.String(0));
  SLUICE_TRY_ASSIGN(const int64_t start, call.Integer(1, 0));
  SLUICE_TRY_ASSIGN(const int64_t stop, call.Integer(2, INT64_MAX));
  SLUICE_TRY(call.heap.SpendBytes(view.size() * (from_right ? 8 + needle.size() : 8)));
  const size_t begin = CharOffset(view, start);
  const size_t end = CharOffset(view, stop);
  if (begin > end) return -1;
  const std::string_view window = view.substr(0, end);
  const size_t found = from_right ? window.rfind(needle.view()) : FindBytes(window, needle.view(), begin);
  if (found == std::string_view::npos || found < begin) return -1;
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
  const std::string_view view = call.text().view();
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
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
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
  return ToValue(builder.Finish());
}

// --- Splitting ---

Status AppendPart(Call& call, const Text& text, size_t begin, size_t end, List* parts) {
  SLUICE_TRY(call.heap.Spend(1));
  SLUICE_TRY_ASSIGN(Text part, Slice(text, begin, end, call.heap.meter()));
  return call.heap.Append(parts, Value(std::move(part)));
}

// At runs of whitespace; none at the ends. `left`: how many cuts, negative for all.
Result<Value> SplitBlanks(Call& call, const Text& text, int64_t left) {
  SLUICE_TRY_ASSIGN(List * parts, call.heap.NewList());
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
  const Text& text = call.text();
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  SLUICE_TRY_ASSIGN(int64_t left, call.Integer(1, -1));
  if (!call.Has(0)) return SplitBlanks(call, text, left);
  if (separator.empty()) return Fail(ErrorCode::kCorrupt, "split: the separator is empty");
  SLUICE_TRY_ASSIGN(List * parts, call.heap.NewList());
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
  const Text& text = call.text();
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  SLUICE_TRY_ASSIGN(int64_t left, call.Integer(1, -1));
  if (!call.Has(0) && left < 0) return SplitBlanks(call, text, -1);
  if (separator.empty()) return Fail(ErrorCode::kUnsupported, "rsplit: needs a separator");
  SLUICE_TRY_ASSIGN(List * parts, call.heap.NewList());
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
  const Text& text = call.text();
  SLUICE_TRY_ASSIGN(List * parts, call.heap.NewList({}, /*tuple=*/true));
  SLUICE_TRY(AppendPart(call, text, 0, begin, parts));
  SLUICE_TRY(AppendPart(call, text, begin, end, parts));
  SLUICE_TRY(AppendPart(call, text, end, text.size(), parts));
  return Value(parts);
}

Result<Value> Partition(Call& call) {
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  const std::string_view view = call.text().view();
  SLUICE_TRY(call.heap.SpendBytes(view.size()));
  const size_t found = FindBytes(view, separator.view(), 0);
  if (found == std::string_view::npos) return Triple(call, view.size(), view.size());
  return Triple(call, found, found + separator.size());
}

Result<Value> PartitionRight(Call& call) {
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0));
  const std::string_view view = call.text().view();
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
  const Text& text = call.text();
  const bool keep_ends = call.Boolean(0);
  SLUICE_TRY_ASSIGN(List * parts, call.heap.NewList());
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 8));
  SLUICE_TRY(VisitLines(text.view(), [&](size_t begin, size_t end, size_t next) {
    return AppendPart(call, text, begin, keep_ends ? next : end, parts);
  }));
  return Value(parts);
}

Result<Value> Indent(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
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
  return ToValue(builder.Finish());
}

// separator.join(items): strings only.
Result<Value> Join(Call& call) {
  SLUICE_TRY_ASSIGN(const List* items, Iterate(call.args[0], &call.heap));
  TextBuilder builder(call.heap.meter());
  for (size_t i = 0; i < items->items.size(); ++i) {
    SLUICE_TRY(call.heap.Spend(1));
    if (i > 0) builder.Append(call.text());
    if (!items->items[i].is_text()) {
      return Fail(ErrorCode::kCorrupt, "join: element {} is {}, no string", i, items->items[i].TypeName());
    }
    builder.Append(*items->items[i].text());
  }
  return ToValue(builder.Finish());
}

constexpr Builtin kTextSearchFilters[] = {
    {"replace", "old new | count", Replace},
    {"indent", "| width first blank", Indent},
};

constexpr Builtin kTextSearchMethods[] = {
    {"split", "| sep maxsplit", Split},
    {"startswith", "prefix", StartsWith},
    {"endswith", "suffix", EndsWith},
    {"replace", "old new | count", Replace},
    {"join", "iterable", Join},
    {"find", "sub | start end", Find},
    {"rfind", "sub | start end", FindLast},
    {"index", "sub | start end", Index},
    {"count", "sub", CountOccurrences},
    {"rsplit", "| sep maxsplit", SplitRight},
    {"splitlines", "| keepends", SplitLines},
    {"partition", "sep", Partition},
    {"rpartition", "sep", PartitionRight},
};

}  // namespace

std::span<const Builtin> TextSearchFilters() { return kTextSearchFilters; }
std::span<const Builtin> TextSearchMethods() { return kTextSearchMethods; }

}  // namespace sluice::chat::jinja
