#include "chat/jinja/parser.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "chat/jinja/builtins.h"
#include "chat/jinja/lexer.h"

namespace sluice::chat::jinja {
namespace {

using Kind = Token::Kind;

// Operators in one tag. Chains like a + b + c … grow the tree to one side without nesting in the source; this
// bounds its height, hence the stack for walking and freeing it.
constexpr int kMaxOperators = 500;

class Parser {
 public:
  Parser(std::string_view source, std::vector<Token> tokens, const Limits& limits, Template* result)
      : source_(source), tokens_(std::move(tokens)), limits_(limits), result_(result) {}

  Status Run() {
    SLUICE_TRY_ASSIGN(result_->body, ParseBlock({}));
    return {};
  }

 private:
  // --- Tokens ---

  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& Next() {
    const Token& token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool IsName(std::string_view name, size_t ahead = 0) const {
    return Peek(ahead).kind == Kind::kName && Peek(ahead).text == name;
  }
  bool IsOperator(std::string_view op, size_t ahead = 0) const {
    return Peek(ahead).kind == Kind::kOperator && Peek(ahead).text == op;
  }
  bool SkipName(std::string_view name) {
    if (!IsName(name)) return false;
    Next();
    return true;
  }
  bool SkipOperator(std::string_view op) {
    if (!IsOperator(op)) return false;
    Next();
    return true;
  }

  std::string Place(size_t offset) const { return DescribePlace(source_, offset); }
  Error Broken(const Token& token, std::string_view what) const {
    return Fail(ErrorCode::kUnsupported, "template {}: {}", Place(token.offset), what);
  }
  Error Unexpected(std::string_view wanted) const {
    const Token& token = Peek();
    if (token.kind == Kind::kEnd) return Broken(token, fmt::format("the template ends; expected {}", wanted));
    return Broken(token, fmt::format("found '{}'; expected {}", token.text.substr(0, 40), wanted));
  }
  Error TooDeep() const {
    return Fail(ErrorCode::kResourceExhausted, "template {}: nested too deep", Place(Peek().offset));
  }

  Status Expect(Kind kind, std::string_view wanted) {
    if (Peek().kind != kind) return Unexpected(wanted);
    Next();
    return {};
  }
  Status ExpectOperator(std::string_view op) {
    if (!SkipOperator(op)) return Unexpected(fmt::format("'{}'", op));
    return {};
  }
  Result<std::string> ExpectName() {
    if (Peek().kind != Kind::kName) return Unexpected("a name");
    return std::string(Next().text);
  }
  Status EndTag() {
    SkipOperator(":");
    return Expect(Kind::kBlockEnd, "%}");
  }

  // Counts one level of nesting while it lives.
  class Nested {
   public:
    explicit Nested(Parser* parser) : parser_(parser) { ++parser_->depth_; }
    ~Nested() { --parser_->depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    bool too_deep() const { return parser_->depth_ > parser_->limits_.parse_depth; }

   private:
    Parser* parser_;
  };

  // --- Statements ---

  // Statements up to one of the tags in `ends` (then at its name), or, if there are none, to the template's
  // end.
  Result<Block> ParseBlock(std::initializer_list<std::string_view> ends) {
    const Nested nested(this);
    if (nested.too_deep()) return TooDeep();
    Block block;
    for (;;) {
      operators_ = 0;
      const Token& token = Peek();
      if (token.kind == Kind::kEnd) {
        if (ends.size() > 0) return Unexpected(fmt::format("{{% {} %}}", *(ends.end() - 1)));
        return block;
      }
      Next();
      if (token.kind == Kind::kData) {
        block.push_back({token.offset, Data{Text::Literal(std::string(token.text))}});
      } else if (token.kind == Kind::kOutputBegin) {
        SLUICE_TRY_ASSIGN(ExprPtr value, ParseTuple());
        SLUICE_TRY(Expect(Kind::kOutputEnd, "}}"));
        block.push_back({token.offset, Output{std::move(value)}});
      } else {
        for (const std::string_view end : ends) {
          if (IsName(end)) return block;
        }
        SLUICE_TRY_ASSIGN(Stmt::Node node, ParseStatement());
        block.push_back({token.offset, std::move(node)});
      }
    }
  }

  // A block that ends with {% end %} and nothing else; behind that tag afterwards.
  Result<Block> ParseBody(std::string_view end) {
    SLUICE_TRY(EndTag());
    SLUICE_TRY_ASSIGN(Block body, ParseBlock({end}));
    Next();
    SLUICE_TRY(EndTag());
    return body;
  }

  Result<Stmt::Node> ParseStatement() {
    const Token& token = Peek();
    SLUICE_TRY_ASSIGN(const std::string tag, ExpectName());
    if (tag == "if") return ParseIf();
    if (tag == "for") return ParseFor();
    if (tag == "set") return ParseSet();
    if (tag == "macro") return ParseMacro();
    if (tag == "call") return ParseCallBlock();
    if (tag == "filter") return ParseFilterBlock();
    if (tag == "with") return ParseWith();
    if (tag == "generation") {
      SLUICE_TRY_ASSIGN(Block body, ParseBody("endgeneration"));
      return Stmt::Node(Plain{std::move(body)});
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return Broken(token, fmt::format("'{}' outside of a loop", tag));
      SLUICE_TRY(EndTag());
      return tag == "break" ? Stmt::Node(Break{}) : Stmt::Node(Continue{});
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends" || tag == "block") {
      return Broken(token,
                    fmt::format("'{}' is not supported: a chat template can't use other templates", tag));
    }
    return Broken(token, fmt::format("unknown tag '{}'", tag));
  }

  Result<Stmt::Node> ParseIf() {
    If node;
    for (;;) {
      SLUICE_TRY_ASSIGN(ExprPtr condition, ParseTuple(/*with_conditional=*/false));
      SLUICE_TRY(EndTag());
      SLUICE_TRY_ASSIGN(Block body, ParseBlock({"elif", "else", "endif"}));
      node.branches.push_back({std::move(condition), std::move(body)});
      const std::string_view end = Next().text;
      if (end == "elif") continue;
      if (end == "else") {
        SLUICE_TRY_ASSIGN(Block otherwise, ParseBody("endif"));
        node.branches.push_back({nullptr, std::move(otherwise)});
      } else {
        SLUICE_TRY(EndTag());
      }
      return Stmt::Node(std::move(node));
    }
  }

  Result<Stmt::Node> ParseFor() {
    For node;
    SLUICE_TRY_ASSIGN(node.target, ParseTarget(/*allow_attribute=*/false));
    if (!SkipName("in")) return Unexpected("'in'");
    SLUICE_TRY_ASSIGN(node.iterable, ParseTuple(/*with_conditional=*/false));
    if (SkipName("if")) {
      SLUICE_TRY_ASSIGN(node.condition, ParseExpression());
    }
    node.recursive = SkipName("recursive");
    SLUICE_TRY(EndTag());
    ++loops_;
    SLUICE_TRY_ASSIGN(node.body, ParseBlock({"else", "endfor"}));
    --loops_;
    if (Next().text == "else") {
      SLUICE_TRY_ASSIGN(node.otherwise, ParseBody("endfor"));
    } else {
      SLUICE_TRY(EndTag());
    }
    return Stmt::Node(std::move(node));
  }

  Result<Stmt::Node> ParseSet() {
    SLUICE_TRY_ASSIGN(Target target, ParseTarget(/*allow_attribute=*/true));
    if (SkipOperator("=")) {
      SLUICE_TRY_ASSIGN(ExprPtr value, ParseTuple());
      SLUICE_TRY(EndTag());
      return Stmt::Node(Set{std::move(target), std::move(value)});
    }
    SLUICE_TRY_ASSIGN(std::vector<Filter> filters, ParseFilterNames());
    SLUICE_TRY_ASSIGN(Block body, ParseBody("endset"));
    return Stmt::Node(SetBlock{std::move(target), std::move(filters), std::move(body)});
  }

  Result<Stmt::Node> ParseFilterBlock() {
    std::vector<Filter> filters;
    SLUICE_TRY_ASSIGN(Filter first, ParseFilter(nullptr));
    filters.push_back(std::move(first));
    SLUICE_TRY_ASSIGN(std::vector<Filter> more, ParseFilterNames());
    for (Filter& filter : more) filters.push_back(std::move(filter));
    SLUICE_TRY_ASSIGN(Block body, ParseBody("endfilter"));
    return Stmt::Node(FilterBlock{std::move(filters), std::move(body)});
  }

  Result<Stmt::Node> ParseWith() {
    With node;
    while (Peek().kind != Kind::kBlockEnd) {
      if (!node.variables.empty()) SLUICE_TRY(ExpectOperator(","));
      SLUICE_TRY_ASSIGN(Target target, ParseTarget(/*allow_attribute=*/false));
      SLUICE_TRY(ExpectOperator("="));
      SLUICE_TRY_ASSIGN(ExprPtr value, ParseExpression());
      node.variables.emplace_back(std::move(target), std::move(value));
    }
    SLUICE_TRY_ASSIGN(node.body, ParseBody("endwith"));
    return Stmt::Node(std::move(node));
  }

  Result<Stmt::Node> ParseMacro() {
    SLUICE_TRY_ASSIGN(std::string name, ExpectName());
    SLUICE_TRY_ASSIGN(Macro macro, ParseMacroRest(std::move(name), "endmacro"));
    return Stmt::Node(std::move(macro));
  }

  Result<Stmt::Node> ParseCallBlock() {
    // {% call(parameters) callee(…) %}: the parameters belong to the body, which stands behind the call.
    std::vector<Macro::Parameter> parameters;
    if (IsOperator("(")) {
      SLUICE_TRY_ASSIGN(parameters, ParseParameters());
    }
    CallBlock node;
    const Token& token = Peek();
    SLUICE_TRY_ASSIGN(node.call, ParseExpression());
    if (!std::holds_alternative<Call>(node.call->node)) return Broken(token, "expected a call");
    SLUICE_TRY_ASSIGN(node.caller, ParseMacroBody("caller", std::move(parameters), "endcall"));
    return Stmt::Node(std::move(node));
  }

  Result<Macro> ParseMacroRest(std::string name, std::string_view end) {
    SLUICE_TRY_ASSIGN(std::vector<Macro::Parameter> parameters, ParseParameters());
    return ParseMacroBody(std::move(name), std::move(parameters), end);
  }

  Result<Macro> ParseMacroBody(std::string name, std::vector<Macro::Parameter> parameters,
                               std::string_view end) {
    Macro macro;
    macro.name = std::move(name);
    macro.parameters = std::move(parameters);
    Macro* const outer_macro = std::exchange(macro_, &macro);
    const int outer_loops = std::exchange(loops_, 0);
    Result<Block> body = ParseBody(end);
    macro_ = outer_macro;
    loops_ = outer_loops;
    SLUICE_TRY_ASSIGN(macro.body, std::move(body));
    return macro;
  }

  Result<std::vector<Macro::Parameter>> ParseParameters() {
    std::vector<Macro::Parameter> parameters;
    SLUICE_TRY(ExpectOperator("("));
    while (!IsOperator(")")) {
      if (!parameters.empty()) SLUICE_TRY(ExpectOperator(","));
      if (IsOperator(")")) break;
      Macro::Parameter& parameter = parameters.emplace_back();
      SLUICE_TRY_ASSIGN(parameter.name, ExpectName());
      if (SkipOperator("=")) {
        SLUICE_TRY_ASSIGN(parameter.default_value, ParseExpression());
      }
    }
    Next();
    return parameters;
  }

  Result<Target> ParseTarget(bool allow_attribute) {
    const Nested nested(this);
    if (nested.too_deep()) return TooDeep();
    std::vector<Target> targets;
    bool tuple = false;
    do {
      if (tuple && Peek().kind != Kind::kName && !IsOperator("(")) break;  // a comma at the end
      Target& target = targets.emplace_back();
      if (SkipOperator("(")) {
        SLUICE_TRY_ASSIGN(target, ParseTarget(allow_attribute));
        SLUICE_TRY(ExpectOperator(")"));
      } else {
        SLUICE_TRY_ASSIGN(target.name, ExpectName());
        if (allow_attribute && SkipOperator(".")) {
          SLUICE_TRY_ASSIGN(target.attribute, ExpectName());
        }
      }
      tuple = tuple || IsOperator(",");
    } while (SkipOperator(","));
    if (!tuple) return std::move(targets.front());
    Target all;
    all.tuple = std::move(targets);
    return all;
  }

  // --- Expressions, from the loosest binding to the tightest ---

  static ExprPtr Make(size_t offset, Expr::Node node) {
    return std::make_unique<Expr>(Expr{static_cast<uint32_t>(offset), std::move(node)});
  }

  Status CountOperator() {
    if (++operators_ > kMaxOperators) return TooDeep();
    return {};
  }

  // One expression, or several with commas, which make a tuple.
  Result<ExprPtr> ParseTuple(bool with_conditional = true) {
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

  Result<ExprPtr> ParseExpression(bool with_conditional = true) {
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

  Result<ExprPtr> ParseOr() {
    SLUICE_TRY_ASSIGN(ExprPtr left, ParseAnd());
    while (IsName("or")) {
      const size_t offset = Next().offset;
      SLUICE_TRY(CountOperator());
      SLUICE_TRY_ASSIGN(ExprPtr right, ParseAnd());
      left = Make(offset, Logic{false, std::move(left), std::move(right)});
    }
    return left;
  }

  Result<ExprPtr> ParseAnd() {
    SLUICE_TRY_ASSIGN(ExprPtr left, ParseNot());
    while (IsName("and")) {
      const size_t offset = Next().offset;
      SLUICE_TRY(CountOperator());
      SLUICE_TRY_ASSIGN(ExprPtr right, ParseNot());
      left = Make(offset, Logic{true, std::move(left), std::move(right)});
    }
    return left;
  }

  Result<ExprPtr> ParseNot() {
    if (!IsName("not")) return ParseComparison();
    const Nested nested(this);
    if (nested.too_deep()) return TooDeep();
    const size_t offset = Next().offset;
    SLUICE_TRY_ASSIGN(ExprPtr operand, ParseNot());
    return Make(offset, Unary{Unary::Op::kNot, std::move(operand)});
  }

  // The comparison operator that stands here, if one does; then behind it.
  bool SkipComparison(Comparison::Op* op) {
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

  Result<ExprPtr> ParseComparison() {
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

  Result<ExprPtr> ParseSum() {
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

  Result<ExprPtr> ParseConcat() {
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

  Result<ExprPtr> ParseProduct() {
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
  Result<ExprPtr> ParsePower() {
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
  Result<ExprPtr> ParseUnary(bool with_filters = true) {
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

  Result<ExprPtr> ParsePrimary() {
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

  Expr::Node NameOrConstant(std::string_view name) {
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

  Result<Value> ParseNumber(const Token& token) {
    std::string digits;
    for (const char c : token.text) {
      if (c != '_') digits.push_back(c);
    }
    const char* const end = digits.data() + digits.size();
    if (token.kind == Kind::kFloat) {
      double number = 0;
      const auto [stop, error] = std::from_chars(digits.data(), end, number);
      if (stop == end && error == std::errc()) return Value(number);
      return Broken(token, "a number is out of range");
    }
    const char letter = digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(digits.data() + (base == 10 ? 0 : 2), end, number, base);
    if (stop == end && error == std::errc()) return Value(number);
    return Broken(token, "not an integer of 64 bits");
  }

  Result<ExprPtr> ParseParenthesis() {
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

  Result<ExprPtr> ParseListDisplay() {
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

  Result<ExprPtr> ParseDictDisplay() {
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
  Result<ExprPtr> ParsePostfix(ExprPtr value) {
    for (;;) {
      const Token& token = Peek();
      if (IsOperator(".")) {
        Next();
        const Token& name = Next();
        if (name.kind == Kind::kName) {
          value = Make(token.offset, Attribute{std::move(value), std::string(name.text)});
        } else if (name.kind == Kind::kInteger) {
          SLUICE_TRY_ASSIGN(Value index, ParseNumber(name));
          value =
              Make(token.offset, Subscript{std::move(value), Make(name.offset, Literal{std::move(index)})});
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

  Result<ExprPtr> ParseCall(ExprPtr callee) {
    const size_t offset = Peek().offset;
    SLUICE_TRY_ASSIGN(CallArguments arguments, ParseCallArguments());
    return Make(offset, Call{std::move(callee), std::move(arguments)});
  }

  Result<ExprPtr> ParseSubscript(ExprPtr object) {
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

  Result<CallArguments> ParseCallArguments() {
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

  Result<ExprPtr> ParseFiltersAndTests(ExprPtr value) {
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
  Result<Filter> ParseFilter(ExprPtr input) {
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
  Result<std::vector<Filter>> ParseFilterNames() {
    std::vector<Filter> filters;
    while (SkipOperator("|")) {
      SLUICE_TRY_ASSIGN(Filter filter, ParseFilter(nullptr));
      filters.push_back(std::move(filter));
    }
    return filters;
  }

  // Behind the "is". One argument may stand there without parentheses: x is divisibleby 3.
  Result<Test> ParseTest(ExprPtr input) {
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

  bool AtBareArgument() const {
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

  void NoteUnknown(const Token& token, std::string_view what) {
    constexpr size_t kEnough = 16;
    if (result_->unknown_names.size() >= kEnough) return;
    result_->unknown_names.push_back(
        fmt::format("{}: no {} named '{}'", Place(token.offset), what, token.text.substr(0, 40)));
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  const Limits& limits_;
  Template* result_;
  int depth_ = 0;
  int operators_ = 0;       // in this tag
  int loops_ = 0;           // around this place, within the macro
  Macro* macro_ = nullptr;  // around this place
};

}  // namespace

Result<Template> Parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.template_bytes) {
    return Fail(ErrorCode::kResourceExhausted, "the template has {}, more than {}", FormatBytes(text.size()),
                FormatBytes(limits.template_bytes));
  }
  Template result;
  result.source = NormalizeSource(text);
  SLUICE_TRY_ASSIGN(std::vector<Token> tokens, Lex(result.source));
  SLUICE_TRY(Parser(result.source, std::move(tokens), limits, &result).Run());
  return result;
}

}  // namespace sluice::chat::jinja
