// The interpreter's expressions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "chat/jinja/format.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

// "'x' is undefined", for the expression that gave undefined where a value was needed.
Error UndefinedError(const Expr& expr) {
  if (const Name* name = std::get_if<Name>(&expr.node)) {
    return Fail(ErrorCode::kCorrupt, "'{}' is undefined", name->name);
  }
  if (const Attribute* attribute = std::get_if<Attribute>(&expr.node)) {
    return Fail(ErrorCode::kCorrupt, "there is no attribute '{}'", attribute->name);
  }
  return Fail(ErrorCode::kCorrupt, "the value is undefined");
}

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
    SLUICE_TRY_ASSIGN(Text text, builder.Finish());
    return Value(std::move(text));
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
    for (int64_t i = 0; i < times && !text->empty() && !builder.exhausted(); ++i) builder.Append(*text);
    SLUICE_TRY_ASSIGN(Text repeated, builder.Finish());
    return Value(std::move(repeated));
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
  SLUICE_TRY_ASSIGN(Text slice, builder.Finish());
  return Value(std::move(slice));
}

}  // namespace

Result<Value> Interpreter::Evaluate(const Expr& expr) {
  if (depth_ >= limits_.run_depth) return Fail(ErrorCode::kResourceExhausted, "nested too deep");
  SLUICE_TRY(heap_->Spend(1));
  ++depth_;
  Result<Value> value = std::visit([this](const auto& node) { return Evaluate(node); }, expr.node);
  --depth_;
  if (!value && !error_offset_) error_offset_ = expr.offset;
  return value;
}

const Value* Interpreter::Find(std::string_view name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return &found->second;
  }
  return nullptr;
}

Result<Value> Interpreter::Evaluate(const Name& node) {
  if (const Value* value = Find(node.name)) return *value;
  const Builtin* builtin = FindFunction(node.name);
  if (builtin == nullptr || (node.name == "strftime_now" && !local_time_)) return Value();
  SLUICE_TRY_ASSIGN(Callable * callable, heap_->NewCallable(Callable{.builtin = builtin}));
  return Value(callable);
}

Result<Value> Interpreter::Evaluate(const ListDisplay& node) {
  SLUICE_TRY_ASSIGN(List * list, heap_->NewList({}, node.tuple));
  for (const ExprPtr& item : node.items) {
    SLUICE_TRY_ASSIGN(Value value, Evaluate(*item));
    SLUICE_TRY(heap_->Append(list, std::move(value)));
  }
  return Value(list);
}

Result<Value> Interpreter::Evaluate(const DictDisplay& node) {
  SLUICE_TRY_ASSIGN(Dict * dict, heap_->NewDict());
  for (const auto& [key_expr, value_expr] : node.items) {
    SLUICE_TRY_ASSIGN(Value key, Evaluate(*key_expr));
    SLUICE_TRY_ASSIGN(Value value, Evaluate(*value_expr));
    SLUICE_TRY(heap_->Set(dict, std::move(key), std::move(value)));
  }
  return Value(dict);
}

Result<Value> Interpreter::Evaluate(const Attribute& node) {
  SLUICE_TRY_ASSIGN(const Value object, Evaluate(*node.object));
  if (object.is_undefined()) return UndefinedError(*node.object);
  return GetAttribute(object, node.name);
}

Result<Value> Interpreter::Evaluate(const Subscript& node) {
  SLUICE_TRY_ASSIGN(const Value object, Evaluate(*node.object));
  SLUICE_TRY_ASSIGN(const Value index, Evaluate(*node.index));
  if (object.is_undefined()) return UndefinedError(*node.object);
  return GetItem(object, index);
}

// A method comes before a dict's key of the same name; x['name'] is the other way round.
Result<Value> Interpreter::GetAttribute(const Value& object, std::string_view name) {
  if (const Builtin* method = FindMethod(object, name)) {
    SLUICE_TRY_ASSIGN(Callable * callable, heap_->NewCallable(Callable{.builtin = method, .self = object}));
    return Value(callable);
  }
  const Value* found = nullptr;
  if (object.dict()) found = object.dict()->Find(name);
  if (object.ns()) found = object.ns()->attributes->Find(name);
  if (found != nullptr) return *found;
  if (object.loop()) return LoopAttribute(*object.loop(), name);
  if (name.starts_with("__")) {
    return Fail(ErrorCode::kUnsupported, "unknown attribute '{}' of a {}", name, object.TypeName());
  }
  return Value();
}

Result<Value> Interpreter::GetItem(const Value& object, const Value& index) {
  if (object.dict()) {
    if (const Value* found = object.dict()->Find(index)) return *found;
  }
  if (index.is_text()) return GetAttribute(object, index.text()->view());
  if (!index.is_integer() || (object.list() == nullptr && !object.is_text())) return Value();
  int64_t i = index.AsInteger();
  if (object.list()) {
    const auto& items = object.list()->items;
    if (i < 0) i += static_cast<int64_t>(items.size());
    return i < 0 || i >= static_cast<int64_t>(items.size()) ? Value() : items[static_cast<size_t>(i)];
  }
  const Text& text = *object.text();
  SLUICE_TRY(heap_->SpendBytes(text.size() * 4));
  if (i < 0) i += CountChars(text.view());
  size_t at = 0;
  for (; i > 0 && at < text.size(); --i) at += CharLength(text.view(), at);
  if (i < 0 || at >= text.size()) return Value();
  SLUICE_TRY_ASSIGN(Text c, Slice(text, at, at + CharLength(text.view(), at), heap_->meter()));
  return Value(std::move(c));
}

Result<Value> Interpreter::GetPath(const Value& object, std::string_view path) {
  Value value = object;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    if (value.is_undefined()) return Fail(ErrorCode::kCorrupt, "the value before '{}' is undefined", part);
    const bool number =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    Value key = number ? Value(static_cast<int64_t>(std::stol(std::string(part))))
                       : Value(Text::Literal(std::string(part)));
    SLUICE_TRY_ASSIGN(value, GetItem(value, key));
  }
  return value;
}

Result<Value> Interpreter::LoopAttribute(const Loop& loop, std::string_view name) {
  const auto& items = loop.items->items;
  const auto count = [](size_t n) { return Value(static_cast<int64_t>(n)); };
  if (name == "index0") return count(loop.index0);
  if (name == "index") return count(loop.index0 + 1);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.index0 + 1 >= items.size());
  if (name == "length") return count(items.size());
  if (name == "revindex") return count(items.size() - loop.index0);
  if (name == "revindex0") return count(items.size() - loop.index0 - 1);
  if (name == "depth0") return count(loop.depth0);
  if (name == "depth") return count(loop.depth0 + 1);
  if (name == "previtem") return loop.index0 > 0 ? items[loop.index0 - 1] : Value();
  if (name == "nextitem") return loop.index0 + 1 < items.size() ? items[loop.index0 + 1] : Value();
  return Fail(ErrorCode::kUnsupported, "unknown attribute '{}' of the loop", name);
}

Result<Value> Interpreter::Evaluate(const SliceOf& node) {
  SLUICE_TRY_ASSIGN(const Value object, Evaluate(*node.object));
  const auto bound = [this](const ExprPtr& expr) -> Result<std::optional<int64_t>> {
    if (!expr) return std::optional<int64_t>();
    SLUICE_TRY_ASSIGN(const Value value, Evaluate(*expr));
    if (value.is_none()) return std::optional<int64_t>();
    if (!value.is_integer())
      return Fail(ErrorCode::kCorrupt, "a slice needs integers, not {}", value.TypeName());
    // So far out that every sequence ends before it, and sums can't overflow.
    constexpr int64_t kFar = int64_t{1} << 40;
    return std::optional<int64_t>(std::clamp(value.AsInteger(), -kFar, kFar));
  };
  SLUICE_TRY_ASSIGN(const std::optional<int64_t> start, bound(node.start));
  SLUICE_TRY_ASSIGN(const std::optional<int64_t> stop, bound(node.stop));
  SLUICE_TRY_ASSIGN(const std::optional<int64_t> step, bound(node.step));
  if (object.is_undefined()) return UndefinedError(*node.object);
  if (step == 0) return Fail(ErrorCode::kCorrupt, "the step of a slice is zero");
  if (const Text* text = object.text()) {
    SLUICE_TRY(heap_->SpendBytes(text->size() * 8));
    return SliceText(*text, ResolveSlice(start, stop, step.value_or(1), CountChars(text->view())), heap_);
  }
  if (object.list() == nullptr) return Fail(ErrorCode::kCorrupt, "can't slice a {}", object.TypeName());
  const auto& items = object.list()->items;
  const auto range = ResolveSlice(start, stop, step.value_or(1), static_cast<int64_t>(items.size()));
  SLUICE_TRY_ASSIGN(List * slice, heap_->NewList({}, object.list()->tuple));
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    SLUICE_TRY(heap_->Append(slice, items[static_cast<size_t>(i)]));
  }
  SLUICE_TRY(heap_->Spend(slice->items.size() / 8));
  return Value(slice);
}

Result<Arguments> Interpreter::EvaluateArguments(const CallArguments& node) {
  Arguments arguments;
  arguments.positional.reserve(node.positional.size());
  for (const ExprPtr& expr : node.positional) {
    SLUICE_TRY_ASSIGN(Value value, Evaluate(*expr));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : node.named) {
    SLUICE_TRY_ASSIGN(Value value, Evaluate(*expr));
    arguments.named.emplace_back(name, std::move(value));
  }
  if (node.spread_list) {
    SLUICE_TRY_ASSIGN(const Value value, Evaluate(*node.spread_list));
    SLUICE_TRY_ASSIGN(const List* items, Iterate(value, heap_));
    SLUICE_TRY(heap_->Spend(items->items.size()));
    for (const Value& item : items->items) arguments.positional.push_back(item);
  }
  if (node.spread_dict) {
    SLUICE_TRY_ASSIGN(const Value value, Evaluate(*node.spread_dict));
    if (value.dict() == nullptr)
      return Fail(ErrorCode::kCorrupt, "'**' needs a dict, not {}", value.TypeName());
    SLUICE_TRY(heap_->Spend(value.dict()->entries.size()));
    for (const Dict::Entry& entry : value.dict()->entries) {
      if (!entry.key.is_text()) return Fail(ErrorCode::kCorrupt, "'**' needs names as keys");
      arguments.named.emplace_back(std::string(entry.key.text()->view()), entry.value);
    }
  }
  return arguments;
}

// Methods and global functions are called without making a Callable of them first.
Result<Value> Interpreter::EvaluateCall(const Call& node, Callable* caller) {
  Value callee;
  Value self;
  const Builtin* builtin = nullptr;
  if (const Attribute* attribute = std::get_if<Attribute>(&node.callee->node)) {
    SLUICE_TRY_ASSIGN(self, Evaluate(*attribute->object));
    if (self.is_undefined()) return UndefinedError(*attribute->object);
    builtin = FindMethod(self, attribute->name);
    if (builtin == nullptr) {
      SLUICE_TRY_ASSIGN(callee, GetAttribute(self, attribute->name));
      if (callee.is_undefined()) {
        return Fail(ErrorCode::kUnsupported, "a {} has no method '{}'", self.TypeName(), attribute->name);
      }
    }
  } else {
    SLUICE_TRY_ASSIGN(callee, Evaluate(*node.callee));
    if (callee.is_undefined()) {
      const Name* name = std::get_if<Name>(&node.callee->node);
      if (name != nullptr) return Fail(ErrorCode::kUnsupported, "unknown function '{}'", name->name);
      return UndefinedError(*node.callee);
    }
  }
  SLUICE_TRY_ASSIGN(Arguments arguments, EvaluateArguments(node.arguments));
  if (caller != nullptr) arguments.named.emplace_back("caller", Value(caller));
  if (builtin != nullptr) return Invoke(*builtin, std::move(self), std::move(arguments), this);
  return CallValue(callee, std::move(arguments));
}

Result<Value> Interpreter::CallValue(const Value& callee, Arguments arguments) {
  if (const Callable* callable = callee.callable()) {
    if (callable->macro) return CallMacro(*callable, std::move(arguments));
    return Invoke(*callable->builtin, callable->self, std::move(arguments), this);
  }
  const Loop* loop = callee.loop();
  if (loop == nullptr) return Fail(ErrorCode::kCorrupt, "can't call a {}", callee.TypeName());
  if (loop->recursive == nullptr || arguments.positional.size() != 1) {
    return Fail(ErrorCode::kCorrupt, "loop(…) takes one list, in a loop that is marked 'recursive'");
  }
  TextBuilder text(heap_->meter());
  TextBuilder* const outer_out = std::exchange(out_, &text);
  Scope* const outer_scope = std::exchange(scope_, loop->scope);
  Result<Flow> flow = RunLoop(*loop->recursive, arguments.positional[0], loop->depth0 + 1);
  out_ = outer_out;
  scope_ = outer_scope;
  if (!flow) return std::move(flow).error();
  SLUICE_TRY_ASSIGN(Text result, text.Finish());
  return Value(std::move(result));
}

Result<Value> Interpreter::Evaluate(const Filter& node) {
  SLUICE_TRY_ASSIGN(Value input, Evaluate(*node.input));
  return ApplyFilter(node, std::move(input));
}

Result<Value> Interpreter::ApplyFilter(const Filter& node, Value input) {
  if (node.builtin == nullptr) return Fail(ErrorCode::kUnsupported, "no filter named '{}'", node.name);
  SLUICE_TRY_ASSIGN(Arguments arguments, EvaluateArguments(node.arguments));
  return Invoke(*node.builtin, std::move(input), std::move(arguments), this);
}

Result<Value> Interpreter::Evaluate(const Test& node) {
  SLUICE_TRY_ASSIGN(Value input, Evaluate(*node.input));
  if (node.builtin == nullptr) return Fail(ErrorCode::kUnsupported, "no test named '{}'", node.name);
  SLUICE_TRY_ASSIGN(Arguments arguments, EvaluateArguments(node.arguments));
  SLUICE_TRY_ASSIGN(const Value result, Invoke(*node.builtin, std::move(input), std::move(arguments), this));
  return Value(result.Truthy() != node.negated);
}

Result<Value> Interpreter::Evaluate(const Unary& node) {
  SLUICE_TRY_ASSIGN(Value operand, Evaluate(*node.operand));
  if (node.op == Unary::Op::kNot) return Value(!operand.Truthy());
  if (!operand.is_number()) return Fail(ErrorCode::kCorrupt, "a sign doesn't go with {}", operand.TypeName());
  if (node.op == Unary::Op::kPlus) return operand;
  if (!operand.is_integer()) return Value(-operand.AsDouble());
  return IntegerArithmetic(Op::kSubtract, 0, operand.AsInteger());
}

Result<Value> Interpreter::Evaluate(const Binary& node) {
  SLUICE_TRY_ASSIGN(const Value a, Evaluate(*node.left));
  SLUICE_TRY_ASSIGN(const Value b, Evaluate(*node.right));
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) return IntegerArithmetic(node.op, a.AsInteger(), b.AsInteger());
    return FloatArithmetic(node.op, a.AsDouble(), b.AsDouble());
  }
  if (a.is_undefined()) return UndefinedError(*node.left);
  if (node.op == Op::kModulo && a.is_text()) return FormatPercent(*a.text(), b, heap_);
  if (b.is_undefined()) return UndefinedError(*node.right);
  if (node.op == Op::kAdd) return AddSequences(a, b, heap_);
  if (node.op == Op::kMultiply) {
    const auto sequence = [](const Value& value) { return value.is_text() || value.list() != nullptr; };
    if (sequence(a) && b.is_integer()) return RepeatSequence(a, b.AsInteger(), heap_);
    if (sequence(b) && a.is_integer()) return RepeatSequence(b, a.AsInteger(), heap_);
  }
  return WrongTypes(OpText(node.op), a, b);
}

Result<Value> Interpreter::Evaluate(const Logic& node) {
  SLUICE_TRY_ASSIGN(Value left, Evaluate(*node.left));
  if (left.Truthy() != node.is_and) return left;
  return Evaluate(*node.right);
}

Result<Value> Interpreter::Evaluate(const Concat& node) {
  TextBuilder builder(heap_->meter());
  for (const ExprPtr& part : node.parts) {
    SLUICE_TRY_ASSIGN(const Value value, Evaluate(*part));
    SLUICE_TRY(Print(value, &builder));
  }
  SLUICE_TRY_ASSIGN(Text text, builder.Finish());
  return Value(std::move(text));
}

Result<Value> Interpreter::Evaluate(const Comparison& node) {
  SLUICE_TRY_ASSIGN(Value left, Evaluate(*node.first));
  for (const auto& [op, expr] : node.rest) {
    SLUICE_TRY_ASSIGN(Value right, Evaluate(*expr));
    SLUICE_TRY_ASSIGN(const bool holds, Holds(op, left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<bool> Interpreter::Holds(Comparison::Op op, const Value& left, const Value& right) {
  using CompareOp = Comparison::Op;
  if (op == CompareOp::kEqual || op == CompareOp::kNotEqual) {
    SLUICE_TRY_ASSIGN(const bool equal, Equal(left, right, heap_->meter()));
    return equal == (op == CompareOp::kEqual);
  }
  if (op == CompareOp::kIn || op == CompareOp::kNotIn) {
    SLUICE_TRY_ASSIGN(const bool contains, Contains(right, left));
    return contains == (op == CompareOp::kIn);
  }
  SLUICE_TRY_ASSIGN(const int order, Compare(left, right, heap_->meter()));
  if (op == CompareOp::kLess) return order < 0;
  if (op == CompareOp::kLessEqual) return order <= 0;
  if (op == CompareOp::kGreater) return order > 0;
  return order >= 0;
}

Result<bool> Interpreter::Contains(const Value& container, const Value& item) {
  if (const Text* text = container.text()) {
    if (!item.is_text()) return WrongTypes("in", item, container);
    SLUICE_TRY(heap_->SpendBytes(text->size()));
    return FindBytes(text->view(), item.text()->view(), 0) != std::string_view::npos;
  }
  if (container.dict()) return container.dict()->Find(item) != nullptr;
  if (container.ns() || container.loop() || container.callable() || container.is_none() ||
      container.is_number()) {
    return WrongTypes("in", item, container);
  }
  if (container.is_undefined()) return false;
  for (const Value& element : container.list()->items) {
    SLUICE_TRY_ASSIGN(const bool equal, Equal(element, item, heap_->meter()));
    if (equal) return true;
  }
  return false;
}

Result<Value> Interpreter::Evaluate(const Conditional& node) {
  SLUICE_TRY_ASSIGN(const Value condition, Evaluate(*node.condition));
  if (condition.Truthy()) return Evaluate(*node.then);
  if (!node.otherwise) return Value();
  return Evaluate(*node.otherwise);
}

}  // namespace sluice::chat::jinja
