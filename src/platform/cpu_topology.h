// CpuTopology: the cores that this process may use, how strong they are, and how much of their time it is
// given. From it come the number of threads and the cores to keep them on.
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
  // Online, in the affinity mask and in the CPU sets of all control groups, by ascending id; never empty.
  std::vector<Core> cores;
  int online = 1;  // cores of the machine, usable or not
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

struct ThreadChoice {
  int threads = 1;
  std::vector<int> cores;  // to keep them on; empty: all that may be used
  std::string origin;      // in one line: "4: one for each big core, with 8 cores that may be used"
};

// `asked` threads, or with 0 one for each big core, within the quota; at least 1. Little cores would hold the
// others up at every join, and threads beyond the quota are stopped in the middle of their work. More than
// there are big cores, who asked for them, may run anywhere.
ThreadChoice ChooseThreads(const CpuTopology& topology, int asked = 0);

}  // namespace sluice::platform
