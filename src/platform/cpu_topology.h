// CpuTopology: the cores that this process may use, how strong they are, and how much of their time it is
// given. From it come the default number of threads and the cores to keep them on.
//
// Reading takes some small files of /proc and /sys; done once at start. Values; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice::platform {

struct Core {
  int id = 0;
  // Strength relative to the other cores: the scheduler's cpu_capacity, else the top frequency, else
  // 1 for all.
  uint64_t capacity = 1;
  // Two hardware threads of one core share their arithmetic units: the second one has this false.
  bool first_of_siblings = true;
};

struct CpuTopology {
  std::vector<Core> cores;  // online and in the affinity mask, by ascending id; never empty
  bool capacity_is_frequency = false;
  // Cores' worth of time that the control groups allow: the least of all ancestors.
  double quota = std::numeric_limits<double>::infinity();
};

// Never fails: where the kernel says nothing, cores are taken to be there and equal. `root`:
// see system_files.h.
CpuTopology ReadCpuTopology(const std::string& root = "");

// The ids of the big cores, one hardware thread each: all but the weakest kind where kinds differ
// much. Never empty.
std::vector<int> BigCores(const CpuTopology& topology);

// One thread for each big core, within the quota; at least 1. Little cores would hold the others up at every
// join, and threads beyond the quota are stopped in the middle of their work.
int DefaultThreadCount(const CpuTopology& topology);

}  // namespace sluice::platform
