#include "platform/thermal.h"

#include <gtest/gtest.h>

#include "platform/temp_folder.h"

namespace sluice::platform {
namespace {

TEST(CpuSensorsTest, TheFastestCoreAndTheHottestSensor) {
  const TempFolder root;
  root.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1200000\n");
  root.Write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2400000\n");
  root.Write("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "9000000\n");
  root.Write("sys/class/thermal/thermal_zone0/type", "battery\n");
  root.Write("sys/class/thermal/thermal_zone0/temp", "99000\n");
  root.Write("sys/class/thermal/thermal_zone1/type", "cpu-0-0-usr\n");
  root.Write("sys/class/thermal/thermal_zone1/temp", "48500\n");
  root.Write("sys/class/thermal/thermal_zone2/type", "soc_thermal\n");
  root.Write("sys/class/thermal/thermal_zone2/temp", "52500\n");
  root.Write("sys/class/hwmon/hwmon0/name", "coretemp\n");
  root.Write("sys/class/hwmon/hwmon0/temp1_input", "80000\n");
  const CpuSensors sensors = CpuSensors::Find(root.path());
  EXPECT_EQ(sensors.Read().frequency_hz, 2.4e9);
  EXPECT_EQ(sensors.Read().celsius, 52.5);
  root.Write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "800000\n");
  EXPECT_EQ(sensors.Read().frequency_hz, 1.2e9);
}

TEST(CpuSensorsTest, ChipsWhereThereAreNoZones) {
  const TempFolder root;
  root.Write("sys/class/hwmon/hwmon0/name", "nvme\n");
  root.Write("sys/class/hwmon/hwmon0/temp1_input", "80000\n");
  root.Write("sys/class/hwmon/hwmon1/name", "k10temp\n");
  root.Write("sys/class/hwmon/hwmon1/temp1_input", "61000\n");
  EXPECT_EQ(CpuSensors::Find(root.path()).Read().celsius, 61.0);
}

TEST(CpuSensorsTest, WhatIsMissingOrCannotBeIsUnknown) {
  const TempFolder root;
  EXPECT_EQ(CpuSensors::Find(root.path()).Read().frequency_hz, std::nullopt);
  EXPECT_EQ(CpuSensors::Find(root.path()).Read().celsius, std::nullopt);
  root.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "0\n");
  root.Write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
  for (const char* odd : {"0\n", "-274000\n", "999999999\n", "warm\n", ""}) {
    root.Write("sys/class/thermal/thermal_zone0/temp", odd);
    const CpuSensors sensors = CpuSensors::Find(root.path());
    EXPECT_EQ(sensors.Read().celsius, std::nullopt) << odd;
    EXPECT_EQ(sensors.Read().frequency_hz, std::nullopt);
  }
}

}  // namespace
}  // namespace sluice::platform
