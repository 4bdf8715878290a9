// P57: commands that write model files, killed at any moment (kill -9): what bears the final name is whole,
// and the next run finds no trace of the one before.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "gguf/reader.h"
#include "whole/running.h"

namespace sluice::whole {
namespace {

constexpr int kKills = 50;

class KilledTest : public ProgramTest {
 protected:
  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(home_.path())) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(".std")) names.insert(name);
    }
    return names;
  }
  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  // Runs the command to its end once, then kills it at random moments within the time that took. `output` is
  // the file that makes all that is written a model.
  void KillAgainAndAgain(const Arguments& arguments, const std::string& output) {
    const std::set<std::string> before = Files();
    const auto start = std::chrono::steady_clock::now();
    const Ran ran = Run(arguments);
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const std::set<std::string> after = Files();
    const std::string expected = Contents(home_ / output);

    std::mt19937 random(7);
    for (int i = 0; i < kKills; ++i) {
      for (const std::string& name : Files()) {
        if (!before.contains(name)) std::filesystem::remove(home_ / name);
      }
      {
        Running run(home_.path(), arguments);
        ::usleep(static_cast<useconds_t>(whole.count() * 1.1e6 * (random() % 1000) / 1000));
      }  // killed here, unless it is done
      if (std::filesystem::exists(home_ / output)) {
        EXPECT_EQ(Contents(home_ / output), expected);
        EXPECT_TRUE(gguf::GgufFile::Open(home_ / output)) << "killed " << i;
      }
    }
    // What a kill may leave, at worst, is gone when the command has run once more.
    for (const std::string& name : after) {
      if (!before.contains(name)) std::filesystem::remove(home_ / name);
    }
    EXPECT_EQ(Run(arguments).exit_code, 0);
    EXPECT_EQ(Files(), after);
  }
};

TEST_F(KilledTest, Quantize) {
  Save(TinyLlama());
  KillAgainAndAgain({"quantize", "model.gguf", "out.gguf", "Q4_0"}, "out.gguf");
}

// A new file in place of an old one: one of the two is there, whole.
TEST_F(KilledTest, PackOverAnOldFile) {
  Save(TinyLlama());
  ASSERT_EQ(Run({"pack", "model.gguf", "out.gguf", "--set", "general.name=str:old"}).exit_code, 0);
  const std::string old = Contents(home_ / "out.gguf");
  ASSERT_EQ(Run({"pack", "model.gguf", "new.gguf"}).exit_code, 0);
  const std::string fresh = Contents(home_ / "new.gguf");
  const std::set<std::string> files = Files();
  std::mt19937 random(7);
  for (int i = 0; i < kKills; ++i) {
    {
      Running run(home_.path(), {"pack", "model.gguf", "out.gguf"});
      ::usleep(static_cast<useconds_t>(random() % 40'000));
    }
    const std::string found = Contents(home_ / "out.gguf");
    EXPECT_TRUE(found == old || found == fresh);
  }
  EXPECT_EQ(Run({"pack", "model.gguf", "out.gguf"}).exit_code, 0);
  EXPECT_EQ(Files(), files);
}

TEST_F(KilledTest, Split) {
  Save(TinyLlama());
  ASSERT_EQ(Run({"pack", "model.gguf", "packed.gguf"}).exit_code, 0);
  KillAgainAndAgain({"split", "packed.gguf", "out", "--max-size", "70K"}, "out-00001-of-00003.gguf");
}

TEST_F(KilledTest, Convert) {
  const std::string folder = SLUICE_SOURCE_DIR "/models/sluice-demo-hf";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no folder: " << folder;
  KillAgainAndAgain({"convert", folder, "-o", "out.gguf"}, "out.gguf");
}

}  // namespace
}  // namespace sluice::whole
