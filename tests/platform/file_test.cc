#include "platform/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class FileTest : public testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(FileTest, ReadsAtOffsets) {
  const auto file = File::Open(folder_.Write("f", "0123456789"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file->Size(), 10u);
  std::vector<std::byte> buffer(4);
  ASSERT_TRUE(file->PreadFull(3, buffer));
  EXPECT_EQ(Text(buffer), "3456");
  EXPECT_TRUE(file->PreadFull(10, {}));
  EXPECT_EQ(*file->Pread(8, buffer), 2u);
  EXPECT_EQ(*file->Pread(10, buffer), 0u);
  EXPECT_EQ(*file->Pread(uint64_t{1} << 40, buffer), 0u);
}

TEST_F(FileTest, EndingEarlyNamesPathOffsetFoundAndExpected) {
  const auto file = File::Open(folder_.Write("short.gguf", "0123456789"));
  std::vector<std::byte> buffer(6);
  const Status status = file->PreadFull(7, buffer);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(status.error().message.find("short.gguf ends early: at byte 7 found 3 bytes, expected 6"),
            std::string::npos)
      << status.error().message;
}

TEST_F(FileTest, AFileThatShrinksIsAnError) {
  const std::string path = folder_.Write("f", "0123456789");
  const auto file = File::Open(path);
  std::filesystem::resize_file(path, 4);
  std::vector<std::byte> buffer(10);
  EXPECT_EQ(file->PreadFull(0, buffer).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(*file->Size(), 4u);
}

TEST_F(FileTest, OffsetsPastWhatTheKernelTakesAreErrors) {
  const auto file = File::Open(folder_.Write("f", "x"));
  std::vector<std::byte> buffer(1);
  EXPECT_EQ(file->PreadFull(UINT64_MAX, buffer).error().code, ErrorCode::kIo);
}

TEST_F(FileTest, WhatIsNoRegularFileIsRefused) {
  EXPECT_EQ(File::Open(folder_ / "absent").error().code, ErrorCode::kNotFound);
  EXPECT_NE(File::Open(folder_ / "absent").error().message.find("No such file"), std::string::npos);
  EXPECT_EQ(File::Open(folder_.path()).error().code, ErrorCode::kInvalidArgument);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(File::Open(folder_ / "pipe").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(File::Open("/dev/zero").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, IdentityFollowsLinks) {
  const std::string path = folder_.Write("f", "x");
  std::filesystem::create_hard_link(path, folder_ / "hard");
  std::filesystem::create_symlink("f", folder_ / "soft");
  const FileIdentity identity = File::Open(path)->identity();
  for (const char* other : {"hard", "soft", "./f"})
    EXPECT_EQ(File::Open(folder_ / other)->identity(), identity);
  EXPECT_NE(File::Open(folder_.Write("g", "x"))->identity(), identity);
}

TEST_F(FileTest, DirectReads) {
  std::string contents(3 * File::kDirectAlignment + 100, 'a');
  contents[2 * File::kDirectAlignment] = 'b';
  const auto file = File::Open(folder_.Write("f", contents), File::Caching::kDirect);
  if (!file && file.error().code == ErrorCode::kUnsupported) GTEST_SKIP() << file.error().message;
  ASSERT_TRUE(file) << file.error().message;
  AlignedBuffer buffer(2 * File::kDirectAlignment, File::kDirectAlignment);
  ASSERT_TRUE(file->PreadFull(File::kDirectAlignment, buffer.bytes()));
  EXPECT_EQ(Text(buffer.bytes()), contents.substr(File::kDirectAlignment, buffer.size()));
  // The tail of the file is not whole blocks.
  EXPECT_EQ(*file->Pread(2 * File::kDirectAlignment, buffer.bytes()), File::kDirectAlignment + 100);
}

TEST_F(FileTest, MovesKeepTheDescriptor) {
  auto first = File::Open(folder_.Write("f", "abc"));
  File second = *std::move(first);
  std::vector<std::byte> buffer(3);
  ASSERT_TRUE(second.PreadFull(0, buffer));
  second = *File::Open(folder_.Write("g", "xyz"));
  ASSERT_TRUE(second.PreadFull(0, buffer));
  EXPECT_EQ(Text(buffer), "xyz");
}

TEST_F(FileTest, ReadWholeFileIsBounded) {
  const std::string contents(100000, 'x');
  const std::string path = folder_.Write("f", contents);
  EXPECT_EQ(*ReadWholeFile(path, contents.size()), contents);
  EXPECT_EQ(ReadWholeFile(path, contents.size() - 1).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(*ReadWholeFile(folder_.Write("empty", ""), 0), "");
  EXPECT_EQ(ReadWholeFile("/dev/zero", 1 << 20).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(ReadWholeFile(folder_ / "absent", 10).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadWholeFile(folder_.path(), 10).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, ReadWholeFileReadsPipes) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "from a pipe", 11), 11);
  ::close(ends[1]);
  EXPECT_EQ(*ReadWholeFile("/proc/self/fd/" + std::to_string(ends[0]), 100), "from a pipe");
  ::close(ends[0]);
}

}  // namespace
}  // namespace sluice::platform
