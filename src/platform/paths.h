// Where a user's files go: settings, caches, and data such as models and conversations.
//
// The library never reads the environment: an app takes an Environment from the process once and hands it on.
#pragma once

#include <string>

namespace sluice::platform {

// The variables that Sluice looks at; empty when not set.
struct Environment {
  std::string home;
  std::string xdg_config_home;
  std::string xdg_cache_home;
  std::string xdg_data_home;
  std::string android_root;   // ANDROID_ROOT: set on every Android
  std::string tmpdir;         // TMPDIR
  std::string sluice_models;  // SLUICE_MODELS: the models folder
  // Where other programs keep their models, when not in the usual place.
  std::string ollama_models;  // OLLAMA_MODELS
  std::string hf_home;        // HF_HOME
  std::string hf_hub_cache;   // HF_HUB_CACHE
  std::string llama_cache;    // LLAMA_CACHE

  static Environment FromProcess();
};

struct UserFolders {
  std::string home;    // absolute; a place that can be written to even where the user has no home
  std::string config;  // settings
  std::string cache;   // can be made again
  std::string data;    // conversations, downloaded models
  std::string models;
};

// By the XDG base directory specification (which says to ignore relative paths). Without a home:
// /data/local/tmp on Android (what adb's shell can write to), else TMPDIR or /tmp. Nothing is created.
UserFolders FindUserFolders(const Environment& environment);

}  // namespace sluice::platform
