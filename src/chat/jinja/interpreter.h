// The interpreter: walks the tree of a template with a context of variables and collects the text it makes.
//
// One Interpreter is one rendering: it is made, run once and thrown away, by one thread. The Template and the
// Heap are the caller's and must outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "chat/jinja/ast.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/limits.h"
#include "chat/jinja/parser.h"
#include "chat/jinja/value.h"

namespace sluice::chat::jinja {

// Variables by name; names are views into the template. `for`, `with` and macros open a scope.
struct Scope {
  Scope* parent = nullptr;
  std::unordered_map<std::string_view, Value> variables;
  bool captured = false;  // a macro remembers it, so it can't be used again
};

class Interpreter {
 public:
  // `local_time`: what strftime_now tells, in seconds since 1970; without it there is no such function.
  Interpreter(const Template& source, const Limits& limits, Heap* heap, std::optional<int64_t> local_time);

  // The text of the whole template, with `context` as its variables.
  // Errors: kInvalidArgument: raise_exception, the message is the template's own. Others carry line and
  // column: kUnsupported (no such filter, function …), kCorrupt (types that don't go together),
  // kResourceExhausted.
  Result<Text> Run(const Dict& context);

  // --- For builtins ---
  Heap* heap() { return heap_; }
  const Limits& limits() const { return limits_; }
  std::optional<int64_t> local_time() const { return local_time_; }
  Result<Value> CallValue(const Value& callee, Arguments arguments);
  // object.name, undefined where there is nothing. Error: kUnsupported for what may not be touched.
  Result<Value> GetAttribute(const Value& object, std::string_view name);
  // object[index], undefined where there is nothing.
  Result<Value> GetItem(const Value& object, const Value& index);
  // "a.b.0": attributes and items in turn, as map(attribute=…) has it.
  Result<Value> GetPath(const Value& object, std::string_view path);
  Result<bool> Holds(Comparison::Op op, const Value& left, const Value& right);
  // Adds what dict(…) would be made of.
  Status FillDict(Dict* dict, const Arguments& arguments);
  // Keeps the error apart from those that get a line and column.
  Error Raise(std::string message);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // --- Statements (interpreter.cc) ---
  Result<Flow> Execute(const Block& block);
  Result<Flow> Execute(const Stmt& stmt);
  Result<Flow> Execute(const If& node);
  Result<Flow> Execute(const For& node);
  Result<Flow> Execute(const With& node);
  Status Execute(const SetBlock& node);
  Status Execute(const FilterBlock& node);
  Status Execute(const Macro& node);
  Status Execute(const CallBlock& node);
  Status Write(const Value& value);
  Result<Flow> RunLoop(const For& node, const Value& iterable, size_t depth0);
  Result<List*> LoopItems(const For& node, const Value& iterable);
  Status Assign(const Target& target, Value value);
  Result<Text> Capture(const Block& body);
  Result<Value> ApplyFilters(const std::vector<Filter>& filters, Value input);
  Result<Callable*> MakeMacro(const Macro& node);
  Result<Value> CallMacro(const Callable& callable, Arguments arguments);
  Status BindMacro(const Macro& macro, Arguments arguments);

  // --- Expressions (evaluate.cc) ---
  Result<Value> Evaluate(const Expr& expr);
  Result<Value> Evaluate(const Literal& node) { return node.value; }
  Result<Value> Evaluate(const Name& node);
  Result<Value> Evaluate(const ListDisplay& node);
  Result<Value> Evaluate(const DictDisplay& node);
  Result<Value> Evaluate(const Attribute& node);
  Result<Value> Evaluate(const Subscript& node);
  Result<Value> Evaluate(const SliceOf& node);
  Result<Value> Evaluate(const Call& node) { return EvaluateCall(node, nullptr); }
  Result<Value> Evaluate(const Filter& node);
  Result<Value> Evaluate(const Test& node);
  Result<Value> Evaluate(const Unary& node);
  Result<Value> Evaluate(const Binary& node);
  Result<Value> Evaluate(const Logic& node);
  Result<Value> Evaluate(const Concat& node);
  Result<Value> Evaluate(const Comparison& node);
  Result<Value> Evaluate(const Conditional& node);
  Result<Arguments> EvaluateArguments(const CallArguments& node);
  Result<Value> ApplyFilter(const Filter& node, Value input);
  Result<Value> EvaluateCall(const Call& node, Callable* caller);
  Result<bool> Contains(const Value& container, const Value& item);
  Result<Value> LoopAttribute(const Loop& loop, std::string_view name);

  // The variable's value, nullptr where there is none.
  const Value* Find(std::string_view name) const;
  Scope* OpenScope(Scope* parent);
  void CloseScope(Scope* scope);

  const Template& template_;
  const Limits& limits_;
  Heap* heap_;
  std::optional<int64_t> local_time_;

  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;      // the current one
  TextBuilder* out_ = nullptr;  // where text goes now
  int depth_ = 0;
  std::optional<uint32_t> error_offset_;  // of the innermost node that failed
  bool raised_ = false;
};

}  // namespace sluice::chat::jinja
