// CpuSensors: how fast the cores run and how warm the processor is, where the system says so.
//
// The files are looked for once; each Read reads them anew. A value; any thread. `root`: see system_files.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::platform {

class CpuSensors {
 public:
  struct Reading {
    std::optional<double> frequency_hz;  // of the fastest core
    std::optional<double> celsius;       // of the hottest sensor
  };

  CpuSensors() = default;
  // Frequencies: cpufreq's scaling_cur_freq of each core (/proc/cpuinfo is left alone: virtual machines write
  // there what the processor is called). Temperatures: thermal zones that are named after a processor or
  // chip, else the drivers of hwmon that measure one.
  static CpuSensors Find(const std::string& root = "");

  // Nothing where there is no sensor, or where what it says can't be.
  Reading Read() const;

 private:
  std::vector<std::string> frequency_files_;    // kHz
  std::vector<std::string> temperature_files_;  // thousandths of a degree Celsius
};

}  // namespace sluice::platform
