#include "platform/thermal.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "platform/system_files.h"

namespace sluice::platform {
namespace {

// The folders inside `folder` whose names begin so, at most kMostFolders; sorted.
std::vector<std::string> Folders(const std::string& folder, std::string_view prefix) {
  constexpr size_t kMostFolders = 1024;
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (found.size() == kMostFolders) break;
    if (entry.path().filename().native().starts_with(prefix)) found.push_back(entry.path().native());
  }
  std::ranges::sort(found);
  return found;
}

bool HasAnyOf(const std::string& file, std::span<const std::string_view> names) {
  const std::string text = ReadSystemFile(file).value_or("");
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return text.find(name) != std::string::npos; });
}

std::vector<std::string> FindTemperatures(const std::string& root) {
  // "x86_pkg_temp", "cpu-thermal", "cpu-1-0-usr", "cpuss-0", "soc_thermal"; not batteries, modems or boards.
  constexpr std::array<std::string_view, 3> kZones{"cpu", "soc", "pkg"};
  constexpr std::array<std::string_view, 3> kDrivers{"coretemp", "k10temp", "zenpower"};
  std::vector<std::string> files;
  for (const std::string& zone : Folders(root + "/sys/class/thermal", "thermal_zone")) {
    if (HasAnyOf(zone + "/type", kZones)) files.push_back(zone + "/temp");
  }
  if (!files.empty()) return files;
  for (const std::string& chip : Folders(root + "/sys/class/hwmon", "hwmon")) {
    if (HasAnyOf(chip + "/name", kDrivers)) files.push_back(chip + "/temp1_input");
  }
  return files;
}

// The largest number in these files that lies within the limits.
std::optional<uint64_t> Largest(const std::vector<std::string>& files, uint64_t least, uint64_t most) {
  std::optional<uint64_t> largest;
  for (const std::string& file : files) {
    const auto value = ReadNumber(file);
    if (value && *value >= least && *value <= most) largest = std::max(largest.value_or(0), *value);
  }
  return largest;
}

}  // namespace

CpuSensors CpuSensors::Find(const std::string& root) {
  CpuSensors sensors;
  for (const std::string& core : Folders(root + "/sys/devices/system/cpu", "cpu")) {
    const std::string file = core + "/cpufreq/scaling_cur_freq";
    if (ReadNumber(file)) sensors.frequency_files_.push_back(file);
  }
  sensors.temperature_files_ = FindTemperatures(root);
  return sensors;
}

CpuSensors::Reading CpuSensors::Read() const {
  Reading reading;
  // 0 and what no processor reaches are how drivers say that they don't know.
  if (const auto khz = Largest(frequency_files_, 1, 20'000'000))
    reading.frequency_hz = static_cast<double>(*khz) * 1e3;
  if (const auto thousandths = Largest(temperature_files_, 1, 150'000))
    reading.celsius = static_cast<double>(*thousandths) / 1e3;
  return reading;
}

}  // namespace sluice::platform
