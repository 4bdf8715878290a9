#include "chat/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/format.h"

namespace sluice::chat::jinja {
namespace {

Error WrongTypes(std::string_view op, const Value& a, const Value& b) {
  return Fail(ErrorCode::kCorrupt, "'{}' doesn't go with {} and {}", op, a.TypeName(), b.TypeName());
}

Error Overflow() { return Fail(ErrorCode::kCorrupt, "an integer beyond 64 bits"); }

using Op = Binary::Op;

constexpr std::string_view OpText(Op op) {
  constexpr std::string_view kTexts[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kTexts[static_cast<size_t>(op)];
}

Result<Value> IntegerPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  // Beyond 63 only bases of -1, 0 and 1 stay in range; they repeat with period 2.
  if (exponent > 63 && base >= -1 && base <= 1) exponent = 62 + exponent % 2;
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return Overflow();
  }
  return Value(result);
}

// Division rounds down and the remainder has the divisor's sign, as in Python.
Result<Value> IntegerArithmetic(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return Overflow();
      return Value(result);
    case Op::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return Overflow();
      return Value(result);
    case Op::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return Overflow();
      return Value(result);
    case Op::kFloorDivide:
    case Op::kModulo: {
      if (b == 0) return Fail(ErrorCode::kCorrupt, "division by zero");
      if (b == -1 && a == INT64_MIN) return Overflow();
      const bool adjust = a % b != 0 && (a < 0) != (b < 0);
      return Value(op == Op::kModulo ? a % b + (adjust ? b : 0) : a / b - (adjust ? 1 : 0));
    }
    case Op::kPower:
      if (b >= 0) return IntegerPower(a, b);
      [[fallthrough]];
    case Op::kDivide:
      break;
  }
  if (op == Op::kDivide && b == 0) return Fail(ErrorCode::kCorrupt, "division by zero");
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  return Value(op == Op::kDivide ? x / y : std::pow(x, y));
}

Result<Value> FloatArithmetic(Op op, double a, double b) {
  if ((op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo) && b == 0) {
    return Fail(ErrorCode::kCorrupt, "division by zero");
  }
  switch (op) {
    case Op::kAdd:
      return Value(a + b);
    case Op::kSubtract:
      return Value(a - b);
    case Op::kMultiply:
      return Value(a * b);
    case Op::kDivide:
      return Value(a / b);
    case Op::kFloorDivide:
      return Value(std::floor(a / b));
    case Op::kModulo: {
      const double rest = std::fmod(a, b);
      return Value(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    }
    case Op::kPower:
      break;
  }
  return Value(std::pow(a, b));
}

Result<Value> AddSequences(const Value& a, const Value& b, Heap* heap) {
  if (a.is_text() && b.is_text()) {
    TextBuilder builder(heap->meter());
    builder.Append(*a.text());
    builder.Append(*b.text());
    return ToValue(builder.Finish());
  }
  if (a.list() == nullptr || b.list() == nullptr || a.list()->tuple != b.list()->tuple)
    return WrongTypes("+", a, b);
  SLUICE_TRY_ASSIGN(List * sum, heap->NewList({}, a.list()->tuple));
  for (const List* part : {a.list(), b.list()}) {
    SLUICE_TRY(heap->Spend(part->items.size() / 8));
    for (const Value& item : part->items) SLUICE_TRY(heap->Append(sum, item));
  }
  return Value(sum);
}

Result<Value> RepeatSequence(const Value& sequence, int64_t times, Heap* heap) {
  if (const Text* text = sequence.text()) {
    TextBuilder builder(heap->meter());
    builder.AppendRepeated(*text, times);
    return ToValue(builder.Finish());
  }
  const std::vector<Value> items = sequence.list()->items;
  SLUICE_TRY_ASSIGN(List * repeated, heap->NewList({}, sequence.list()->tuple));
  for (int64_t i = 0; i < times && !items.empty(); ++i) {
    for (const Value& item : items) SLUICE_TRY(heap->Append(repeated, item));
  }
  return Value(repeated);
}

// start, stop and step of a slice over `size` elements, as Python counts them.
struct SliceRange {
  int64_t start;
  int64_t stop;
  int64_t step;
};

SliceRange ResolveSlice(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                        int64_t size) {
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? size - 1 : size;
  const auto clamp = [&](int64_t i) { return i < 0 ? std::max(i + size, low) : std::min(i, high); };
  return {start ? clamp(*start) : (step < 0 ? high : low), stop ? clamp(*stop) : (step < 0 ? low : high),
          step};
}

Result<Value> SliceText(const Text& text, const SliceRange& range, Heap* heap) {
  const std::string_view bytes = text.view();
  TextBuilder builder(heap->meter());
  std::vector<size_t> starts;  // of each character, and the end
  const auto size = static_cast<int64_t>(CountChars(bytes));
  const bool single_bytes = size == static_cast<int64_t>(bytes.size());
  if (!single_bytes) {
    for (size_t i = 0; i < bytes.size(); i += CharLength(bytes, i)) starts.push_back(i);
    starts.push_back(bytes.size());
  }
  const auto at = [&](int64_t i) {
    return single_bytes ? static_cast<size_t>(i) : starts[static_cast<size_t>(i)];
  };
  if (range.step == 1) {
    if (range.start < range.stop) builder.Append(text, at(range.start), at(range.stop));
  } else {
    for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
      SLUICE_TRY(heap->Spend(1));
      builder.Append(text, at(i), at(i + 1));
    }
  }
  return ToValue(builder.Finish());
}

}  // namespace

Result<Value> Arithmetic(Op op, const Value& a, const Value& b, Heap* heap) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) return IntegerArithmetic(op, a.AsInteger(), b.AsInteger());
    return FloatArithmetic(op, a.AsDouble(), b.AsDouble());
  }
  if (op == Op::kModulo && a.is_text()) return FormatPercent(*a.text(), b, heap);
  if (op == Op::kAdd) return AddSequences(a, b, heap);
  if (op == Op::kMultiply) {
    const auto sequence = [](const Value& value) { return value.is_text() || value.list() != nullptr; };
    if (sequence(a) && b.is_integer()) return RepeatSequence(a, b.AsInteger(), heap);
    if (sequence(b) && a.is_integer()) return RepeatSequence(b, a.AsInteger(), heap);
  }
  return WrongTypes(OpText(op), a, b);
}

Result<Value> SliceValue(const Value& value, std::optional<int64_t> start, std::optional<int64_t> stop,
                         std::optional<int64_t> step, Heap* heap) {
  if (step == 0) return Fail(ErrorCode::kCorrupt, "the step of a slice is zero");
  // So far out that every sequence ends before it, and sums can't overflow.
  constexpr int64_t kFar = int64_t{1} << 40;
  for (auto* bound : {&start, &stop, &step}) {
    if (*bound) *bound = std::clamp(**bound, -kFar, kFar);
  }
  if (const Text* text = value.text()) {
    SLUICE_TRY(heap->SpendBytes(text->size() * 8));
    return SliceText(*text, ResolveSlice(start, stop, step.value_or(1), CountChars(text->view())), heap);
  }
  if (value.list() == nullptr) return Fail(ErrorCode::kCorrupt, "can't slice a {}", value.TypeName());
  const auto& items = value.list()->items;
  const auto range = ResolveSlice(start, stop, step.value_or(1), static_cast<int64_t>(items.size()));
  SLUICE_TRY_ASSIGN(List * slice, heap->NewList({}, value.list()->tuple));
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    SLUICE_TRY(heap->Append(slice, items[static_cast<size_t>(i)]));
  }
  SLUICE_TRY(heap->Spend(slice->items.size() / 8));
  return Value(slice);
}

}  // namespace sluice::chat::jinja
