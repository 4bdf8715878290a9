// Expressions, from the loosest binding to the tightest.
#include <fmt/format.h>

#include <charconv>

#include "base/parse_number.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/parser_impl.h"

namespace sluice::chat::jinja {
namespace {

// Operators in one tag. Chains like a + b + c … grow the tree to one side without nesting in the source; this
// bounds its height, hence the stack for walking and freeing it.
constexpr int kMaxOperators = 500;

}  // namespace

ExprPtr Parser::Make(size_t offset, Expr::Node node) {
  return std::make_unique<Expr>(Expr{static_cast<uint32_t>(offset), std::move(node)});
}

Status Parser::CountOperator() {
  if (++operators_ > kMaxOperators) return TooDeep();
  return {};
}

// One expression, or several with commas, which make a tuple.
Result<ExprPtr> Parser::ParseTuple(bool with_conditional) {
  const size_t offset = Peek().offset;
  SLUICE_TRY_ASSIGN(ExprPtr first, ParseExpression(with_conditional));
  if (!IsOperator(",")) return first;
  ListDisplay list;
  list.tuple = true;
  list.items.push_back(std::move(first));
  while (SkipOperator(",")) {
    if (Peek().kind == Kind::kOutputEnd || Peek().kind == Kind::kBlockEnd || IsOperator(")")) break;
    SLUICE_TRY_ASSIGN(ExprPtr item, ParseExpression(with_conditional));
    list.items.push_back(std::move(item));
  }
  return Make(offset, std::move(list));
}

Result<ExprPtr> Parser::ParseExpression(bool with_conditional) {
  const Nested nested(this);
  if (nested.too_deep()) return TooDeep();
  const size_t offset = Peek().offset;
  SLUICE_TRY_ASSIGN(ExprPtr value, ParseOr());
  while (with_conditional && SkipName("if")) {
    SLUICE_TRY(CountOperator());
    SLUICE_TRY_ASSIGN(ExprPtr condition, ParseOr());
    ExprPtr otherwise;
    if (SkipName("else")) {
      SLUICE_TRY_ASSIGN(otherwise, ParseExpression());
    }
    value = Make(offset, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

Result<ExprPtr> Parser::ParseOr() {
  SLUICE_TRY_ASSIGN(ExprPtr left, ParseAnd());
  while (IsName("or")) {
    const size_t offset = Next().offset;
    SLUICE_TRY(CountOperator());
    SLUICE_TRY_ASSIGN(ExprPtr right, ParseAnd());
    left = Make(offset, Logic{false, std::move(left), std::move(right)});
  }
  return left;
}

Result<ExprPtr> Parser::ParseAnd() {
  SLUICE_TRY_ASSIGN(ExprPtr left, ParseNot());
  while (IsName("and")) {
    const size_t offset = Next().offset;
    SLUICE_TRY(CountOperator());
    SLUICE_TRY_ASSIGN(ExprPtr right, ParseNot());
    left = Make(offset, Logic{true, std::move(left), std::move(right)});
  }
  return left;
}

Result<ExprPtr> Parser::ParseNot() {
  if (!IsName("not")) return ParseComparison();
  const Nested nested(this);
  if (nested.too_deep()) return TooDeep();
  const size_t offset = Next().offset;
  SLUICE_TRY_ASSIGN(ExprPtr operand, ParseNot());
  return Make(offset, Unary{Unary::Op::kNot, std::move(operand)});
}

// The comparison operator that stands here, if one does; then behind it.
bool Parser::SkipComparison(Comparison::Op* op) {
  using Op = Comparison::Op;
  static constexpr std::pair<std::string_view, Op> kOperators[] = {
      {"==", Op::kEqual},  {"!=", Op::kNotEqual},  {"<", Op::kLess},
      {">", Op::kGreater}, {"<=", Op::kLessEqual}, {">=", Op::kGreaterEqual}};
  for (const auto& [text, value] : kOperators) {
    *op = value;
    if (SkipOperator(text)) return true;
  }
  *op = Op::kIn;
  if (SkipName("in")) return true;
  *op = Op::kNotIn;
  if (!IsName("not") || !IsName("in", 1)) return false;
  Next();
  Next();
  return true;
}

Result<ExprPtr> Parser::ParseComparison() {
  const size_t offset = Peek().offset;
  SLUICE_TRY_ASSIGN(ExprPtr first, ParseSum());
  Comparison comparison;
  Comparison::Op op;
  while (SkipComparison(&op)) {
    SLUICE_TRY_ASSIGN(ExprPtr operand, ParseSum());
    comparison.rest.emplace_back(op, std::move(operand));
  }
  if (comparison.rest.empty()) return first;
  comparison.first = std::move(first);
  return Make(offset, std::move(comparison));
}

Result<ExprPtr> Parser::ParseSum() {
  SLUICE_TRY_ASSIGN(ExprPtr left, ParseConcat());
  while (IsOperator("+") || IsOperator("-")) {
    const Token& token = Next();
    SLUICE_TRY(CountOperator());
    SLUICE_TRY_ASSIGN(ExprPtr right, ParseConcat());
    const auto op = token.text == "+" ? Binary::Op::kAdd : Binary::Op::kSubtract;
    left = Make(token.offset, Binary{op, std::move(left), std::move(right)});
  }
  return left;
}

Result<ExprPtr> Parser::ParseConcat() {
  const size_t offset = Peek().offset;
  SLUICE_TRY_ASSIGN(ExprPtr first, ParseProduct());
  if (!IsOperator("~")) return first;
  Concat concat;
  concat.parts.push_back(std::move(first));
  while (SkipOperator("~")) {
    SLUICE_TRY_ASSIGN(ExprPtr part, ParseProduct());
    concat.parts.push_back(std::move(part));
  }
  return Make(offset, std::move(concat));
}

Result<ExprPtr> Parser::ParseProduct() {
  SLUICE_TRY_ASSIGN(ExprPtr left, ParsePower());
  while (IsOperator("*") || IsOperator("/") || IsOperator("//") || IsOperator("%")) {
    const Token& token = Next();
    SLUICE_TRY(CountOperator());
    SLUICE_TRY_ASSIGN(ExprPtr right, ParsePower());
    const auto op = token.text == "*"   ? Binary::Op::kMultiply
                    : token.text == "/" ? Binary::Op::kDivide
                    : token.text == "%" ? Binary::Op::kModulo
                                        : Binary::Op::kFloorDivide;
    left = Make(token.offset, Binary{op, std::move(left), std::move(right)});
  }
  return left;
}

// Binds to the left, and a sign before it binds tighter: the dialect, not Python.
Result<ExprPtr> Parser::ParsePower() {
  SLUICE_TRY_ASSIGN(ExprPtr left, ParseUnary());
  while (IsOperator("**")) {
    const size_t offset = Next().offset;
    SLUICE_TRY(CountOperator());
    SLUICE_TRY_ASSIGN(ExprPtr right, ParseUnary());
    left = Make(offset, Binary{Binary::Op::kPower, std::move(left), std::move(right)});
  }
  return left;
}

// A filter or test after a signed number applies to the number with its sign.
Result<ExprPtr> Parser::ParseUnary(bool with_filters) {
  ExprPtr value;
  if (IsOperator("-") || IsOperator("+")) {
    const Nested nested(this);
    if (nested.too_deep()) return TooDeep();
    const Token& token = Next();
    SLUICE_TRY_ASSIGN(ExprPtr operand, ParseUnary(/*with_filters=*/false));
    value = Make(token.offset,
                 Unary{token.text == "-" ? Unary::Op::kMinus : Unary::Op::kPlus, std::move(operand)});
  } else {
    SLUICE_TRY_ASSIGN(value, ParsePrimary());
  }
  SLUICE_TRY_ASSIGN(value, ParsePostfix(std::move(value)));
  if (!with_filters) return value;
  return ParseFiltersAndTests(std::move(value));
}

Result<ExprPtr> Parser::ParsePrimary() {
  const Token& token = Peek();
  switch (token.kind) {
    case Kind::kName:
      Next();
      return Make(token.offset, NameOrConstant(token.text));
    case Kind::kString: {
      std::string text;
      while (Peek().kind == Kind::kString) text += Unescape(Next().text);  // 'a' 'b' is 'ab'
      return Make(token.offset, Literal{Value(Text::Literal(std::move(text)))});
    }
    case Kind::kInteger:
    case Kind::kFloat: {
      Next();
      SLUICE_TRY_ASSIGN(Value number, ParseNumber(token));
      return Make(token.offset, Literal{std::move(number)});
    }
    default:
      break;
  }
  if (IsOperator("(")) return ParseParenthesis();
  if (IsOperator("[")) return ParseListDisplay();
  if (IsOperator("{")) return ParseDictDisplay();
  return Unexpected("an expression");
}

Expr::Node Parser::NameOrConstant(std::string_view name) {
  if (name == "true" || name == "True") return Literal{Value(true)};
  if (name == "false" || name == "False") return Literal{Value(false)};
  if (name == "none" || name == "None") return Literal{Value(None{})};
  if (macro_ != nullptr) {
    if (name == "varargs") macro_->takes_varargs = true;
    if (name == "kwargs") macro_->takes_kwargs = true;
    if (name == "caller") macro_->takes_caller = true;
  }
  return Name{std::string(name)};
}

Result<Value> Parser::ParseNumber(const Token& token) {
  std::string digits;
  for (const char c : token.text) {
    if (c != '_') digits.push_back(c);
  }
  const char* const end = digits.data() + digits.size();
  if (token.kind == Kind::kFloat) {
    double number = 0;
    if (ParseWholeFloating<double>(digits, &number)) return Value(number);
    return Broken(token, "a number is out of range");
  }
  const char letter = digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(digits.data() + (base == 10 ? 0 : 2), end, number, base);
  if (stop == end && error == std::errc()) return Value(number);
  return Broken(token, "not an integer of 64 bits");
}

Result<ExprPtr> Parser::ParseParenthesis() {
  const size_t offset = Next().offset;
  if (SkipOperator(")")) {
    ListDisplay empty;
    empty.tuple = true;
    return Make(offset, std::move(empty));
  }
  SLUICE_TRY_ASSIGN(ExprPtr value, ParseTuple());
  SLUICE_TRY(ExpectOperator(")"));
  return value;
}

Result<ExprPtr> Parser::ParseListDisplay() {
  const size_t offset = Next().offset;
  ListDisplay list;
  while (!IsOperator("]")) {
    if (!list.items.empty()) SLUICE_TRY(ExpectOperator(","));
    if (IsOperator("]")) break;
    SLUICE_TRY_ASSIGN(ExprPtr item, ParseExpression());
    list.items.push_back(std::move(item));
  }
  Next();
  return Make(offset, std::move(list));
}

Result<ExprPtr> Parser::ParseDictDisplay() {
  const size_t offset = Next().offset;
  DictDisplay dict;
  while (!IsOperator("}")) {
    if (!dict.items.empty()) SLUICE_TRY(ExpectOperator(","));
    if (IsOperator("}")) break;
    SLUICE_TRY_ASSIGN(ExprPtr key, ParseExpression());
    SLUICE_TRY(ExpectOperator(":"));
    SLUICE_TRY_ASSIGN(ExprPtr value, ParseExpression());
    dict.items.emplace_back(std::move(key), std::move(value));
  }
  Next();
  return Make(offset, std::move(dict));
}

// .name, [index] and (arguments) behind a value.
Result<ExprPtr> Parser::ParsePostfix(ExprPtr value) {
  for (;;) {
    const Token& token = Peek();
    if (IsOperator(".")) {
      Next();
      const Token& name = Next();
      if (name.kind == Kind::kName) {
        value = Make(token.offset, Attribute{std::move(value), std::string(name.text)});
      } else if (name.kind == Kind::kInteger) {
        SLUICE_TRY_ASSIGN(Value index, ParseNumber(name));
        value = Make(token.offset, Subscript{std::move(value), Make(name.offset, Literal{std::move(index)})});
      } else {
        return Broken(name, "expected a name or number after '.'");
      }
    } else if (IsOperator("[")) {
      SLUICE_TRY_ASSIGN(value, ParseSubscript(std::move(value)));
    } else if (IsOperator("(")) {
      SLUICE_TRY_ASSIGN(value, ParseCall(std::move(value)));
    } else {
      return value;
    }
    SLUICE_TRY(CountOperator());
  }
}

Result<ExprPtr> Parser::ParseCall(ExprPtr callee) {
  const size_t offset = Peek().offset;
  SLUICE_TRY_ASSIGN(CallArguments arguments, ParseCallArguments());
  return Make(offset, Call{std::move(callee), std::move(arguments)});
}

Result<ExprPtr> Parser::ParseSubscript(ExprPtr object) {
  const size_t offset = Next().offset;
  ExprPtr start, stop, step;
  if (!IsOperator(":")) {
    SLUICE_TRY_ASSIGN(start, ParseExpression());
  }
  if (SkipOperator("]")) return Make(offset, Subscript{std::move(object), std::move(start)});
  SLUICE_TRY(ExpectOperator(":"));
  if (!IsOperator(":") && !IsOperator("]")) {
    SLUICE_TRY_ASSIGN(stop, ParseExpression());
  }
  if (SkipOperator(":") && !IsOperator("]")) {
    SLUICE_TRY_ASSIGN(step, ParseExpression());
  }
  SLUICE_TRY(ExpectOperator("]"));
  return Make(offset, SliceOf{std::move(object), std::move(start), std::move(stop), std::move(step)});
}

Result<CallArguments> Parser::ParseCallArguments() {
  CallArguments arguments;
  SLUICE_TRY(ExpectOperator("("));
  for (bool first = true; !IsOperator(")"); first = false) {
    if (!first) SLUICE_TRY(ExpectOperator(","));
    if (IsOperator(")")) break;
    const Token& token = Peek();
    if (SkipOperator("*")) {
      if (arguments.spread_list) return Broken(token, "'*' twice in one call");
      SLUICE_TRY_ASSIGN(arguments.spread_list, ParseExpression());
    } else if (SkipOperator("**")) {
      if (arguments.spread_dict) return Broken(token, "'**' twice in one call");
      SLUICE_TRY_ASSIGN(arguments.spread_dict, ParseExpression());
    } else if (token.kind == Kind::kName && IsOperator("=", 1)) {
      Next();
      Next();
      SLUICE_TRY_ASSIGN(ExprPtr value, ParseExpression());
      arguments.named.emplace_back(std::string(token.text), std::move(value));
    } else {
      if (!arguments.named.empty()) return Broken(token, "a positional argument after a named one");
      SLUICE_TRY_ASSIGN(ExprPtr value, ParseExpression());
      arguments.positional.push_back(std::move(value));
    }
  }
  Next();
  return arguments;
}

Result<ExprPtr> Parser::ParseFiltersAndTests(ExprPtr value) {
  for (;;) {
    const Token& token = Peek();
    if (SkipOperator("|")) {
      SLUICE_TRY_ASSIGN(Filter filter, ParseFilter(std::move(value)));
      value = Make(token.offset, std::move(filter));
    } else if (SkipName("is")) {
      SLUICE_TRY_ASSIGN(Test test, ParseTest(std::move(value)));
      value = Make(token.offset, std::move(test));
    } else if (IsOperator("(")) {
      SLUICE_TRY_ASSIGN(value, ParseCall(std::move(value)));
    } else {
      return value;
    }
    SLUICE_TRY(CountOperator());
  }
}

// Behind the "|".
Result<Filter> Parser::ParseFilter(ExprPtr input) {
  const Token& token = Peek();
  Filter filter;
  filter.input = std::move(input);
  SLUICE_TRY_ASSIGN(filter.name, ExpectName());
  filter.builtin = FindFilter(filter.name);
  if (filter.builtin == nullptr) NoteUnknown(token, "filter");
  if (IsOperator("(")) {
    SLUICE_TRY_ASSIGN(filter.arguments, ParseCallArguments());
  }
  return filter;
}

// "| name | name(…)" of a block, possibly none.
Result<std::vector<Filter>> Parser::ParseFilterNames() {
  std::vector<Filter> filters;
  while (SkipOperator("|")) {
    SLUICE_TRY_ASSIGN(Filter filter, ParseFilter(nullptr));
    filters.push_back(std::move(filter));
  }
  return filters;
}

// Behind the "is". One argument may stand there without parentheses: x is divisibleby 3.
Result<Test> Parser::ParseTest(ExprPtr input) {
  Test test;
  test.input = std::move(input);
  test.negated = SkipName("not");
  const Token& token = Peek();
  SLUICE_TRY_ASSIGN(test.name, ExpectName());
  test.builtin = FindTest(test.name);
  if (test.builtin == nullptr) NoteUnknown(token, "test");
  if (IsOperator("(")) {
    SLUICE_TRY_ASSIGN(test.arguments, ParseCallArguments());
  } else if (AtBareArgument()) {
    SLUICE_TRY_ASSIGN(ExprPtr argument, ParsePrimary());
    SLUICE_TRY_ASSIGN(argument, ParsePostfix(std::move(argument)));
    test.arguments.positional.push_back(std::move(argument));
  }
  return test;
}

bool Parser::AtBareArgument() const {
  const Token& token = Peek();
  if (token.kind == Kind::kName) {
    static constexpr std::string_view kNotArguments[] = {"else", "or", "and", "if",
                                                         "is",   "in", "not", "recursive"};
    return std::find(std::begin(kNotArguments), std::end(kNotArguments), token.text) ==
           std::end(kNotArguments);
  }
  return token.kind == Kind::kString || token.kind == Kind::kInteger || token.kind == Kind::kFloat ||
         IsOperator("[") || IsOperator("{");
}

void Parser::NoteUnknown(const Token& token, std::string_view what) {
  constexpr size_t kEnough = 16;
  if (result_->unknown_names.size() >= kEnough) return;
  result_->unknown_names.push_back(
      fmt::format("{}: no {} named '{}'", Place(token.offset), what, token.text.substr(0, 40)));
}

}  // namespace sluice::chat::jinja
