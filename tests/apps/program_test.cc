// sluice list and sluice chat from outside: files, pipes, a terminal, and what is shown there.
#include "apps/program.h"

#include <gmock/gmock.h>

#include "gguf/builder.h"

namespace sluice::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::AtTerminal;
using testing::RunProgram;

TEST(ProgramTest, WithoutArgumentsShowsHowToBegin) {
  const TempFolder home;
  const auto ran = RunProgram(home, {});
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* command : {"sluice list", "sluice run", "sluice chat"}) EXPECT_THAT(ran.out, HasSubstr(command));
}

TEST(ProgramTest, MistakesAreExplained) {
  const TempFolder home;
  const auto flag = RunProgram(home, {"run", "m.gguf", "hello", "--tmep", "0"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.err, HasSubstr("Did you mean --temp"));
  EXPECT_THAT(flag.out, IsEmpty());
  const auto command = RunProgram(home, {"lsit"});
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_THAT(command.err, HasSubstr("Did you mean list?"));
  EXPECT_EQ(RunProgram(home, {"--help"}).exit_code, 0);
  EXPECT_THAT(RunProgram(home, {"--version"}).out, HasSubstr("sluice "));
}

TEST(ProgramTest, ListsModels) {
  const TempFolder home;
  EXPECT_THAT(RunProgram(home, {"list"}).err, HasSubstr("there are no models"));
  gguf::testing::ModelBuilder model;
  model.metadata().SetU32("llama.context_length", 2048);
  model.AddRandom("token_embd.weight", formats::DType::kQ8_0, {64, 32});
  const gguf::testing::Bytes bytes = model.Build();
  home.Write(".lmstudio/models/me/repo/tiny.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  home.Write(".lmstudio/models/me/repo/broken.gguf", std::string_view("GGUF\3\0\0\0rub", 11));

  const auto table = RunProgram(home, {"list"});
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(table.out, HasSubstr("tiny"));
  EXPECT_THAT(table.out, HasSubstr("LM Studio"));
  EXPECT_THAT(table.out, Not(HasSubstr("broken")));
  EXPECT_THAT(table.err, HasSubstr("broken.gguf"));
  const auto json = RunProgram(home, {"list", "--json"});
  EXPECT_THAT(json.out, HasSubstr("\"context_length\": 2048"));
  EXPECT_EQ(RunProgram(home, {"inspect", "tin"}).exit_code, 0);  // a name works where a path does
}

class ChatTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model_)) GTEST_SKIP() << "no model: " << model_;
  }
  // The flags of a short and repeatable chat.
  std::vector<std::string> Chat(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"chat", model_, "--temp", "0", "-n", "8", "-t", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const std::string model_ = SLUICE_REFERENCE_DIR "/stories260K/stories260K-f32.gguf";
  TempFolder home_;
};

TEST_F(ChatTest, ThroughAPipe) {
  const auto ran = RunProgram(home_, Chat(), "Once upon\\\na time\n//slash\n/save tale\n");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(std::ranges::count(ran.out, '\n') >= 2, true) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("tok/s"));
  const std::string saved = home_ / ".local/share/sluice/conversations/tale.json";
  ASSERT_TRUE(std::filesystem::exists(saved));
  std::ifstream file(saved);
  const std::string json(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(json, HasSubstr("Once upon\\na time"));
  EXPECT_THAT(json, HasSubstr("\"/slash\""));
}

TEST_F(ChatTest, ContinuesWhereItWas) {
  ASSERT_EQ(RunProgram(home_, Chat(), "One day\n").exit_code, 0);
  const auto undone = RunProgram(home_, Chat({"--continue"}), "/undo\n");
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  EXPECT_THAT(undone.err, HasSubstr("taken back: One day"));
  const auto unknown = RunProgram(home_, Chat({"--continue", "lsat"}), "");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("Did you mean last?"));
}

TEST_F(ChatTest, NothingIsKeptWithNoSave) {
  ASSERT_EQ(RunProgram(home_, Chat({"--no-save"}), "One day\n").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(home_ / ".local"));
}

TEST_F(ChatTest, RetryGivesTheSameAnswerAgain) {
  const auto ran = RunProgram(home_, Chat({"--quiet"}), "One day\n/retry\n");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const size_t half = ran.out.size() / 2;
  EXPECT_GT(half, 2u);
  EXPECT_EQ(ran.out.substr(0, half), ran.out.substr(half));
}

TEST_F(ChatTest, UnknownCommandsSuggestTheNearest) {
  const auto ran = RunProgram(home_, Chat(), "/claer\n");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("Did you mean /clear?"));
}

TEST_F(ChatTest, AFullContextIsExplained) {
  const std::string words(400, 'x');
  const auto stopped = RunProgram(home_, Chat({"-c", "32", "--overflow", "stop"}), words + "\n");
  EXPECT_EQ(stopped.exit_code, 3);
  EXPECT_THAT(stopped.err, HasSubstr("the context holds 32"));
  EXPECT_THAT(stopped.err, HasSubstr("/clear"));
  // Otherwise a chat goes on, and says so.
  const auto goes_on = RunProgram(home_, Chat({"-c", "32"}), words + "\n");
  EXPECT_EQ(goes_on.exit_code, 0);
  EXPECT_THAT(goes_on.err, HasSubstr("the context of 32 tokens is full"));
}

TEST_F(ChatTest, KvTypesSideBySide) {
  const std::string text = home_.Write(
      "text.txt", "The capital of France is Paris. The capital of Norway is Oslo. They are far apart.");
  const auto sweep = RunProgram(home_, {"eval", model_, "--ppl", text, "--kv-sweep"});
  EXPECT_EQ(sweep.exit_code, 0) << sweep.err;
  EXPECT_THAT(sweep.out, HasSubstr("f16    f16"));
  EXPECT_THAT(sweep.out, HasSubstr("q4_0   q4_0   yes"));
  EXPECT_THAT(sweep.out, HasSubstr("q4_0   q4_0   no"));
  const auto run =
      RunProgram(home_, {"run", model_, "hi", "-n", "1", "--json", "-ctk", "q8_0", "-ctv", "q4_0"});
  EXPECT_THAT(run.out, HasSubstr("\"kv_v_type\": \"q4_0\""));
  const auto unknown = RunProgram(home_, {"run", model_, "hi", "--kv", "q3"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("f32, f16, q8_0, q5_0, q4_0"));
}

TEST_F(ChatTest, AtATerminal) {
  AtTerminal chat(home_.path(), Chat());
  ASSERT_TRUE(chat.WaitFor("/help shows the commands"));
  ASSERT_TRUE(chat.WaitFor("> "));
  chat.Type("Once upno\x17upon a time\r");
  ASSERT_TRUE(chat.WaitFor("tok/s"));
  ASSERT_TRUE(chat.WaitFor("> "));
  chat.Type("\033[A");  // the line before
  ASSERT_TRUE(chat.WaitFor("> Once upon a time"));
  chat.Type("\x03");  // empties it
  chat.Type("\x04");
  EXPECT_EQ(chat.Wait(), 0) << chat.screen();
}

TEST_F(ChatTest, CtrlCStopsTheAnswerAndNotTheProgram) {
  AtTerminal chat(home_.path(), {"chat", model_, "--temp", "0", "-t", "1", "-n", "100000", "-c", "4096", "--ignore-eos"});
  ASSERT_TRUE(chat.WaitFor("> "));
  chat.Type("Once\r");
  ASSERT_TRUE(chat.WaitFor("\r\n"));
  ASSERT_TRUE(chat.WaitFor("a"));  // it is answering
  chat.Type("\x03");
  ASSERT_TRUE(chat.WaitFor("stopped")) << chat.screen();
  ASSERT_TRUE(chat.WaitFor("> "));
  chat.Type("/exit\r");
  EXPECT_EQ(chat.Wait(), 0) << chat.screen();
}

}  // namespace
}  // namespace sluice::app
