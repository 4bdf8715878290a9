// Filters and methods of strings: case, stripping, padding, formatting. All of them (as those in
// text_search.cc) keep, for each byte, whether it is trusted.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/format.h"
#include "chat/jinja/interpreter.h"

namespace sluice::chat::jinja {
namespace {

using Call = Invocation;

// A part of `text`.
Result<Value> Cut(Call& call, const Text& text, size_t begin, size_t end) {
  return ToValue(Slice(text, begin, end, call.heap.meter()));
}

// --- Case ---

// Maps each character; `map(c, previous)` gets the original of the one before, too (0 at the beginning).
template <typename Map>
Result<Value> MapChars(Call& call, Map map) {
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
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
  return ToValue(builder.Finish());
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
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
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
  return Cut(call, text, begin, end);
}

Result<Value> Strip(Call& call) { return StripSides(call, kBoth); }
Result<Value> StripLeft(Call& call) { return StripSides(call, kLeft); }
Result<Value> StripRight(Call& call) { return StripSides(call, kRight); }

Result<Value> RemovePrefix(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
  SLUICE_TRY_ASSIGN(const Text prefix, call.String(0));
  const bool has = text.view().starts_with(prefix.view());
  return Cut(call, text, has ? prefix.size() : 0, text.size());
}

Result<Value> RemoveSuffix(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
  SLUICE_TRY_ASSIGN(const Text suffix, call.String(0));
  const bool has = text.view().ends_with(suffix.view());
  return Cut(call, text, 0, text.size() - (has ? suffix.size() : 0));
}

// --- Padding ---

// args[0]. What is negative, or beyond all bounds, is as good as the ends of this range.
Result<int64_t> Width(Call& call, int64_t absent) {
  SLUICE_TRY_ASSIGN(const int64_t width, call.Integer(0, absent));
  return std::clamp<int64_t>(width, 0, int64_t{1} << 40);
}

// To args[0] characters with args[1]; `before`: which share of the padding, in halves, goes in front.
Result<Value> Pad(Call& call, int64_t default_width, int before_halves) {
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
  SLUICE_TRY_ASSIGN(const int64_t width, Width(call, default_width));
  SLUICE_TRY_ASSIGN(const Text fill, call.String(1, " "));
  SLUICE_TRY(call.heap.SpendBytes(text.size()));
  const int64_t padding = std::max<int64_t>(0, width - CountChars(text.view()));
  // An odd blank goes to the left of an odd width, as in Python.
  const int64_t before =
      before_halves == 1 ? padding / 2 + (padding & width & 1) : (before_halves == 2 ? padding : 0);
  TextBuilder builder(call.heap.meter());
  builder.AppendRepeated(fill, before);
  builder.Append(text);
  builder.AppendRepeated(fill, padding - before);
  return ToValue(builder.Finish());
}

Result<Value> Center(Call& call) { return Pad(call, 80, 1); }
Result<Value> PadLeft(Call& call) { return Pad(call, 0, 2); }
Result<Value> PadRight(Call& call) { return Pad(call, 0, 0); }

Result<Value> ZeroFill(Call& call) {
  const Text& text = call.text();
  SLUICE_TRY_ASSIGN(const int64_t width, Width(call, 0));
  const bool sign = !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+');
  TextBuilder builder(call.heap.meter());
  if (sign) builder.Append(text, 0, 1);
  builder.AppendRepeated(Text::Literal("0"), width - CountChars(text.view()));
  builder.Append(text, sign ? 1 : 0, text.size());
  return ToValue(builder.Finish());
}

// --- What kind of characters ---

template <typename Accepts>
Result<Value> AllChars(Call& call, Accepts accepts) {
  const std::string_view view = call.text().view();
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

Result<Value> FormatMethod(Call& call) { return FormatBraces(call.text(), call.all, &call.heap); }

Result<Value> FormatFilter(Call& call) {
  SLUICE_TRY_ASSIGN(const Text format, call.SelfText());
  if (call.all.named.empty()) {
    SLUICE_TRY_ASSIGN(List * values, call.heap.NewList(call.all.positional, /*tuple=*/true));
    return FormatPercent(format, Value(values), &call.heap);
  }
  SLUICE_TRY_ASSIGN(Dict * values, call.heap.NewDict());
  for (const auto& [name, value] : call.all.named) SLUICE_TRY(call.heap.Set(values, name, value));
  return FormatPercent(format, Value(values), &call.heap);
}

Result<Value> String(Call& call) { return ToValue(call.SelfText()); }

Result<Value> Escape(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
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
  return ToValue(builder.Finish());
}

Result<Value> WordCount(Call& call) {
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
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
  SLUICE_TRY_ASSIGN(const Text text, call.SelfText());
  SLUICE_TRY_ASSIGN(const int64_t length, call.Integer(0, 255));
  SLUICE_TRY_ASSIGN(const Text end, call.String(2, "..."));
  SLUICE_TRY_ASSIGN(const int64_t leeway, call.Integer(3, 5));
  SLUICE_TRY(call.heap.SpendBytes(text.size() * 4));
  const int64_t end_length = CountChars(end.view());
  if (length < end_length || leeway < 0) return Fail(ErrorCode::kCorrupt, "truncate: length is too small");
  const int64_t size = CountChars(text.view());
  if (size <= length || size - length <= leeway) return Value(text);
  size_t cut = CharOffset(text.view(), length - end_length);
  if (!call.Boolean(1)) {
    const size_t blank = text.view().substr(0, cut).rfind(' ');
    if (blank != std::string_view::npos) cut = blank;
  }
  TextBuilder builder(call.heap.meter());
  builder.Append(text, 0, cut);
  builder.Append(end);
  return ToValue(builder.Finish());
}

constexpr Builtin kTextFilters[] = {
    {"upper", "", Upper},
    {"lower", "", Lower},
    {"capitalize", "", Capitalize},
    {"title", "", TitleFilter},
    {"trim", "| chars", Strip},
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
    {"strip", "| chars", Strip},
    {"lstrip", "| chars", StripLeft},
    {"rstrip", "| chars", StripRight},
    {"upper", "", Upper},
    {"lower", "", Lower},
    {"casefold", "", Lower},
    {"swapcase", "", SwapCase},
    {"title", "", TitleMethod},
    {"capitalize", "", Capitalize},
    {"format", "*", FormatMethod},
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
