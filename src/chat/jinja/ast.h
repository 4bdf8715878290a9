// The syntax tree of a template. Plain data: the parser makes it, the interpreter walks it, nobody changes
// it. Every node knows where it stands in the source, for messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/value.h"

namespace sluice::chat::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// --- Expressions ---

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListDisplay {  // [a, b] and (a, b)
  std::vector<ExprPtr> items;
  bool tuple = false;
};
struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct Attribute {  // object.name
  ExprPtr object;
  std::string name;
};
struct Subscript {  // object[index]
  ExprPtr object;
  ExprPtr index;
};
struct SliceOf {  // object[start:stop:step], each may be missing
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};
struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread_list;  // *x
  ExprPtr spread_dict;  // **x
};
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
struct Filter {  // input | name(arguments); a filter block has no input expression
  ExprPtr input;
  std::string name;
  const Builtin* builtin;  // nullptr: there is none of that name
  CallArguments arguments;
};
struct Test {  // input is [not] name(arguments)
  ExprPtr input;
  std::string name;
  const Builtin* builtin;  // nullptr: there is none of that name
  CallArguments arguments;
  bool negated = false;
};
struct Unary {
  enum class Op { kNot, kMinus, kPlus };
  Op op;
  ExprPtr operand;
};
struct Binary {
  enum class Op { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
  Op op;
  ExprPtr left;
  ExprPtr right;
};
struct Logic {  // and, or: gives one of its operands
  bool is_and;
  ExprPtr left;
  ExprPtr right;
};
struct Concat {  // a ~ b ~ c
  std::vector<ExprPtr> parts;
};
struct Comparison {  // a < b <= c
  enum class Op { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
  ExprPtr first;
  std::vector<std::pair<Op, ExprPtr>> rest;
};
struct Conditional {  // then if condition else otherwise
  ExprPtr condition;
  ExprPtr then;
  ExprPtr otherwise;  // may be missing
};

struct Expr {
  using Node = std::variant<Literal, Name, ListDisplay, DictDisplay, Attribute, Subscript, SliceOf, Call,
                            Filter, Test, Unary, Binary, Logic, Concat, Comparison, Conditional>;
  uint32_t offset = 0;  // in the source
  Node node;
};

// --- Statements ---

struct Stmt;
using Block = std::vector<Stmt>;

// What is assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;      // ns.attribute
  std::vector<Target> tuple;  // if not empty, the others are
};

struct Data {  // text between tags
  Text text;
};
struct Output {  // {{ value }}
  ExprPtr value;
};
struct Set {  // {% set target = value %}
  Target target;
  ExprPtr value;
};
struct SetBlock {  // {% set target | filters %} body {% endset %}
  Target target;
  std::vector<Filter> filters;
  Block body;
};
struct FilterBlock {  // {% filter filters %} body {% endfilter %}
  std::vector<Filter> filters;
  Block body;
};
struct If {
  struct Branch {
    ExprPtr condition;  // missing: else
    Block body;
  };
  std::vector<Branch> branches;
};
struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // may be missing
  bool recursive = false;
  Block body;
  Block otherwise;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> variables;
  Block body;
};
struct Macro {
  struct Parameter {
    std::string name;
    ExprPtr default_value;  // may be missing
  };
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  // The body mentions these, so that surplus arguments are welcome.
  bool takes_varargs = false;
  bool takes_kwargs = false;
  bool takes_caller = false;
};
struct CallBlock {  // {% call(parameters) callee(…) %} body {% endcall %}
  Macro caller;
  ExprPtr call;
};
struct Plain {  // {% generation %} body {% endgeneration %}: only marks text
  Block body;
};
struct Break {};
struct Continue {};

struct Stmt {
  using Node = std::variant<Data, Output, Set, SetBlock, FilterBlock, If, For, With, Macro, CallBlock, Plain,
                            Break, Continue>;
  uint32_t offset = 0;
  Node node;
};

}  // namespace sluice::chat::jinja
