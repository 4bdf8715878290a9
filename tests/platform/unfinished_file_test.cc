// Field case P57: whatever ends a writer, what it began does not stay.
#include "platform/unfinished_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/check.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

class UnfinishedFileTest : public testing::TestWithParam<bool> {
 protected:
  Result<UnfinishedFile> Create(const std::string& name) {
    return GetParam() ? UnfinishedFile::Nameless(folder_ / name) : UnfinishedFile::Named(folder_ / name);
  }
  // One, or the test is over: the file system of the temporary folder may have none without a name.
  UnfinishedFile Made(const std::string& name) {
    auto file = Create(name);
    SLUICE_CHECK(file.has_value());
    return *std::move(file);
  }
  void SetUp() override {
    if (!Create("probe")) GTEST_SKIP() << "no files without a name here";
  }
  static void Write(const UnfinishedFile& file, std::string_view text) {
    SLUICE_CHECK(::write(file.fd(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string Read(const std::string& name) const { return *ReadWholeFile(folder_ / name, 1000); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }
  // Does this in a process of its own, which is then killed.
  void Killed(const std::function<void()>& work) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      work();
      SLUICE_CHECK(::write(ready[1], "x", 1) == 1);
      for (;;) ::pause();
    }
    char byte;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
  }

  TempFolder folder_;
};

TEST_P(UnfinishedFileTest, TakesItsPlace) {
  UnfinishedFile file = Made("f");
  EXPECT_EQ(file.nameless(), GetParam());
  Write(file, "new");
  EXPECT_EQ(FileCount(), GetParam() ? 0u : 1u);
  ASSERT_TRUE(file.Place());
  EXPECT_EQ(Read("f"), "new");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_P(UnfinishedFileTest, ReplacesWhatWasThere) {
  folder_.Write("f", "old");
  {
    const UnfinishedFile dropped = Made("f");
    Write(dropped, "dropped");
  }
  EXPECT_EQ(Read("f"), "old");
  UnfinishedFile file = Made("f");
  Write(file, "new");
  ASSERT_TRUE(file.Place());
  EXPECT_EQ(Read("f"), "new");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_P(UnfinishedFileTest, WhatAKilledWriterLeavesGoesWithTheNextOne) {
  Killed([&] {
    static UnfinishedFile file = Made("f");
    Write(file, "half");
  });
  EXPECT_EQ(FileCount(), GetParam() ? 0u : 1u);
  folder_.Write(GetParam() ? "f.partial-0" : "f.partial-1", "one more");  // that nobody has locked
  const UnfinishedFile next = *UnfinishedFile::Create(folder_ / "f");
  EXPECT_EQ(FileCount(), next.nameless() ? 0u : 1u);
}

TEST_P(UnfinishedFileTest, WhatIsStillWrittenToStays) {
  UnfinishedFile first = *UnfinishedFile::Named(folder_ / "f");
  Write(first, "first");
  {
    const UnfinishedFile second = Made("f");
    Write(second, "second");
  }
  ASSERT_TRUE(first.Place());
  EXPECT_EQ(Read("f"), "first");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_P(UnfinishedFileTest, LinksAndFoldersOfThatNameAreLeftAlone) {
  folder_.Write("precious", "precious");
  std::filesystem::create_symlink("precious", folder_ / "f.partial-0");
  std::filesystem::create_directory(folder_ / "f.partial-1");
  folder_.Write("f", "old");
  UnfinishedFile file = *UnfinishedFile::Create(folder_ / "f");
  Write(file, "new");
  ASSERT_TRUE(file.Place());
  EXPECT_EQ(Read("f"), "new");
  EXPECT_EQ(Read("precious"), "precious");
  EXPECT_EQ(FileCount(), 4u);
}

TEST(UnfinishedFileErrorsTest, AMissingFolderIsNamed) {
  const TempFolder folder;
  const auto file = UnfinishedFile::Create(folder / "absent/f");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_NE(file.error().message.find("absent/f"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(, UnfinishedFileTest, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Nameless" : "Named"; });

}  // namespace
}  // namespace sluice::platform
