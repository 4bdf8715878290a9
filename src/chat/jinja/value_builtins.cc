// Filters of single values (numbers, JSON, default) and the tests.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/parse_number.h"
#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

using Call = Invocation;

Result<Value> Default(Call& call) {  // default_value, boolean
  const bool use = call.self.is_undefined() || (call.Boolean(1) && !call.self.Truthy());
  if (!use) return call.self;
  return call.args[0].is_undefined() ? Value(Text()) : call.args[0];
}

// --- Numbers ---

std::string_view StripBlanks(std::string_view text) {
  while (!text.empty() && IsSpace(CharAt(text, 0))) text.remove_prefix(CharLength(text, 0));
  while (!text.empty() && IsSpace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// The whole of `text` as a number; false where it is none.
bool ReadFloat(std::string_view text, double* number) {
  text = StripBlanks(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  return ParseWholeFloating(text, number);
}

bool ReadInteger(std::string_view text, int base, int64_t* number) {
  text = StripBlanks(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  static constexpr std::pair<int, std::string_view> kPrefixes[] = {{16, "0x"}, {8, "0o"}, {2, "0b"}};
  for (const auto& [prefix_base, prefix] : kPrefixes) {
    if (base == prefix_base && text.starts_with(prefix)) text.remove_prefix(2);
  }
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size();
}

Result<Value> Int(Call& call) {  // default, base
  const Value fallback = call.Has(0) ? call.args[0] : Value(int64_t{0});
  SLUICE_TRY_ASSIGN(const int64_t base, call.Integer(1, 10));
  if (call.self.is_integer()) return Value(call.self.AsInteger());
  double number = 0;
  if (const Text* text = call.self.text()) {
    int64_t integer = 0;
    if (base >= 2 && base <= 36 && ReadInteger(text->view(), static_cast<int>(base), &integer))
      return Value(integer);
    if (!ReadFloat(text->view(), &number)) return fallback;
  } else if (call.self.is_number()) {
    number = call.self.AsDouble();
  } else {
    return fallback;
  }
  return std::abs(number) < 0x1p63 ? Value(static_cast<int64_t>(number)) : fallback;
}

Result<Value> Float(Call& call) {  // default
  const Value fallback = call.Has(0) ? call.args[0] : Value(0.0);
  if (call.self.is_number()) return Value(call.self.AsDouble());
  double number = 0;
  if (!call.self.is_text() || !ReadFloat(call.self.text()->view(), &number)) return fallback;
  return Value(number);
}

Result<Value> Round(Call& call) {  // precision, method
  SLUICE_TRY_ASSIGN(const int64_t precision, call.Integer(0, 0));
  SLUICE_TRY_ASSIGN(const Text method, call.String(1, "common"));
  if (!call.self.is_number()) return Fail(ErrorCode::kCorrupt, "round: no number: {}", call.self.TypeName());
  if (precision < -20 || precision > 20)
    return Fail(ErrorCode::kCorrupt, "round: a precision of {}", precision);
  const double number = call.self.AsDouble();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method.view() == "floor") return Value(std::floor(number * scale) / scale);
  if (method.view() == "ceil") return Value(std::ceil(number * scale) / scale);
  if (method.view() != "common") return Fail(ErrorCode::kCorrupt, "round: method '{}'", method.view());
  if (call.self.is_integer() && precision >= 0) return call.self;
  if (precision < 0) return Value(std::nearbyint(number * scale) / scale);
  // Through decimal digits, so that ties are those of the exact value.
  double rounded = number;
  ReadFloat(fmt::format("{:.{}f}", number, static_cast<int>(precision)), &rounded);
  return Value(rounded);
}

Result<Value> Abs(Call& call) {
  if (!call.self.is_number()) return Fail(ErrorCode::kCorrupt, "abs: no number: {}", call.self.TypeName());
  if (!call.self.is_integer()) return Value(std::abs(call.self.AsDouble()));
  const int64_t number = call.self.AsInteger();
  if (number == INT64_MIN) return Fail(ErrorCode::kCorrupt, "an integer beyond 64 bits");
  return Value(number < 0 ? -number : number);
}

// --- JSON ---

// tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False), with the indent alone as the
// first argument, too. Nothing is escaped for HTML.
Result<Value> ToJson(Call& call) {
  Value indent = call.args[1];
  JsonStyle style;
  if (call.args[0].Get<int64_t>()) {
    indent = call.args[0];
  } else {
    style.ascii = call.Boolean(0);
  }
  style.sort_keys = call.Boolean(3);
  if (indent.is_text()) {
    style.multiline = true;
    style.indent = indent.text()->view();
  } else if (indent.is_integer()) {
    const int64_t width = indent.AsInteger();
    if (width > 100) return Fail(ErrorCode::kResourceExhausted, "tojson: an indent of {}", width);
    style.multiline = true;
    style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (style.multiline) style.item_separator = ",";
  if (const List* separators = call.args[2].list(); separators != nullptr && separators->items.size() == 2 &&
                                                    separators->items[0].is_text() &&
                                                    separators->items[1].is_text()) {
    style.item_separator = separators->items[0].text()->view();
    style.key_separator = separators->items[1].text()->view();
  }
  TextBuilder builder(call.heap.meter());
  SLUICE_TRY(PrintJson(call.self, style, &builder));
  return ToValue(builder.Finish());
}

// Not in Jinja, but some templates count on it. What comes out is trusted only if all of the text was.
Result<Value> FromJson(Call& call) {
  if (!call.self.is_text())
    return Fail(ErrorCode::kCorrupt, "from_json: no string: {}", call.self.TypeName());
  bool all_trusted = true;
  call.self.text()->VisitRuns([&](std::string_view, bool trusted) { all_trusted = all_trusted && trusted; });
  SLUICE_TRY(call.heap.SpendBytes(call.self.text()->size() * 16));
  return ParseJson(call.self.text()->view(), all_trusted, &call.heap);
}

// --- Tests ---

using Test = Call;

Result<Value> IsDefined(Test& t) { return Value(!t.self.is_undefined()); }
Result<Value> IsUndefined(Test& t) { return Value(t.self.is_undefined()); }
Result<Value> IsNone(Test& t) { return Value(t.self.is_none()); }
Result<Value> IsString(Test& t) { return Value(t.self.is_text()); }
Result<Value> IsNumber(Test& t) { return Value(t.self.is_number()); }
Result<Value> IsInteger(Test& t) { return Value(t.self.Get<int64_t>() != nullptr); }
Result<Value> IsFloat(Test& t) { return Value(t.self.Get<double>() != nullptr); }
Result<Value> IsBoolean(Test& t) { return Value(t.self.Get<bool>() != nullptr); }
Result<Value> IsTrue(Test& t) { return Value(t.self.Get<bool>() != nullptr && t.self.Truthy()); }
Result<Value> IsFalse(Test& t) { return Value(t.self.Get<bool>() != nullptr && !t.self.Truthy()); }
Result<Value> IsMapping(Test& t) { return Value(t.self.dict() != nullptr); }
Result<Value> IsSequence(Test& t) { return Value(t.self.list() || t.self.dict() || t.self.is_text()); }
Result<Value> IsIterable(Test& t) { return IsSequence(t); }
Result<Value> IsCallable(Test& t) { return Value(t.self.callable() != nullptr || t.self.loop() != nullptr); }

Result<Value> IsUpper(Test& t) {
  if (!t.self.is_text()) return Value(false);
  return Invoke(*FindMethod(t.self, "isupper"), t.self, {}, &t.interpreter);
}
Result<Value> IsLower(Test& t) {
  if (!t.self.is_text()) return Value(false);
  return Invoke(*FindMethod(t.self, "islower"), t.self, {}, &t.interpreter);
}

Result<Value> IsDivisible(Test& t) {
  SLUICE_TRY_ASSIGN(const int64_t divisor, t.Integer(0, 0));
  if (!t.self.is_integer()) return Fail(ErrorCode::kCorrupt, "no integer: {}", t.self.TypeName());
  if (divisor == 0) return Fail(ErrorCode::kCorrupt, "division by zero");
  return Value(divisor == -1 || t.self.AsInteger() % divisor == 0);
}
Result<Value> IsOdd(Test& t) {
  t.args[0] = Value(int64_t{2});
  SLUICE_TRY_ASSIGN(const Value even, IsDivisible(t));
  return Value(!even.Truthy());
}
Result<Value> IsEven(Test& t) {
  t.args[0] = Value(int64_t{2});
  return IsDivisible(t);
}

template <Comparison::Op op>
Result<Value> Holds(Test& t) {
  SLUICE_TRY_ASSIGN(const bool holds, t.interpreter.Holds(op, t.self, t.args[0]));
  return Value(holds);
}

Result<Value> IsSame(Test& t) {
  if (t.self.TypeName() != t.args[0].TypeName()) return Value(false);
  if (t.self.list()) return Value(t.self.list() == t.args[0].list());
  if (t.self.dict()) return Value(t.self.dict() == t.args[0].dict());
  return Holds<Comparison::Op::kEqual>(t);
}

Result<Value> IsFilter(Test& t) {
  return Value(t.self.is_text() && FindFilter(t.self.text()->view()) != nullptr);
}
Result<Value> IsTest(Test& t) {
  return Value(t.self.is_text() && FindTest(t.self.text()->view()) != nullptr);
}

using Op = Comparison::Op;

constexpr Builtin kTests[] = {
    {"defined", "", IsDefined},
    {"undefined", "", IsUndefined},
    {"none", "", IsNone},
    {"string", "", IsString},
    {"number", "", IsNumber},
    {"integer", "", IsInteger},
    {"float", "", IsFloat},
    {"boolean", "", IsBoolean},
    {"true", "", IsTrue},
    {"false", "", IsFalse},
    {"mapping", "", IsMapping},
    {"sequence", "", IsSequence},
    {"iterable", "", IsIterable},
    {"callable", "", IsCallable},
    {"upper", "", IsUpper},
    {"lower", "", IsLower},
    {"odd", "", IsOdd},
    {"even", "", IsEven},
    {"divisibleby", "num", IsDivisible},
    {"sameas", "other", IsSame},
    {"filter", "", IsFilter},
    {"test", "", IsTest},
    {"in", "seq", Holds<Op::kIn>},
    {"eq", "other", Holds<Op::kEqual>},
    {"equalto", "other", Holds<Op::kEqual>},
    {"==", "other", Holds<Op::kEqual>},
    {"ne", "other", Holds<Op::kNotEqual>},
    {"!=", "other", Holds<Op::kNotEqual>},
    {"lt", "other", Holds<Op::kLess>},
    {"lessthan", "other", Holds<Op::kLess>},
    {"<", "other", Holds<Op::kLess>},
    {"le", "other", Holds<Op::kLessEqual>},
    {"<=", "other", Holds<Op::kLessEqual>},
    {"gt", "other", Holds<Op::kGreater>},
    {"greaterthan", "other", Holds<Op::kGreater>},
    {">", "other", Holds<Op::kGreater>},
    {"ge", "other", Holds<Op::kGreaterEqual>},
    {">=", "other", Holds<Op::kGreaterEqual>},
};

constexpr Builtin kValueFilters[] = {
    {"default", "| default_value boolean", Default},
    {"d", "| default_value boolean", Default},
    {"int", "| default base", Int},
    {"float", "| default", Float},
    {"round", "| precision method", Round},
    {"abs", "", Abs},
    {"tojson", "| ensure_ascii indent separators sort_keys", ToJson},
    {"from_json", "", FromJson},
    {"fromjson", "", FromJson},
    {"items", "", DictItems},
};

}  // namespace

std::span<const Builtin> ValueFilters() { return kValueFilters; }
std::span<const Builtin> Tests() { return kTests; }

}  // namespace sluice::chat::jinja
