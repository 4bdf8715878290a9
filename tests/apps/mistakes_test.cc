#include "sluice/mistakes.h"

#include <gmock/gmock.h>

namespace sluice::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// What a small program says about these arguments.
std::string Explain(std::vector<std::string> arguments) {
  CLI::App app("test", "sluice");
  app.require_subcommand(1);
  app.add_flag("--version");
  CLI::App* run = app.add_subcommand("run");
  std::string model, prompt;
  double temperature = 0;
  run->add_option("-m,--model,model", model)->required();
  run->add_option("-p,--prompt,prompt", prompt);
  run->add_option("--temp", temperature);
  app.add_subcommand("chat");
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    return ExplainMistake(app);
  }
  return "parsed";
}

TEST(MistakesTest, UnknownFlags) {
  EXPECT_THAT(Explain({"run", "m", "hello", "--tmep", "0.5"}), HasSubstr("--tmep is no flag of `sluice run`. Did you mean --temp?"));
  EXPECT_THAT(Explain({"run", "--modle=m"}), HasSubstr("Did you mean --model?"));
  EXPECT_THAT(Explain({"run", "m", "--xyzzy"}), HasSubstr("--xyzzy is no flag"));
  EXPECT_THAT(Explain({"--versoin"}), HasSubstr("Did you mean --version?"));
}

TEST(MistakesTest, UnknownCommands) {
  EXPECT_THAT(Explain({"caht", "m"}), HasSubstr("no command 'caht'. Did you mean chat?"));
  EXPECT_THAT(Explain({"m.gguf"}), HasSubstr("sluice run m.gguf"));
}

TEST(MistakesTest, OtherErrorsAreLeftToTheParser) {
  EXPECT_THAT(Explain({"run"}), IsEmpty());
  EXPECT_THAT(Explain({"run", "m", "--temp", "warm"}), IsEmpty());
  EXPECT_EQ(Explain({"run", "m", "hello"}), "parsed");
}

}  // namespace
}  // namespace sluice::app
