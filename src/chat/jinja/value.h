// Value: what an expression of the template language can be. And Heap, which owns everything that a Value
// points to: lists, dicts, callables live until the rendering ends, since templates can tie them into knots
// that no reference count would free.
//
// Values are small and copied freely; lists, dicts and namespaces are shared, as in Python. One thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "chat/jinja/text.h"

namespace sluice::chat::jinja {

struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Callable;
struct Builtin;  // builtins.h
struct Macro;    // ast.h
struct For;      // ast.h
struct Scope;    // interpreter.h

struct Undefined {};
struct None {};

class Value {
 public:
  Value() = default;  // undefined
  Value(None) : data_(None{}) {}
  // Exactly these: an int or a string literal must not slip in as a bool.
  Value(std::same_as<bool> auto b) : data_(b) {}
  Value(std::same_as<int64_t> auto i) : data_(i) {}
  Value(std::same_as<double> auto d) : data_(d) {}
  Value(Text text) : data_(std::move(text)) {}
  Value(List* list) : data_(list) {}
  Value(Dict* dict) : data_(dict) {}
  Value(Namespace* ns) : data_(ns) {}
  Value(Loop* loop) : data_(loop) {}
  Value(Callable* callable) : data_(callable) {}

  bool is_undefined() const { return Is<Undefined>(); }
  bool is_none() const { return Is<None>(); }
  bool is_text() const { return Is<Text>(); }
  // Python's view: True and False are integers.
  bool is_integer() const { return Is<int64_t>() || Is<bool>(); }
  bool is_number() const { return is_integer() || Is<double>(); }

  // The pointer to what it holds, or nullptr if that is something else. For pointers: the pointer itself.
  template <typename T>
  const T* Get() const {
    return std::get_if<T>(&data_);
  }
  const Text* text() const { return Get<Text>(); }
  List* list() const { return Pointer<List>(); }
  Dict* dict() const { return Pointer<Dict>(); }
  Namespace* ns() const { return Pointer<Namespace>(); }
  Loop* loop() const { return Pointer<Loop>(); }
  Callable* callable() const { return Pointer<Callable>(); }

  // is_integer() and is_number() must hold.
  int64_t AsInteger() const { return Is<bool>() ? std::get<bool>(data_) : std::get<int64_t>(data_); }
  double AsDouble() const {
    return Is<double>() ? std::get<double>(data_) : static_cast<double>(AsInteger());
  }

  bool Truthy() const;
  // "string", "integer", "none" …, for messages.
  std::string_view TypeName() const;

 private:
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(data_);
  }
  template <typename T>
  T* Pointer() const {
    T* const* p = std::get_if<T*>(&data_);
    return p ? *p : nullptr;
  }

  std::variant<Undefined, None, bool, int64_t, double, Text, List*, Dict*, Namespace*, Loop*, Callable*>
      data_;
};

inline Result<Value> ToValue(Result<Text> text) {
  if (!text) return std::move(text).error();
  return Value(*std::move(text));
}

struct List {
  std::vector<Value> items;
  bool tuple = false;
};

// Keeps the order of insertion. Keys are strings, numbers, booleans or none; 1, 1.0 and true are one key.
struct Dict {
  struct Entry {
    Value key;
    Value value;
  };
  std::vector<Entry> entries;

  // nullptr when absent. A key that can't be one (a list) is absent.
  Value* Find(const Value& key);
  Value* Find(std::string_view key);
  // False when it is absent.
  bool Erase(const Value& key);

 private:
  friend class Heap;
  // From the key's identity (its kind and bytes) to its place in `entries`. A tree, since hashes can be
  // attacked.
  std::map<std::string, size_t> index_;
};

// What namespace(...) makes; the only thing whose attributes can be set.
struct Namespace {
  Dict* attributes;
};

// The state behind `loop`.
struct Loop {
  List* items = nullptr;
  size_t index0 = 0;
  size_t depth0 = 0;
  Value last_changed;              // loop.changed(…)
  const For* recursive = nullptr;  // loop(…) runs this statement again …
  Scope* scope = nullptr;          // … in this scope
};

// A function of the language (`builtin`, with the object that a method belongs to in `self`) or a macro.
struct Callable {
  const Builtin* builtin = nullptr;
  Value self;
  const Macro* macro = nullptr;
  Scope* scope = nullptr;  // where the macro was defined
};

// Owns lists, dicts and callables for one rendering, and charges them. Every maker fails with
// kResourceExhausted when the budget is used up.
class Heap {
 public:
  explicit Heap(const Limits& limits) : meter_(limits) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Meter* meter() { return &meter_; }
  // Counts work before it is done. Error: kResourceExhausted.
  Status Spend(uint64_t steps);
  Status SpendBytes(size_t bytes);
  // Charges `bytes` until the rendering ends, for what lives outside of this class.
  Status Reserve(size_t bytes);

  Result<List*> NewList(std::vector<Value> items = {}, bool tuple = false);
  Result<Dict*> NewDict();
  Result<Namespace*> NewNamespace();
  Result<Loop*> NewLoop(Loop loop);
  Result<Callable*> NewCallable(Callable callable);
  Result<Text> NewText(std::string_view bytes, bool trusted);

  Status Append(List* list, Value value);
  // Dict::Find, with the work of comparing the key charged.
  Result<Value*> Find(Dict* dict, const Value& key);
  // Adds or replaces. Error: kCorrupt for a key that can't be one.
  Status Set(Dict* dict, Value key, Value value);
  Status Set(Dict* dict, std::string_view key, Value value);  // a trusted key

 private:
  Meter meter_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
  std::deque<Callable> callables_;
};

// a == b as the template language has it. Error: kResourceExhausted (steps, or nested too deep).
Result<bool> Equal(const Value& a, const Value& b, Meter* meter);
// Negative, zero or positive. Error: kCorrupt where the two have no order.
Result<int> Compare(const Value& a, const Value& b, Meter* meter);

}  // namespace sluice::chat::jinja
