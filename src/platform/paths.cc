#include "platform/paths.h"

#include <cstdlib>

namespace sluice::platform {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsAbsolute(const std::string& path) { return path.starts_with('/'); }

std::string AbsoluteOr(const std::string& path, const std::string& fallback) {
  return IsAbsolute(path) ? path : fallback;
}

}  // namespace

Environment Environment::FromProcess() {
  return {.home = Variable("HOME"),
          .xdg_config_home = Variable("XDG_CONFIG_HOME"),
          .xdg_cache_home = Variable("XDG_CACHE_HOME"),
          .xdg_data_home = Variable("XDG_DATA_HOME"),
          .android_root = Variable("ANDROID_ROOT"),
          .tmpdir = Variable("TMPDIR"),
          .sluice_models = Variable("SLUICE_MODELS"),
          .ollama_models = Variable("OLLAMA_MODELS"),
          .hf_home = Variable("HF_HOME"),
          .hf_hub_cache = Variable("HF_HUB_CACHE"),
          .llama_cache = Variable("LLAMA_CACHE")};
}

UserFolders FindUserFolders(const Environment& environment) {
  UserFolders folders;
  // "/" is the home of adb's shell and of users without one; nothing can be written there.
  if (IsAbsolute(environment.home) && environment.home != "/") {
    folders.home = environment.home;
  } else if (!environment.android_root.empty()) {
    folders.home = "/data/local/tmp";
  } else {
    folders.home = AbsoluteOr(environment.tmpdir, "/tmp");
  }
  folders.config = AbsoluteOr(environment.xdg_config_home, folders.home + "/.config") + "/sluice";
  folders.cache = AbsoluteOr(environment.xdg_cache_home, folders.home + "/.cache") + "/sluice";
  folders.data = AbsoluteOr(environment.xdg_data_home, folders.home + "/.local/share") + "/sluice";
  folders.models = AbsoluteOr(environment.sluice_models, folders.data + "/models");
  return folders;
}

}  // namespace sluice::platform
