// History: what was typed before, kept in a file from one run to the next. One thread.
#pragma once

#include <string>
#include <vector>

#include "sluice/result.h"

namespace sluice::app {

class History {
 public:
  // Reads the file; one that is missing or odd gives what can be read of it. An empty path: nothing is kept.
  explicit History(std::string path);

  const std::vector<std::string>& entries() const { return entries_; }  // oldest first
  // Adds an entry, unless it is empty or the same as the last one, and saves.
  Status Add(const std::string& entry);

 private:
  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace sluice::app
