// Keys: what a terminal sends, byte by byte, as the keys that were pressed.
//
// Knows the escape sequences of the usual terminals (ECMA-48, xterm, the Linux console) and bracketed paste. Whatever
// else comes is swallowed whole.
#pragma once

#include <optional>
#include <string>

namespace sluice::app {

struct Key {
  enum class Kind {
    kText,     // one typed character
    kPaste,    // all that was pasted
    kEnter,
    kNewLine,  // Alt-Enter
    kBackspace,
    kDelete,
    kLeft,
    kRight,
    kUp,
    kDown,
    kHome,
    kEnd,
    kWordLeft,
    kWordRight,
    kKillToEnd,     // Ctrl-K
    kKillToStart,   // Ctrl-U
    kKillWordLeft,  // Ctrl-W
    kKillWordRight, // Alt-D
    kYank,          // Ctrl-Y
    kClearScreen,   // Ctrl-L
    kInterrupt,     // Ctrl-C
    kEndOfInput,    // Ctrl-D, which also deletes
  };
  Kind kind;
  std::string text;  // kText, kPaste

  bool operator==(const Key&) const = default;
};

class KeyDecoder {
 public:
  // The key that this byte completes, if it does.
  std::optional<Key> Push(char byte);

 private:
  enum class State { kGround, kEscape, kSequence, kPaste };

  std::optional<Key> Ground(unsigned char byte);
  std::optional<Key> Escape(unsigned char byte);
  std::optional<Key> Sequence(unsigned char byte);
  std::optional<Key> Paste(unsigned char byte);

  State state_ = State::kGround;
  std::string character_;   // bytes of a UTF-8 character that is not complete
  std::string parameters_;  // of the escape sequence
  std::string paste_;
};

}  // namespace sluice::app
