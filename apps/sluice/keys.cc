#include "keys.h"

#include <string_view>
#include <utility>

namespace sluice::app {

namespace {

using Kind = Key::Kind;

constexpr unsigned char kEscapeByte = 0x1b;
constexpr std::string_view kPasteEnd = "\033[201~";
constexpr size_t kMaxParameters = 32;
constexpr size_t kMaxPaste = 4 << 20;

constexpr unsigned char Ctrl(char letter) { return static_cast<unsigned char>(letter & 0x1f); }

std::optional<Key> Press(Kind kind) { return Key{kind, {}}; }

// Bytes of the character that begins with this one; 0 when none does.
size_t CharacterSize(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

}  // namespace

std::optional<Key> KeyDecoder::Push(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  switch (state_) {
    case State::kGround: return Ground(value);
    case State::kEscape: return Escape(value);
    case State::kSequence: return Sequence(value);
    case State::kPaste: return Paste(value);
  }
  return std::nullopt;
}

std::optional<Key> KeyDecoder::Ground(unsigned char byte) {
  if (!character_.empty() && (byte & 0xc0) != 0x80) character_.clear();  // broken off: forget it
  if (byte >= 0x80) {
    if (character_.empty() && CharacterSize(byte) == 0) return std::nullopt;
    character_ += static_cast<char>(byte);
    if (character_.size() < CharacterSize(static_cast<unsigned char>(character_[0]))) return std::nullopt;
    return Key{Kind::kText, std::exchange(character_, {})};
  }
  switch (byte) {
    case kEscapeByte: state_ = State::kEscape; return std::nullopt;
    case '\r':
    case '\n': return Press(Kind::kEnter);
    case 0x7f:
    case Ctrl('H'): return Press(Kind::kBackspace);
    case Ctrl('A'): return Press(Kind::kHome);
    case Ctrl('B'): return Press(Kind::kLeft);
    case Ctrl('C'): return Press(Kind::kInterrupt);
    case Ctrl('D'): return Press(Kind::kEndOfInput);
    case Ctrl('E'): return Press(Kind::kEnd);
    case Ctrl('F'): return Press(Kind::kRight);
    case Ctrl('K'): return Press(Kind::kKillToEnd);
    case Ctrl('L'): return Press(Kind::kClearScreen);
    case Ctrl('N'): return Press(Kind::kDown);
    case Ctrl('P'): return Press(Kind::kUp);
    case Ctrl('U'): return Press(Kind::kKillToStart);
    case Ctrl('W'): return Press(Kind::kKillWordLeft);
    case Ctrl('Y'): return Press(Kind::kYank);
    default: break;
  }
  if (byte < 0x20) return std::nullopt;
  return Key{Kind::kText, std::string(1, static_cast<char>(byte))};
}

std::optional<Key> KeyDecoder::Escape(unsigned char byte) {
  state_ = State::kGround;
  switch (byte) {
    case '[':
    case 'O':
      state_ = State::kSequence;
      parameters_.clear();
      return std::nullopt;
    case kEscapeByte: state_ = State::kEscape; return std::nullopt;
    case 'b': return Press(Kind::kWordLeft);
    case 'f': return Press(Kind::kWordRight);
    case 'd': return Press(Kind::kKillWordRight);
    case '\r':
    case '\n': return Press(Kind::kNewLine);
    case 0x7f: return Press(Kind::kKillWordLeft);
    default: return std::nullopt;
  }
}

std::optional<Key> KeyDecoder::Sequence(unsigned char byte) {
  if (byte >= 0x20 && byte < 0x40) {  // parameters and intermediate bytes
    if (parameters_.size() < kMaxParameters) parameters_ += static_cast<char>(byte);
    return std::nullopt;
  }
  state_ = State::kGround;
  if (byte < 0x20) return Ground(byte);  // broken off
  // "1;5C": the number behind the semicolon says which of Shift, Alt and Ctrl were held.
  const bool modified = parameters_.ends_with(";3") || parameters_.ends_with(";5");
  switch (byte) {
    case 'A': return Press(Kind::kUp);
    case 'B': return Press(Kind::kDown);
    case 'C': return Press(modified ? Kind::kWordRight : Kind::kRight);
    case 'D': return Press(modified ? Kind::kWordLeft : Kind::kLeft);
    case 'H': return Press(Kind::kHome);
    case 'F': return Press(Kind::kEnd);
    case 'M': return Press(Kind::kEnter);  // of the number block
    case '~': break;
    default: return std::nullopt;
  }
  const std::string_view number = std::string_view(parameters_).substr(0, parameters_.find(';'));
  if (number == "1" || number == "7") return Press(Kind::kHome);
  if (number == "4" || number == "8") return Press(Kind::kEnd);
  if (number == "3") return Press(Kind::kDelete);
  if (number == "200") {
    paste_.clear();
    state_ = State::kPaste;
  }
  return std::nullopt;
}

std::optional<Key> KeyDecoder::Paste(unsigned char byte) {
  // Beyond the bound only the end is still looked for.
  if (paste_.size() >= kMaxPaste) paste_.erase(kMaxPaste - kPasteEnd.size(), 1);
  paste_ += static_cast<char>(byte);
  if (byte != kPasteEnd.back() || !paste_.ends_with(kPasteEnd)) return std::nullopt;
  state_ = State::kGround;
  paste_.resize(paste_.size() - kPasteEnd.size());
  // Terminals send Enter for the line ends of what is pasted.
  std::string text;
  for (size_t i = 0; i < paste_.size(); ++i) {
    if (paste_[i] != '\r') {
      text += paste_[i];
    } else if (i + 1 == paste_.size() || paste_[i + 1] != '\n') {
      text += '\n';
    }
  }
  paste_.clear();
  return Key{Kind::kPaste, std::move(text)};
}

}  // namespace sluice::app
