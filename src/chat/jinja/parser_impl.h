// The parser's class, shared by parser_statements.cc and parser_expressions.cc. Internal to the parser: see
// parser.h.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/lexer.h"
#include "chat/jinja/limits.h"
#include "chat/jinja/parser.h"

namespace sluice::chat::jinja {

// Recursive descent over the tokens of one template; made, run once and thrown away.
class Parser {
 public:
  Parser(std::string_view source, std::vector<Token> tokens, const Limits& limits, Template* result)
      : source_(source), tokens_(std::move(tokens)), limits_(limits), result_(result) {}

  // Fills the template's body.
  Status Run();

 private:
  using Kind = Token::Kind;
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

  // --- Statements (parser_statements.cc) ---

  Result<Block> ParseBlock(std::initializer_list<std::string_view> ends);
  Result<Block> ParseBody(std::string_view end);
  Result<Stmt::Node> ParseStatement();
  Result<Stmt::Node> ParseIf();
  Result<Stmt::Node> ParseFor();
  Result<Stmt::Node> ParseSet();
  Result<Stmt::Node> ParseFilterBlock();
  Result<Stmt::Node> ParseWith();
  Result<Stmt::Node> ParseMacro();
  Result<Stmt::Node> ParseCallBlock();
  Result<Macro> ParseMacroBody(std::string name, std::vector<Macro::Parameter> parameters,
                               std::string_view end);
  Result<std::vector<Macro::Parameter>> ParseParameters();
  Result<Target> ParseTarget(bool allow_attribute);

  // --- Expressions (parser_expressions.cc) ---

  static ExprPtr Make(size_t offset, Expr::Node node);
  Status CountOperator();
  Result<ExprPtr> ParseTuple(bool with_conditional = true);
  Result<ExprPtr> ParseExpression(bool with_conditional = true);
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  bool SkipComparison(Comparison::Op* op);
  Result<ExprPtr> ParseComparison();
  Result<ExprPtr> ParseSum();
  Result<ExprPtr> ParseConcat();
  Result<ExprPtr> ParseProduct();
  Result<ExprPtr> ParsePower();
  Result<ExprPtr> ParseUnary(bool with_filters = true);
  Result<ExprPtr> ParsePrimary();
  Expr::Node NameOrConstant(std::string_view name);
  Result<Value> ParseNumber(const Token& token);
  Result<ExprPtr> ParseParenthesis();
  Result<ExprPtr> ParseListDisplay();
  Result<ExprPtr> ParseDictDisplay();
  Result<ExprPtr> ParsePostfix(ExprPtr value);
  Result<ExprPtr> ParseCall(ExprPtr callee);
  Result<ExprPtr> ParseSubscript(ExprPtr object);
  Result<CallArguments> ParseCallArguments();
  Result<ExprPtr> ParseFiltersAndTests(ExprPtr value);
  Result<Filter> ParseFilter(ExprPtr input);
  Result<std::vector<Filter>> ParseFilterNames();
  Result<Test> ParseTest(ExprPtr input);
  bool AtBareArgument() const;
  void NoteUnknown(const Token& token, std::string_view what);

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

}  // namespace sluice::chat::jinja
