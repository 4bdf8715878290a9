// The interpreter's expressions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/operators.h"
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
    SLUICE_TRY_ASSIGN(const Value* found, heap_->Find(object.dict(), index));
    if (found != nullptr) return *found;
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
  return ToValue(Slice(text, at, at + CharLength(text.view(), at), heap_->meter()));
}

Result<Value> Interpreter::GetPath(const Value& object, std::string_view path) {
  Value value = object;
  while (!path.empty()) {
    SLUICE_TRY(heap_->Spend(1));
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
    return std::optional<int64_t>(value.AsInteger());
  };
  SLUICE_TRY_ASSIGN(const std::optional<int64_t> start, bound(node.start));
  SLUICE_TRY_ASSIGN(const std::optional<int64_t> stop, bound(node.stop));
  SLUICE_TRY_ASSIGN(const std::optional<int64_t> step, bound(node.step));
  if (object.is_undefined()) return UndefinedError(*node.object);
  return SliceValue(object, start, stop, step, heap_);
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
  return ToValue(text.Finish());
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
  return Arithmetic(Binary::Op::kSubtract, Value(int64_t{0}), operand, heap_);
}

Result<Value> Interpreter::Evaluate(const Binary& node) {
  SLUICE_TRY_ASSIGN(const Value a, Evaluate(*node.left));
  SLUICE_TRY_ASSIGN(const Value b, Evaluate(*node.right));
  if (a.is_undefined()) return UndefinedError(*node.left);
  const bool formats =
      node.op == Binary::Op::kModulo && a.is_text();  // may print undefined, which is nothing
  if (b.is_undefined() && !formats) return UndefinedError(*node.right);
  return Arithmetic(node.op, a, b, heap_);
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
  return ToValue(builder.Finish());
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
    if (!item.is_text())
      return Fail(ErrorCode::kCorrupt, "'in' doesn't go with {} and {}", item.TypeName(),
                  container.TypeName());
    SLUICE_TRY(heap_->SpendBytes((text->size() + item.text()->size()) * 4));
    return FindBytes(text->view(), item.text()->view(), 0) != std::string_view::npos;
  }
  if (container.dict()) {
    SLUICE_TRY_ASSIGN(const Value* found, heap_->Find(container.dict(), item));
    return found != nullptr;
  }
  if (container.ns() || container.loop() || container.callable() || container.is_none() ||
      container.is_number()) {
    return Fail(ErrorCode::kCorrupt, "'in' doesn't go with {} and {}", item.TypeName(), container.TypeName());
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
