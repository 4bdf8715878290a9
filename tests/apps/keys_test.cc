#include "sluice/keys.h"

#include <gmock/gmock.h>

#include <vector>

namespace sluice::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Key::Kind;

std::vector<Key> Decode(std::string_view bytes) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  for (const char byte : bytes) {
    if (auto key = decoder.Push(byte)) keys.push_back(*std::move(key));
  }
  return keys;
}

Key Text(std::string text) { return {Kind::kText, std::move(text)}; }
Key Press(Kind kind) { return {kind, {}}; }

TEST(KeysTest, CharactersComeWhole) {
  EXPECT_THAT(Decode("aä日👍"), ElementsAre(Text("a"), Text("ä"), Text("日"), Text("👍")));
}

TEST(KeysTest, BrokenCharactersAreDropped) {
  EXPECT_THAT(Decode("\x80\xff\xc3" "a"), ElementsAre(Text("a")));
  EXPECT_THAT(Decode("\xe6\x97\r"), ElementsAre(Press(Kind::kEnter)));
}

TEST(KeysTest, ControlKeys) {
  EXPECT_THAT(Decode("\x01\x05\x0b\x15\x17\x03\x04\x7f\r"),
              ElementsAre(Press(Kind::kHome), Press(Kind::kEnd), Press(Kind::kKillToEnd), Press(Kind::kKillToStart),
                          Press(Kind::kKillWordLeft), Press(Kind::kInterrupt), Press(Kind::kEndOfInput),
                          Press(Kind::kBackspace), Press(Kind::kEnter)));
}

TEST(KeysTest, CursorKeysOfAllTerminals) {
  EXPECT_THAT(Decode("\033[A\033OA\033[D\033[1;5D\033[1;3C"),
              ElementsAre(Press(Kind::kUp), Press(Kind::kUp), Press(Kind::kLeft), Press(Kind::kWordLeft),
                          Press(Kind::kWordRight)));
  EXPECT_THAT(Decode("\033[H\033[1~\033[7~\033OF\033[4~\033[3~"),
              ElementsAre(Press(Kind::kHome), Press(Kind::kHome), Press(Kind::kHome), Press(Kind::kEnd),
                          Press(Kind::kEnd), Press(Kind::kDelete)));
  EXPECT_THAT(Decode("\033b\033f\033d\033\r"), ElementsAre(Press(Kind::kWordLeft), Press(Kind::kWordRight),
                                                         Press(Kind::kKillWordRight), Press(Kind::kNewLine)));
}

TEST(KeysTest, UnknownSequencesAreSwallowedWhole) {
  EXPECT_THAT(Decode("\033[38;5;1mx"), ElementsAre(Text("x")));
  EXPECT_THAT(Decode("\033[" + std::string(10'000, '1') + "Zx"), ElementsAre(Text("x")));
  EXPECT_THAT(Decode("\033[15~\033zx"), ElementsAre(Text("x")));
}

TEST(KeysTest, PasteComesInOnePieceWithItsLineEnds) {
  EXPECT_THAT(Decode("\033[200~a\rb\r\nc\nd\003\033[201~e"),
              ElementsAre(Key{Kind::kPaste, "a\nb\nc\nd\003"}, Text("e")));
  EXPECT_THAT(Decode("\033[200~never ended"), IsEmpty());
}

TEST(KeysTest, EndlessPasteIsBounded) {
  std::string bytes = "\033[200~" + std::string((4 << 20) + 1000, 'x') + "\033[201~";
  const auto keys = Decode(bytes);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_LE(keys[0].text.size(), size_t{4} << 20);
}

}  // namespace
}  // namespace sluice::app
