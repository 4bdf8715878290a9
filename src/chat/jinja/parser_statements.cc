#include <fmt/format.h>

#include "chat/jinja/parser_impl.h"

namespace sluice::chat::jinja {

Status Parser::Run() {
  SLUICE_TRY_ASSIGN(result_->body, ParseBlock({}));
  return {};
}

// Statements up to one of the tags in `ends` (then at its name), or, if there are none, to the template's
// end.
Result<Block> Parser::ParseBlock(std::initializer_list<std::string_view> ends) {
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
Result<Block> Parser::ParseBody(std::string_view end) {
  SLUICE_TRY(EndTag());
  SLUICE_TRY_ASSIGN(Block body, ParseBlock({end}));
  Next();
  SLUICE_TRY(EndTag());
  return body;
}

Result<Stmt::Node> Parser::ParseStatement() {
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

Result<Stmt::Node> Parser::ParseIf() {
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

Result<Stmt::Node> Parser::ParseFor() {
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

Result<Stmt::Node> Parser::ParseSet() {
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

Result<Stmt::Node> Parser::ParseFilterBlock() {
  std::vector<Filter> filters;
  SLUICE_TRY_ASSIGN(Filter first, ParseFilter(nullptr));
  filters.push_back(std::move(first));
  SLUICE_TRY_ASSIGN(std::vector<Filter> more, ParseFilterNames());
  for (Filter& filter : more) filters.push_back(std::move(filter));
  SLUICE_TRY_ASSIGN(Block body, ParseBody("endfilter"));
  return Stmt::Node(FilterBlock{std::move(filters), std::move(body)});
}

Result<Stmt::Node> Parser::ParseWith() {
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

Result<Stmt::Node> Parser::ParseMacro() {
  SLUICE_TRY_ASSIGN(std::string name, ExpectName());
  SLUICE_TRY_ASSIGN(std::vector<Macro::Parameter> parameters, ParseParameters());
  SLUICE_TRY_ASSIGN(Macro macro, ParseMacroBody(std::move(name), std::move(parameters), "endmacro"));
  return Stmt::Node(std::move(macro));
}

Result<Stmt::Node> Parser::ParseCallBlock() {
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

Result<Macro> Parser::ParseMacroBody(std::string name, std::vector<Macro::Parameter> parameters,
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

Result<std::vector<Macro::Parameter>> Parser::ParseParameters() {
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

Result<Target> Parser::ParseTarget(bool allow_attribute) {
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
