// Where models lie: one walker for folders of GGUF files, one for Ollama's store.
//
// Internal to the library of models (include/sluice/library.h).
#pragma once

#include <string>
#include <vector>

#include "sluice/library.h"

namespace sluice::api {

struct Candidate {
  FoundModel model;       // its name not yet unique
  std::string qualifier;  // goes in front of the name where that alone is not unique: "bartowski/Qwen3-4B-GGUF"
};

std::vector<Candidate> SearchModelFolders(const LibraryFolders& folders);

}  // namespace sluice::api
