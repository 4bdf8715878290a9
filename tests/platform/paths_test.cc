#include "platform/paths.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace sluice::platform {
namespace {

TEST(PathsTest, PlainHome) {
  const UserFolders folders = FindUserFolders({.home = "/home/ada"});
  EXPECT_EQ(folders.home, "/home/ada");
  EXPECT_EQ(folders.config, "/home/ada/.config/sluice");
  EXPECT_EQ(folders.cache, "/home/ada/.cache/sluice");
  EXPECT_EQ(folders.data, "/home/ada/.local/share/sluice");
  EXPECT_EQ(folders.models, "/home/ada/.local/share/sluice/models");
}

TEST(PathsTest, XdgVariablesWinWhenAbsolute) {
  const UserFolders folders = FindUserFolders({.home = "/home/ada",
                                               .xdg_config_home = "/etc/ada",
                                               .xdg_cache_home = "relative/cache",
                                               .xdg_data_home = "/data/ada",
                                               .sluice_models = "/mnt/models"});
  EXPECT_EQ(folders.config, "/etc/ada/sluice");
  EXPECT_EQ(folders.cache, "/home/ada/.cache/sluice");
  EXPECT_EQ(folders.data, "/data/ada/sluice");
  EXPECT_EQ(folders.models, "/mnt/models");
}

TEST(PathsTest, WithoutAHome) {
  EXPECT_EQ(FindUserFolders({}).home, "/tmp");
  EXPECT_EQ(FindUserFolders({.tmpdir = "/var/scratch"}).data, "/var/scratch/.local/share/sluice");
  EXPECT_EQ(FindUserFolders({.home = "/", .android_root = "/system"}).home, "/data/local/tmp");
  // Termux on Android has a home of its own.
  EXPECT_EQ(FindUserFolders({.home = "/data/data/com.termux/files/home", .android_root = "/system"}).home,
            "/data/data/com.termux/files/home");
}

TEST(PathsTest, FromProcess) {
  ::setenv("SLUICE_MODELS", "/some/models", 1);
  ::unsetenv("HF_HOME");
  const Environment environment = Environment::FromProcess();
  ::unsetenv("SLUICE_MODELS");
  EXPECT_EQ(environment.sluice_models, "/some/models");
  EXPECT_EQ(environment.hf_home, "");
}

}  // namespace
}  // namespace sluice::platform
