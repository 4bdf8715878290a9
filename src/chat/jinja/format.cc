#include "chat/jinja/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

// One conversion, whichever syntax it was written in.
struct Spec {
  char fill = ' ';
  char align = '\0';  // '<', '>', '^'; none: by type
  bool plus = false;
  bool blank = false;  // a blank where a plus would be
  bool zero = false;
  bool alternate = false;
  bool comma = false;
  int width = 0;
  int precision = -1;
  char type = '\0';
};

// Nothing sensible is wider; keeps the output in proportion to the pattern.
constexpr int kMaxWidth = 1000;

// Digits at text[*at], capped so that nothing overflows.
int ReadInt(std::string_view text, size_t* at) {
  int value = 0;
  while (*at < text.size() && text[*at] >= '0' && text[*at] <= '9') {
    value = std::min(value * 10 + (text[(*at)++] - '0'), 1'000'000);
  }
  return value;
}

Result<std::string> FormatNumber(const Value& value, const Spec& spec) {
  char type = spec.type;
  if (type == '\0') type = value.is_integer() ? 'd' : (spec.precision < 0 ? 'r' : 'g');
  if (!value.is_number())
    return Fail(ErrorCode::kCorrupt, "%{} needs a number, not {}", type, value.TypeName());
  std::string digits;
  bool negative;
  if (type == 'r') {  // a float, no format given
    negative = std::signbit(value.AsDouble());
    digits = FormatFloat(std::abs(value.AsDouble()));
  } else if (type == 'e' || type == 'E' || type == 'f' || type == 'F' || type == 'g' || type == 'G' ||
             type == '%') {
    const double number = value.AsDouble() * (type == '%' ? 100 : 1);
    negative = std::signbit(number);
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    const double size = std::abs(number);
    digits = type == 'e'   ? fmt::format("{:.{}e}", size, precision)
             : type == 'E' ? fmt::format("{:.{}E}", size, precision)
             : type == 'g' ? fmt::format("{:.{}g}", size, std::max(precision, 1))
             : type == 'G' ? fmt::format("{:.{}G}", size, std::max(precision, 1))
                           : fmt::format("{:.{}f}", size, precision);
    if (type == '%') digits += '%';
  } else {
    const double number = value.AsDouble();
    if (!value.is_integer() && !(std::abs(number) < 0x1p63)) {
      return Fail(ErrorCode::kCorrupt, "%{} can't show a number of this size", type);
    }
    const int64_t integer = value.is_integer() ? value.AsInteger() : static_cast<int64_t>(number);
    negative = integer < 0;
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer);
    digits = type == 'x'   ? fmt::format("{:x}", size)
             : type == 'X' ? fmt::format("{:X}", size)
             : type == 'o' ? fmt::format("{:o}", size)
             : type == 'b' ? fmt::format("{:b}", size)
                           : fmt::format("{}", size);
    if (spec.alternate && type != 'd') digits.insert(0, {'0', type});
  }
  if (spec.comma) {
    const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    for (size_t i = whole; i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  }
  const std::string sign = negative ? "-" : spec.plus ? "+" : spec.blank ? " " : "";
  if (spec.zero) {
    const auto width = static_cast<size_t>(spec.width);
    if (sign.size() + digits.size() < width) digits.insert(0, width - sign.size() - digits.size(), '0');
  }
  return sign + digits;
}

// Appends `value` as `spec` has it, with `convert` ('s', 'r', or none) applied first.
Status AppendFormatted(const Value& value, Spec spec, char convert, Heap* heap, TextBuilder* out) {
  if (spec.width > kMaxWidth || spec.precision > kMaxWidth) {
    return Fail(ErrorCode::kResourceExhausted, "a format wider than {}", kMaxWidth);
  }
  const bool plain_number = spec.type == '\0' && (value.Get<int64_t>() || value.Get<double>());
  const bool numeric = plain_number || (spec.type != '\0' && spec.type != 's');
  Text text;
  if (numeric) {
    SLUICE_TRY_ASSIGN(const std::string number, FormatNumber(value, spec));
    SLUICE_TRY_ASSIGN(text, heap->NewText(number, true));
  } else if (convert == 'r' && value.is_text()) {
    SLUICE_TRY_ASSIGN(List * one, heap->NewList({value}));
    SLUICE_TRY_ASSIGN(const Text shown, ToText(Value(one), heap->meter()));
    SLUICE_TRY_ASSIGN(text, Slice(shown, 1, shown.size() - 1, heap->meter()));
  } else {
    SLUICE_TRY_ASSIGN(text, ToText(value, heap->meter()));
  }
  if (!numeric && spec.precision >= 0) {
    size_t end = 0;
    for (int i = 0; i < spec.precision && end < text.size(); ++i) end += CharLength(text.view(), end);
    SLUICE_TRY_ASSIGN(text, Slice(text, 0, end, heap->meter()));
  }
  const auto padding = static_cast<size_t>(std::max<int64_t>(0, spec.width - CountChars(text.view())));
  const char align = spec.align != '\0' ? spec.align : (value.is_number() ? '>' : '<');
  const size_t before = align == '>' ? padding : align == '^' ? padding / 2 : 0;
  out->Append(std::string(before, spec.fill), true);
  out->Append(text);
  out->Append(std::string(padding - before, spec.fill), true);
  return {};
}

// The values that conversions take in turn.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values) {}

  Result<Value> Next() {
    const List* tuple = values_.list() && values_.list()->tuple ? values_.list() : nullptr;
    const size_t count = tuple ? tuple->items.size() : 1;
    if (next_ >= count) return Fail(ErrorCode::kCorrupt, "a format with more places than values");
    return tuple ? tuple->items[next_++] : (++next_, values_);
  }
  Result<Value> Named(std::string_view name) {
    const Value* found = values_.dict() ? values_.dict()->Find(name) : nullptr;
    if (found == nullptr) return Fail(ErrorCode::kCorrupt, "a format needs '{}'", name);
    return *found;
  }

 private:
  const Value& values_;
  size_t next_ = 0;
};

}  // namespace

Result<Value> FormatPercent(const Text& format, const Value& values, Heap* heap) {
  const std::string_view text = format.view();
  TextBuilder out(heap->meter());
  PercentValues source(values);
  size_t at = 0;
  while (at < text.size()) {
    const size_t percent = std::min(text.find('%', at), text.size());
    out.Append(format, at, percent);
    if (percent == text.size()) break;
    at = percent + 1;
    SLUICE_TRY(heap->Spend(1));
    std::optional<Value> value;
    if (at < text.size() && text[at] == '(') {
      const size_t close = std::min(text.find(')', at), text.size());
      SLUICE_TRY_ASSIGN(value, source.Named(text.substr(at + 1, close - at - 1)));
      at = std::min(close + 1, text.size());
    }
    Spec spec;
    for (; at < text.size() && std::string_view("-+ 0#").find(text[at]) != std::string_view::npos; ++at) {
      if (text[at] == '-') spec.align = '<';
      if (text[at] == '+') spec.plus = true;
      if (text[at] == ' ') spec.blank = true;
      if (text[at] == '0') spec.zero = true;
      if (text[at] == '#') spec.alternate = true;
    }
    if (spec.align == '\0') spec.align = '>';
    spec.width = ReadInt(text, &at);
    if (at < text.size() && text[at] == '.') {
      ++at;
      spec.precision = ReadInt(text, &at);
    }
    if (at >= text.size()) return Fail(ErrorCode::kCorrupt, "a format ends in the middle of a conversion");
    char type = text[at++];
    if (type == '%') {
      out.Append(format, at - 1, at);
      continue;
    }
    if (std::string_view("srdiuxXofFeEgGc").find(type) == std::string_view::npos) {
      return Fail(ErrorCode::kUnsupported, "unknown conversion '%{}'", type);
    }
    if (!value) {
      SLUICE_TRY_ASSIGN(value, source.Next());
    }
    if (type == 'i' || type == 'u') type = 'd';
    const bool textual = type == 's' || type == 'r' || type == 'c';
    spec.type = textual ? 's' : type;
    SLUICE_TRY(AppendFormatted(*value, spec, type, heap, &out));
  }
  return ToValue(out.Finish());
}

namespace {

// "[[fill]align][sign][#][0][width][,][.precision][type]"
Result<Spec> ParseSpec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  const auto is_align = [&](size_t i) {
    return i < text.size() && std::string_view("<>^").find(text[i]) != text.npos;
  };
  if (is_align(1)) spec.fill = text[at++];
  if (is_align(at)) spec.align = text[at++];
  const auto skip = [&](char c) { return at < text.size() && text[at] == c && ++at > 0; };
  spec.plus = skip('+');
  if (!spec.plus) spec.blank = skip(' ');
  if (!spec.plus && !spec.blank) skip('-');
  spec.alternate = skip('#');
  spec.zero = skip('0');
  spec.width = ReadInt(text, &at);
  spec.comma = skip(',');
  if (skip('.')) spec.precision = ReadInt(text, &at);
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size() ||
      (spec.type != '\0' && std::string_view("sdxXobeEfFgG%").find(spec.type) == text.npos)) {
    return Fail(ErrorCode::kUnsupported, "unknown format '{}'", text);
  }
  return spec;
}

// The value that a field "", "0" or "name" stands for.
Result<Value> FieldValue(std::string_view field, const Arguments& arguments, size_t* next) {
  if (field.find_first_of(".[") != std::string_view::npos) {
    return Fail(ErrorCode::kUnsupported, "a format field '{}' reaches into a value", field);
  }
  size_t index = 0;
  if (field.empty()) {
    index = (*next)++;
  } else if (const auto read = std::from_chars(field.data(), field.data() + field.size(), index);
             read.ptr != field.data() + field.size() || read.ec != std::errc()) {
    for (const auto& [name, value] : arguments.named) {
      if (name == field) return value;
    }
    return Fail(ErrorCode::kCorrupt, "a format needs '{}'", field);
  }
  if (index >= arguments.positional.size()) {
    return Fail(ErrorCode::kCorrupt, "a format with more places than values");
  }
  return arguments.positional[index];
}

}  // namespace

Result<Value> FormatBraces(const Text& format, const Arguments& arguments, Heap* heap) {
  const std::string_view text = format.view();
  TextBuilder out(heap->meter());
  size_t next = 0;
  size_t at = 0;
  while (at < text.size()) {
    const size_t brace = std::min(text.find_first_of("{}", at), text.size());
    out.Append(format, at, brace);
    if (brace == text.size()) break;
    SLUICE_TRY(heap->Spend(1 + arguments.named.size() / 8));
    if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {  // {{ and }}
      out.Append(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const size_t close = text.find('}', brace);
    if (text[brace] == '}' || close == std::string_view::npos) {
      return Fail(ErrorCode::kCorrupt, "a format with a single '{}'", text[brace]);
    }
    std::string_view field = text.substr(brace + 1, close - brace - 1);
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec_text = colon < field.size() ? field.substr(colon + 1) : std::string_view();
    field = field.substr(0, colon);
    char convert = '\0';
    if (field.size() >= 2 && field[field.size() - 2] == '!') {
      convert = field.back();
      field.remove_suffix(2);
    }
    SLUICE_TRY_ASSIGN(const Spec spec, ParseSpec(spec_text));
    SLUICE_TRY_ASSIGN(const Value value, FieldValue(field, arguments, &next));
    SLUICE_TRY(AppendFormatted(value, spec, convert, heap, &out));
    at = close + 1;
  }
  return ToValue(out.Finish());
}

namespace {

struct CivilTime {
  int64_t year;
  int month;    // 1 … 12
  int day;      // 1 … 31
  int weekday;  // 0: Sunday
  int yearday;  // 1 … 366
  int hour, minute, second;
};

CivilTime ToCivil(int64_t seconds) {
  int64_t days = seconds / 86400;
  auto rest = static_cast<int>(seconds % 86400);
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  const auto is_leap = [](int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; };
  CivilTime t{.year = 1970, .month = 1};
  t.weekday = static_cast<int>(((days + 4) % 7 + 7) % 7);
  // Whole cycles of 400 years at once, then year by year.
  constexpr int64_t kCycleDays = 146097;
  const int64_t cycles = days >= 0 ? days / kCycleDays : -((-days + kCycleDays - 1) / kCycleDays);
  t.year += 400 * cycles;
  days -= cycles * kCycleDays;
  for (int64_t length; days >= (length = is_leap(t.year) ? 366 : 365); ++t.year) days -= length;
  t.yearday = static_cast<int>(days) + 1;
  const int lengths[] = {31, is_leap(t.year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  while (days >= lengths[t.month - 1]) days -= lengths[t.month++ - 1];
  t.day = static_cast<int>(days) + 1;
  t.hour = rest / 3600;
  t.minute = rest / 60 % 60;
  t.second = rest % 60;
  return t;
}

}  // namespace

std::string FormatTime(std::string_view pattern, int64_t seconds) {
  static constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                               "Thursday", "Friday", "Saturday"};
  static constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                                 "May",       "June",     "July",     "August",
                                                 "September", "October",  "November", "December"};
  const CivilTime t = ToCivil(seconds);
  const std::string_view day = kDays[t.weekday];
  const std::string_view month = kMonths[t.month - 1];
  const int hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    char c = pattern[++i];
    const bool bare = c == '-' && i + 1 < pattern.size();  // "%-d": without a leading zero
    if (bare) c = pattern[++i];
    const auto number = [&](int value, int width) { return fmt::format("{:0{}}", value, bare ? 0 : width); };
    switch (c) {
      case 'Y':
        out += fmt::format("{}", t.year);
        break;
      case 'y':
        out += number(static_cast<int>(t.year % 100), 2);
        break;
      case 'm':
        out += number(t.month, 2);
        break;
      case 'd':
        out += number(t.day, 2);
        break;
      case 'e':
        out += fmt::format("{:2}", t.day);
        break;
      case 'H':
        out += number(t.hour, 2);
        break;
      case 'I':
        out += number(hour12, 2);
        break;
      case 'M':
        out += number(t.minute, 2);
        break;
      case 'S':
        out += number(t.second, 2);
        break;
      case 'j':
        out += number(t.yearday, 3);
        break;
      case 'w':
        out += number(t.weekday, 1);
        break;
      case 'u':
        out += number(t.weekday == 0 ? 7 : t.weekday, 1);
        break;
      case 'A':
        out += day;
        break;
      case 'a':
        out += day.substr(0, 3);
        break;
      case 'B':
        out += month;
        break;
      case 'b':
      case 'h':
        out += month.substr(0, 3);
        break;
      case 'p':
        out += t.hour < 12 ? "AM" : "PM";
        break;
      case 'F':
        out += FormatTime("%Y-%m-%d", seconds);
        break;
      case 'D':
      case 'x':
        out += FormatTime("%m/%d/%y", seconds);
        break;
      case 'T':
      case 'X':
        out += FormatTime("%H:%M:%S", seconds);
        break;
      case 'R':
        out += FormatTime("%H:%M", seconds);
        break;
      case 'c':
        out += FormatTime("%a %b %e %H:%M:%S %Y", seconds);
        break;
      case 's':
        out += fmt::format("{}", seconds);
        break;
      case '%':
        out += '%';
        break;
      default:
        out += '%';
        out += c;
        break;
    }
  }
  return out;
}

}  // namespace sluice::chat::jinja
