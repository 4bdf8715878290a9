// Control groups: where the kernel keeps the limits that this process runs under, in both versions
// (v1, v2, and systems that mix them). A group inherits the limits of all groups above it, so all have
// to be looked at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::platform {

struct CgroupChain {
  bool v2 = false;
  // Folders with the interface files, `root` included: this process's own group first, then its ancestors as
  // far up as they can be seen from here (a container sees a part). Empty when the controller isn't in use.
  std::vector<std::string> folders;
};

// The groups that govern this process for a controller, "memory" or "cpu".
CgroupChain FindCgroups(std::string_view controller, const std::string& root = "");

}  // namespace sluice::platform
