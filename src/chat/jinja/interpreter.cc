#include "chat/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include <utility>

#include "chat/jinja/lexer.h"
#include "chat/jinja/print.h"

namespace sluice::chat::jinja {

Interpreter::Interpreter(const Template& source, const Limits& limits, Heap* heap,
                         std::optional<int64_t> local_time)
    : template_(source), limits_(limits), heap_(heap), local_time_(local_time) {}

Result<Text> Interpreter::Run(const Dict& context) {
  scope_ = OpenScope(nullptr);
  for (const Dict::Entry& entry : context.entries) {
    if (const Text* name = entry.key.text()) scope_->variables.emplace(name->view(), entry.value);
  }
  TextBuilder out(heap_->meter());
  out_ = &out;
  Result<Flow> flow = Execute(template_.body);
  out_ = nullptr;
  if (flow) return out.Finish();
  if (raised_ || !error_offset_) return flow.error();
  return Annotate(flow.error(), "template " + DescribePlace(template_.source, *error_offset_));
}

Error Interpreter::Raise(std::string message) {
  raised_ = true;
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

Scope* Interpreter::OpenScope(Scope* parent) {
  Scope* scope;
  if (free_scopes_.empty()) {
    scope = &scopes_.emplace_back();
  } else {
    scope = free_scopes_.back();
    free_scopes_.pop_back();
  }
  scope->parent = parent;
  return scope;
}

void Interpreter::CloseScope(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

// --- Statements ---

Result<Interpreter::Flow> Interpreter::Execute(const Block& block) {
  for (const Stmt& stmt : block) {
    SLUICE_TRY_ASSIGN(const Flow flow, Execute(stmt));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::Execute(const Stmt& stmt) {
  const auto next = [](Status status) -> Result<Flow> {
    if (!status) return std::move(status).error();
    return Flow::kNext;
  };
  const auto run = [&](const auto& node) -> Result<Flow> {
    using Node = std::decay_t<decltype(node)>;
    if constexpr (std::is_same_v<Node, Data>) {
      return next(Write(Value(node.text)));
    } else if constexpr (std::is_same_v<Node, Output>) {
      SLUICE_TRY_ASSIGN(const Value value, Evaluate(*node.value));
      return next(Write(value));
    } else if constexpr (std::is_same_v<Node, Set>) {
      SLUICE_TRY_ASSIGN(Value value, Evaluate(*node.value));
      return next(Assign(node.target, std::move(value)));
    } else if constexpr (std::is_same_v<Node, Plain>) {
      return Execute(node.body);
    } else if constexpr (std::is_same_v<Node, Break>) {
      return Flow::kBreak;
    } else if constexpr (std::is_same_v<Node, Continue>) {
      return Flow::kContinue;
    } else if constexpr (std::is_same_v<decltype(Execute(node)), Status>) {
      return next(Execute(node));
    } else {
      return Execute(node);
    }
  };
  if (depth_ >= limits_.run_depth) return Fail(ErrorCode::kResourceExhausted, "nested too deep");
  SLUICE_TRY(heap_->Spend(1));
  ++depth_;
  Result<Flow> flow = std::visit(run, stmt.node);
  --depth_;
  if (!flow && !error_offset_) error_offset_ = stmt.offset;
  return flow;
}

Status Interpreter::Write(const Value& value) {
  SLUICE_TRY(Print(value, out_));
  if (out_->exhausted() || out_->size() > limits_.output_bytes) {
    return Fail(ErrorCode::kResourceExhausted, "the template makes too much text");
  }
  return {};
}

Result<Interpreter::Flow> Interpreter::Execute(const If& node) {
  for (const If::Branch& branch : node.branches) {
    if (branch.condition) {
      SLUICE_TRY_ASSIGN(const Value condition, Evaluate(*branch.condition));
      if (!condition.Truthy()) continue;
    }
    return Execute(branch.body);
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::Execute(const For& node) {
  SLUICE_TRY_ASSIGN(const Value iterable, Evaluate(*node.iterable));
  return RunLoop(node, iterable, /*depth0=*/0);
}

Result<Interpreter::Flow> Interpreter::RunLoop(const For& node, const Value& iterable, size_t depth0) {
  Scope* const outer = scope_;
  SLUICE_TRY_ASSIGN(List * items, LoopItems(node, iterable));
  SLUICE_TRY_ASSIGN(Loop * loop, heap_->NewLoop(Loop{.items = items, .depth0 = depth0}));
  if (node.recursive) {
    loop->recursive = &node;
    loop->scope = outer;
    for (Scope* scope = outer; scope != nullptr; scope = scope->parent) scope->captured = true;
  }
  // By index and asking for the size anew: the body may append to the list.
  for (; loop->index0 < items->items.size(); ++loop->index0) {
    scope_ = OpenScope(outer);
    scope_->variables.emplace("loop", Value(loop));
    Result<Flow> flow = Flow::kNext;
    if (Status assigned = Assign(node.target, items->items[loop->index0]); !assigned) {
      flow = std::move(assigned).error();
    } else {
      flow = Execute(node.body);
    }
    CloseScope(scope_);
    scope_ = outer;
    if (!flow) return flow;
    if (*flow == Flow::kBreak) return Flow::kNext;
  }
  if (loop->index0 == 0) return Execute(node.otherwise);
  return Flow::kNext;
}

// What the loop runs over: the iterable's elements, or those for which the condition holds.
Result<List*> Interpreter::LoopItems(const For& node, const Value& iterable) {
  SLUICE_TRY_ASSIGN(List * all, Iterate(iterable, heap_));
  if (!node.condition) return all;
  SLUICE_TRY_ASSIGN(List * chosen, heap_->NewList());
  Scope* const outer = scope_;
  for (size_t i = 0; i < all->items.size(); ++i) {
    const Value item = all->items[i];
    scope_ = OpenScope(outer);
    Status status = Assign(node.target, item);
    if (status) {
      Result<Value> condition = Evaluate(*node.condition);
      if (!condition) {
        status = std::move(condition).error();
      } else if (condition->Truthy()) {
        status = heap_->Append(chosen, item);
      }
    }
    CloseScope(scope_);
    scope_ = outer;
    SLUICE_TRY(std::move(status));
  }
  return chosen;
}

Result<Interpreter::Flow> Interpreter::Execute(const With& node) {
  Scope* const outer = scope_;
  Scope* const inner = OpenScope(outer);
  for (const auto& [target, expr] : node.variables) {
    SLUICE_TRY_ASSIGN(Value value, Evaluate(*expr));  // in the outer scope
    scope_ = inner;
    const Status assigned = Assign(target, std::move(value));
    scope_ = outer;
    SLUICE_TRY(assigned);
  }
  scope_ = inner;
  Result<Flow> flow = Execute(node.body);
  CloseScope(inner);
  scope_ = outer;
  return flow;
}

Status Interpreter::Assign(const Target& target, Value value) {
  if (!target.tuple.empty()) {
    SLUICE_TRY_ASSIGN(List * items, Iterate(value, heap_));
    if (items->items.size() != target.tuple.size()) {
      return Fail(ErrorCode::kCorrupt, "can't unpack {} values into {} names", items->items.size(),
                  target.tuple.size());
    }
    const std::vector<Value> values = items->items;
    for (size_t i = 0; i < values.size(); ++i) SLUICE_TRY(Assign(target.tuple[i], values[i]));
    return {};
  }
  if (target.attribute.empty()) {
    scope_->variables.insert_or_assign(target.name, std::move(value));
    return {};
  }
  const Value* object = Find(target.name);
  if (object == nullptr || object->ns() == nullptr) {
    return Fail(ErrorCode::kCorrupt, "can't set an attribute of '{}': it is no namespace", target.name);
  }
  return heap_->Set(object->ns()->attributes, target.attribute, std::move(value));
}

Result<Text> Interpreter::Capture(const Block& body) {
  TextBuilder text(heap_->meter());
  TextBuilder* const outer = std::exchange(out_, &text);
  Result<Flow> flow = Execute(body);
  out_ = outer;
  if (!flow) return std::move(flow).error();
  return text.Finish();
}

Result<Value> Interpreter::ApplyFilters(const std::vector<Filter>& filters, Value input) {
  for (const Filter& filter : filters) {
    SLUICE_TRY_ASSIGN(input, ApplyFilter(filter, std::move(input)));
  }
  return input;
}

Status Interpreter::Execute(const SetBlock& node) {
  Scope* const outer = scope_;
  scope_ = OpenScope(outer);
  Result<Text> text = Capture(node.body);
  CloseScope(scope_);
  scope_ = outer;
  if (!text) return std::move(text).error();
  SLUICE_TRY_ASSIGN(Value value, ApplyFilters(node.filters, Value(*std::move(text))));
  return Assign(node.target, std::move(value));
}

Status Interpreter::Execute(const FilterBlock& node) {
  Scope* const outer = scope_;
  scope_ = OpenScope(outer);
  Result<Text> text = Capture(node.body);
  CloseScope(scope_);
  scope_ = outer;
  if (!text) return std::move(text).error();
  SLUICE_TRY_ASSIGN(const Value value, ApplyFilters(node.filters, Value(*std::move(text))));
  return Write(value);
}

// A macro sees the variables of the place where it stands, with the values they have when it is called.
Result<Callable*> Interpreter::MakeMacro(const Macro& node) {
  constexpr size_t kScopeBytes = 512;  // with a few variables; it stays until the end
  SLUICE_TRY(heap_->Reserve(kScopeBytes));
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent)
    scope->captured = true;
  return heap_->NewCallable(Callable{.macro = &node, .scope = scope_});
}

Status Interpreter::Execute(const Macro& node) {
  SLUICE_TRY_ASSIGN(Callable * callable, MakeMacro(node));
  scope_->variables.insert_or_assign(node.name, Value(callable));
  return {};
}

Status Interpreter::Execute(const CallBlock& node) {
  SLUICE_TRY_ASSIGN(Callable * caller, MakeMacro(node.caller));
  SLUICE_TRY_ASSIGN(const Value value, EvaluateCall(std::get<Call>(node.call->node), caller));
  return Write(value);
}

Result<Value> Interpreter::CallMacro(const Callable& callable, Arguments arguments) {
  const Macro& macro = *callable.macro;
  Scope* const outer = scope_;
  scope_ = OpenScope(callable.scope);
  Status bound = BindMacro(macro, std::move(arguments));
  Result<Text> text = bound ? Capture(macro.body) : Result<Text>(std::move(bound).error());
  CloseScope(scope_);
  scope_ = outer;
  if (!text) return std::move(text).error();
  return Value(*std::move(text));
}

// Puts a call's arguments into the macro's scope, which is the current one.
Status Interpreter::BindMacro(const Macro& macro, Arguments arguments) {
  auto& variables = scope_->variables;
  const size_t n = macro.parameters.size();
  std::vector<Value> surplus;
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < n) {
      variables.insert_or_assign(macro.parameters[i].name, std::move(arguments.positional[i]));
    } else {
      surplus.push_back(std::move(arguments.positional[i]));
    }
  }
  SLUICE_TRY(heap_->Spend(arguments.named.size() * n / 8));
  SLUICE_TRY_ASSIGN(Dict * named_surplus, heap_->NewDict());
  for (auto& [name, value] : arguments.named) {
    const std::string& argument = name;
    const auto same_name = [&](const Macro::Parameter& parameter) { return parameter.name == argument; };
    const auto parameter = std::find_if(macro.parameters.begin(), macro.parameters.end(), same_name);
    if (parameter != macro.parameters.end()) {
      variables.insert_or_assign(parameter->name, std::move(value));
    } else if (name == "caller") {
      variables.insert_or_assign("caller", std::move(value));
    } else {
      SLUICE_TRY(heap_->Set(named_surplus, name, std::move(value)));
    }
  }
  for (const Macro::Parameter& parameter : macro.parameters) {
    if (variables.contains(parameter.name)) continue;
    Value value;
    if (parameter.default_value) {
      SLUICE_TRY_ASSIGN(value, Evaluate(*parameter.default_value));
    }
    variables.insert_or_assign(parameter.name, std::move(value));
  }
  if (!surplus.empty() && !macro.takes_varargs) {
    return Fail(ErrorCode::kCorrupt, "macro '{}' takes {} arguments, not {}", macro.name, n,
                n + surplus.size());
  }
  if (!named_surplus->entries.empty() && !macro.takes_kwargs) {
    return Fail(ErrorCode::kCorrupt, "macro '{}' has no argument '{}'", macro.name,
                named_surplus->entries.front().key.text()->view());
  }
  if (macro.takes_varargs) {
    SLUICE_TRY_ASSIGN(List * list, heap_->NewList(std::move(surplus), /*tuple=*/true));
    variables.insert_or_assign("varargs", Value(list));
  }
  if (macro.takes_kwargs) variables.insert_or_assign("kwargs", Value(named_surplus));
  return {};
}

}  // namespace sluice::chat::jinja
