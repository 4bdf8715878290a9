#include "sluice/suggest.h"

#include <gmock/gmock.h>

namespace sluice::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SuggestTest, EditDistance) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("chat", "chta"), 1u);  // a swap is one slip
  EXPECT_EQ(EditDistance("RUN", "run"), 0u);
}

TEST(SuggestTest, LongWordsAreFarFromEverything) {
  const std::string a(1000, 'a'), b(1000, 'b');
  EXPECT_GE(EditDistance(a, b), 64u);
  EXPECT_EQ(EditDistance(a, a), 0u);
}

TEST(SuggestTest, NearestFirst) {
  const std::vector<std::string> words{"--top-k", "--top-p", "--temp", "--temperature", "--threads"};
  EXPECT_THAT(Nearest("--tmep", words), ElementsAre("--temp"));
  EXPECT_THAT(Nearest("--temper", words), ElementsAre("--temp", "--temperature"));
  EXPECT_THAT(Nearest("--frobnicate", words), IsEmpty());
  EXPECT_THAT(Nearest("--top-x", words, 1), ElementsAre("--top-k"));
}

TEST(SuggestTest, Sentence) {
  EXPECT_EQ(DidYouMean("rnu", {"run", "chat"}), " Did you mean run?");
  EXPECT_EQ(DidYouMean("ab", {"ax", "ay", "az"}), " Did you mean ax, ay or az?");
  EXPECT_EQ(DidYouMean("zzz", {"run"}), "");
}

}  // namespace
}  // namespace sluice::app
