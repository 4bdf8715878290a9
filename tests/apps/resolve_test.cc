#include "sluice/resolve.h"

#include <gmock/gmock.h>

#include "platform/temp_folder.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;

class ResolveTest : public testing::Test {
 protected:
  ResolveTest() {
    folders_.environment.home = home_.path();
    folders_.current_folder = home_ / "work";
    folders_.root = home_ / "root";
  }
  Error ErrorOf(const std::string& name) {
    const auto resolved = ResolveModel(name, folders_);
    return resolved ? Error{} : resolved.error();
  }

  TempFolder home_;
  LibraryFolders folders_;
};

TEST_F(ResolveTest, APathIsTakenAsItIs) {
  const std::string path = home_.Write("anything.bin", "x");
  EXPECT_EQ(*ResolveModel(path, folders_), path);
}

TEST_F(ResolveTest, ANameLeadsToTheFile) {
  const std::string path = home_.Write("work/models/Qwen3-4B.gguf", "x");
  EXPECT_EQ(*ResolveModel("qwen3", folders_), path);
  EXPECT_EQ(*ResolveModel("Qwen3-4B.gguf", folders_), path);
}

TEST_F(ResolveTest, AFolderIsTakenOnlyWhenNoModelHasTheName) {
  const std::string folder = home_ / "empty";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(*ResolveModel(folder, folders_), folder);
}

TEST_F(ResolveTest, ErrorsSayWhatThereIs) {
  Error error = ErrorOf("qwen");
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr(home_ / ".local/share/sluice/models"));

  home_.Write("work/models/Qwen3-4B.gguf", "x");
  home_.Write("work/models/Qwen3-8B.gguf", "x");
  error = ErrorOf("qwen");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("Qwen3-4B, Qwen3-8B"));

  error = ErrorOf("qwn3-4b");
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("Did you mean Qwen3-4B"));
}

}  // namespace
}  // namespace sluice::app
