// Field cases P57 and P58: a file that is written is whole or not there, and is never one of its own inputs.
#include "platform/atomic_writer.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

class AtomicWriterTest : public testing::Test {
 protected:
  std::string Read(std::string_view name) const { return *ReadWholeFile(folder_ / name, 100 * kMiB); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }
  AtomicWriter Create(std::string_view name) {
    auto writer = AtomicWriter::Create(folder_ / name);
    EXPECT_TRUE(writer) << writer.error().message;
    return *std::move(writer);
  }
  TempFolder folder_;
};

TEST_F(AtomicWriterTest, TheFileAppearsWithCommit) {
  AtomicWriter writer = Create("f");
  ASSERT_TRUE(writer.Write("hello "));
  ASSERT_TRUE(writer.Write("world"));
  EXPECT_EQ(writer.position(), 11u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "f"));
  ASSERT_TRUE(writer.Commit());
  EXPECT_EQ(Read("f"), "hello world");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicWriterTest, GivenUpLeavesTheOldFileAndNothingElse) {
  folder_.Write("f", "old");
  {
    AtomicWriter writer = Create("f");
    ASSERT_TRUE(writer.Write("new"));
  }
  EXPECT_EQ(Read("f"), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicWriterTest, LargeAndSmallPiecesKeepTheirOrder) {
  std::string expected;
  AtomicWriter writer = Create("f");
  for (int i = 0; i < 40; ++i) {
    const std::string piece(i % 3 == 0 ? 3 * kMiB + 7 : size_t{100} * 1000 + static_cast<size_t>(i),
                            static_cast<char>('a' + i % 26));
    ASSERT_TRUE(writer.Write(piece));
    expected += piece;
  }
  EXPECT_EQ(writer.position(), expected.size());
  ASSERT_TRUE(writer.Commit());
  EXPECT_TRUE(Read("f") == expected);
}

TEST_F(AtomicWriterTest, EarlierBytesCanBeReplaced) {
  AtomicWriter writer = Create("f");
  ASSERT_TRUE(writer.Write("....-body"));
  ASSERT_TRUE(writer.Pwrite(0, std::as_bytes(std::span("head", 4))));
  ASSERT_TRUE(writer.Write("-tail"));
  ASSERT_TRUE(writer.Commit());
  EXPECT_EQ(Read("f"), "head-body-tail");
}

TEST_F(AtomicWriterTest, TwoWritersOfOneFileDoNotMix) {
  AtomicWriter first = Create("f");
  AtomicWriter second = Create("f");
  ASSERT_TRUE(first.Write("first"));
  ASSERT_TRUE(second.Write("second"));
  ASSERT_TRUE(second.Commit());
  ASSERT_TRUE(first.Commit());
  EXPECT_EQ(Read("f"), "first");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicWriterTest, RefusesItsInputsUnderAnyName) {
  const std::string input = folder_.Write("in.gguf", "weights");
  std::filesystem::create_hard_link(input, folder_ / "hard");
  std::filesystem::create_symlink("in.gguf", folder_ / "soft");
  const FileIdentity other = File::Open(folder_.Write("other", "x"))->identity();
  const FileIdentity inputs[] = {other, File::Open(input)->identity()};
  for (const char* name : {"in.gguf", "./in.gguf", "hard", "soft", "other"}) {
    const auto writer = AtomicWriter::Create(folder_ / name, 0, inputs);
    ASSERT_FALSE(writer) << name;
    EXPECT_EQ(writer.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(writer.error().message.find("same file as an input"), std::string::npos);
  }
  EXPECT_EQ(Read("in.gguf"), "weights");
  EXPECT_EQ(FileCount(), 4u);
}

TEST_F(AtomicWriterTest, RefusesWhatIsNoFileAndNamesMissingFolders) {
  EXPECT_EQ(AtomicWriter::Create("/dev/full").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(AtomicWriter::Create(folder_.path()).error().code, ErrorCode::kInvalidArgument);
  const auto writer = AtomicWriter::Create(folder_ / "absent/f", 10);
  EXPECT_EQ(writer.error().code, ErrorCode::kNotFound);
  EXPECT_NE(writer.error().message.find(folder_ / "absent/f"), std::string::npos) << writer.error().message;
}

TEST_F(AtomicWriterTest, SpaceIsCheckedFirst) {
  const auto writer = AtomicWriter::Create(folder_ / "f", uint64_t{1} << 60);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::kIo);
  EXPECT_NE(writer.error().message.find("are needed"), std::string::npos) << writer.error().message;
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(AtomicWriterTest, TheFileSizeLimitIsAnErrorNotASignal) {
  folder_.Write("f", "old");
  rlimit saved;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &saved), 0);
  rlimit small = saved;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status;
  {
    AtomicWriter writer = Create("f");
    status = writer.Write(std::string(1001, 'x'));
    if (status) status = writer.Commit();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &saved), 0);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("File too large"), std::string::npos) << status.error().message;
  EXPECT_EQ(Read("f"), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicWriterTest, AFullDiskIsAnErrorThatNamesTheFile) {
  // A file system of 1 MiB needs rights that tests seldom have; the unbuffered path is the same
  // for every errno.
  const std::string folder = folder_ / "small";
  std::filesystem::create_directory(folder);
  if (::mount("none", folder.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "may not mount a file system";
  Status status;
  {
    AtomicWriter writer = Create("small/f");
    status = writer.Write(std::string(3 * kMiB, 'x'));
  }
  const bool left_over = !std::filesystem::is_empty(folder);
  const auto checked = AtomicWriter::Create(folder + "/f", 2 * kMiB);
  ::umount(folder.c_str());
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("small/f"), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("No space left"), std::string::npos) << status.error().message;
  EXPECT_FALSE(left_over);
  EXPECT_FALSE(checked);
}

TEST_F(AtomicWriterTest, ASymbolicLinkStaysOne) {
  folder_.Write("real", "old");
  std::filesystem::create_symlink("real", folder_ / "link");
  ASSERT_TRUE(WriteWholeFile(folder_ / "link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(Read("real"), "new");
}

TEST_F(AtomicWriterTest, ThePermissionsOfTheOldFileAreKept) {
  const std::string path = folder_.Write("secret", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(WriteWholeFile(path, "new"));
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AtomicWriterTest, AMovedFromWriterRemovesNothing) {
  std::optional<AtomicWriter> first(Create("f"));
  AtomicWriter second = std::move(*first);
  first.reset();
  ASSERT_TRUE(second.Write("x"));
  ASSERT_TRUE(second.Commit());
  EXPECT_EQ(Read("f"), "x");
}

}  // namespace
}  // namespace sluice::platform
