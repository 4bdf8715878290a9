#include "chat/jinja/lexer.h"

#include <algorithm>

#include "chat/jinja/text.h"

namespace sluice::chat::jinja {
namespace {

using Kind = Token::Kind;

constexpr size_t kMaxName = 200;

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) SLUICE_TRY(LexData());
    Add(Kind::kEnd, source_.size(), source_.size());
    return std::move(tokens_);
  }

 private:
  Error Broken(size_t offset, std::string_view what) const {
    return Fail(ErrorCode::kUnsupported, "template {}: {}", DescribePlace(source_, offset), what);
  }
  bool At(std::string_view text) const { return source_.substr(at_, text.size()) == text; }
  void Add(Kind kind, size_t begin, size_t end) {
    tokens_.push_back({kind, static_cast<uint32_t>(begin), source_.substr(begin, end - begin)});
  }
  void SkipBlanks() {
    while (at_ < source_.size() && IsBlank(source_[at_])) ++at_;
  }

  // The next '{' that opens a tag, from at_ on.
  size_t FindTag() const {
    for (size_t i = source_.find('{', at_); i < source_.size(); i = source_.find('{', i + 1)) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return source_.size();
  }

  // Text up to the next tag, and that tag.
  Status LexData() {
    const size_t begin = at_;
    const size_t tag = FindTag();
    size_t end = tag;
    const char kind = tag < source_.size() ? source_[tag + 1] : '\0';
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (kind != '\0' && sign == '-') {
      while (end > begin && IsBlank(source_[end - 1])) --end;
    } else if (kind == '%' || kind == '#') {
      if (sign != '+') end = StripLineStart(begin, end);
    }
    if (end > begin) Add(Kind::kData, begin, end);
    if (kind == '\0') {
      at_ = source_.size();
      return {};
    }
    at_ = tag + 2;
    if (kind == '#') return SkipComment(tag);
    const bool has_sign = sign == '-' || (sign == '+' && kind == '%');
    if (has_sign) ++at_;
    if (kind == '%' && AtRaw()) return LexRaw(tag);
    Add(kind == '{' ? Kind::kOutputBegin : Kind::kBlockBegin, tag, at_);
    return LexTag(tag, kind == '{');
  }

  // lstrip_blocks: without the blanks that stand alone between the line's start and the tag at `end`.
  size_t StripLineStart(size_t begin, size_t end) const {
    size_t start = end;
    while (start > begin && source_[start - 1] != '\n' && IsBlank(source_[start - 1])) --start;
    const bool at_line_start = start == 0 || source_[start - 1] == '\n';
    return at_line_start ? start : end;
  }

  // After the closing bracket of a block or comment: "-" eats all blanks, otherwise one newline goes
  // (trim_blocks).
  void TrimAfter(char sign) {
    if (sign == '-') {
      SkipBlanks();
    } else if (sign != '+' && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
    }
  }

  Status SkipComment(size_t tag) {
    const size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) return Broken(tag, "a comment is not closed");
    at_ = close + 2;
    TrimAfter(close > tag + 2 ? source_[close - 1] : '\0');
    return {};
  }

  // Is this the inside of {% raw %}? Then at_ moves behind the word.
  bool AtRaw() {
    const size_t before = at_;
    SkipBlanks();
    if (At("raw")) {
      at_ += 3;
      if (at_ >= source_.size() || !IsNameChar(source_[at_])) return true;
    }
    at_ = before;
    return false;
  }

  Status LexRaw(size_t tag) {
    SkipBlanks();
    const bool strip = At("-%}");
    if (!strip && !At("%}")) return Broken(at_, "expected %} after raw");
    at_ += strip ? 3 : 2;
    if (strip) SkipBlanks();
    const size_t begin = at_;
    for (size_t open = source_.find("{%", at_); open < source_.size(); open = source_.find("{%", open + 2)) {
      at_ = open + 2;
      const char sign = at_ < source_.size() ? source_[at_] : '\0';
      if (sign == '-' || sign == '+') ++at_;
      SkipBlanks();
      if (!At("endraw")) continue;
      at_ += 6;
      SkipBlanks();
      const char close = at_ < source_.size() ? source_[at_] : '\0';
      if (close == '-' || close == '+') ++at_;
      if (!At("%}")) continue;
      at_ += 2;
      size_t end = open;
      if (sign == '-') {
        while (end > begin && IsBlank(source_[end - 1])) --end;
      } else if (sign != '+') {
        end = StripLineStart(begin, end);
      }
      if (end > begin) Add(Kind::kData, begin, end);
      TrimAfter(close);
      return {};
    }
    return Broken(tag, "a raw block is not closed");
  }

  // The inside of {{ }} or {% %} up to its end.
  Status LexTag(size_t tag, bool output) {
    const std::string_view close = output ? "}}" : "%}";
    size_t open_brackets = 0;
    for (;;) {
      SkipBlanks();
      if (at_ >= source_.size()) return Broken(tag, output ? "{{ is not closed" : "{% is not closed");
      if (open_brackets == 0) {
        const char sign = source_[at_];
        const bool has_sign =
            (sign == '-' || (sign == '+' && !output)) && source_.substr(at_ + 1, 2) == close;
        if (has_sign || At(close)) {
          const size_t begin = at_;
          at_ += has_sign ? 3 : 2;
          Add(output ? Kind::kOutputEnd : Kind::kBlockEnd, begin, at_);
          if (has_sign && sign == '-') SkipBlanks();
          if (!output && !has_sign) TrimAfter('\0');
          return {};
        }
      }
      SLUICE_TRY(LexToken());
      const Token& token = tokens_.back();
      if (token.kind != Kind::kOperator) continue;
      const char c = token.text[0];
      if (c == '(' || c == '[' || c == '{') ++open_brackets;
      if (c == ')' || c == ']' || c == '}') {
        if (open_brackets == 0) return Broken(token.offset, "a closing bracket without its opening one");
        --open_brackets;
      }
    }
  }

  Status LexToken() {
    const size_t begin = at_;
    const char c = source_[at_];
    if (IsNameStart(c)) {
      while (at_ < source_.size() && IsNameChar(source_[at_])) ++at_;
      // Looking a variable up takes time in proportion to its name.
      if (at_ - begin > kMaxName) return Broken(begin, "a name that is too long");
      Add(Kind::kName, begin, at_);
      return {};
    }
    if (IsDigit(c)) return LexNumber();
    if (c == '"' || c == '\'') {
      for (++at_; at_ < source_.size() && source_[at_] != c; ++at_) {
        if (source_[at_] == '\\') ++at_;
      }
      if (at_ >= source_.size()) return Broken(begin, "a string is not closed");
      ++at_;
      Add(Kind::kString, begin, at_);
      return {};
    }
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    const bool two =
        std::any_of(std::begin(kTwo), std::end(kTwo), [&](std::string_view op) { return At(op); });
    if (!two && std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) {
      return Broken(
          begin, fmt::format("unexpected character '{}'", source_.substr(begin, CharLength(source_, begin))));
    }
    at_ += two ? 2 : 1;
    Add(Kind::kOperator, begin, at_);
    return {};
  }

  // Integers (also 0x, 0o, 0b, with underscores) and floats. A float has digits on both sides of its point.
  Status LexNumber() {
    const size_t begin = at_;
    const auto digits = [this](auto accept) {
      while (at_ < source_.size() && (accept(source_[at_]) || source_[at_] == '_')) ++at_;
    };
    const char base =
        at_ + 1 < source_.size() && source_[at_] == '0' ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
    if (base == 'x' || base == 'o' || base == 'b') {
      at_ += 2;
      digits([](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); });
      Add(Kind::kInteger, begin, at_);
      return {};
    }
    digits(IsDigit);
    bool is_float = false;
    const auto digit_at = [this](size_t i) { return i < source_.size() && IsDigit(source_[i]); };
    if (At(".") && digit_at(at_ + 1)) {
      is_float = true;
      ++at_;
      digits(IsDigit);
    }
    if (At("e") || At("E")) {
      const bool sign = at_ + 1 < source_.size() && (source_[at_ + 1] == '+' || source_[at_ + 1] == '-');
      if (digit_at(at_ + 1 + (sign ? 1 : 0))) {
        is_float = true;
        at_ += sign ? 2 : 1;
        digits(IsDigit);
      }
    }
    Add(is_float ? Kind::kFloat : Kind::kInteger, begin, at_);
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

// Up to `max_digits` digits of `base` at text[*at]; moves *at behind them. -1 if there are none.
int64_t ReadDigits(std::string_view text, size_t* at, int base, int max_digits) {
  int64_t value = -1;
  for (int i = 0; i < max_digits && *at < text.size(); ++i, ++*at) {
    const char c = text[*at];
    const int digit = IsDigit(c)                               ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                               : base;
    if (digit >= base) break;
    value = std::max<int64_t>(value, 0) * base + digit;
  }
  return value;
}

}  // namespace

std::string NormalizeSource(std::string_view text) {
  std::string source;
  source.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      source.push_back(text[i]);
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      source.push_back('\n');
    }
  }
  if (!source.empty() && source.back() == '\n') source.pop_back();
  return source;
}

std::string DescribePlace(std::string_view source, size_t offset) {
  const std::string_view before = source.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, CountChars(before.substr(start)) + 1);
}

Result<std::vector<Token>> Lex(std::string_view source) { return Lexer(source).Run(); }

std::string Unescape(std::string_view quoted) {
  const std::string_view text = quoted.substr(1, quoted.size() - 2);
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i++];
    if (c != '\\' || i == text.size()) {
      result.push_back(c);
      continue;
    }
    const char escape = text[i++];
    static constexpr std::string_view kNames = "nrtabfv\\'\"";
    static constexpr std::string_view kValues = "\n\r\t\a\b\f\v\\'\"";
    const size_t known = kNames.find(escape);
    if (known != std::string_view::npos) {
      result.push_back(kValues[known]);
      continue;
    }
    if (escape == '\n') continue;  // a line that goes on
    int64_t code = -1;
    const bool octal = escape >= '0' && escape <= '7';
    size_t end = octal ? i - 1 : i;
    if (escape == 'x') code = ReadDigits(text, &end, 16, 2);
    if (escape == 'u') code = ReadDigits(text, &end, 16, 4);
    if (escape == 'U') code = ReadDigits(text, &end, 16, 8);
    if (octal) code = ReadDigits(text, &end, 8, 3);
    if (code >= 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) {
      AppendUtf8(static_cast<char32_t>(code), &result);
      i = end;
    } else {
      result.append({'\\', escape});  // not an escape: both characters stay
    }
  }
  return result;
}

}  // namespace sluice::chat::jinja
