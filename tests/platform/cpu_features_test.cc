#include "platform/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "platform/system_files.h"

namespace sluice::platform {
namespace {

// The kernel's own list of what it lets programs use.
bool KernelLists(std::string_view flag) {
  const auto table = ReadSystemFile("/proc/cpuinfo").value_or("");
  for (const char* name : {"flags\t\t", "Features\t"}) {
    if (const auto field = FindField(table, name)) {
      const auto flags = Split(*field, ' ');
      return std::ranges::find(flags, flag) != flags.end();
    }
  }
  return false;
}

TEST(CpuFeaturesTest, AgreesWithTheKernel) {
  if (!ReadSystemFile("/proc/cpuinfo")) GTEST_SKIP() << "no /proc/cpuinfo to compare with";
  const CpuFeatures cpu = DetectCpuFeatures();
#if defined(__x86_64__)
  EXPECT_EQ(cpu.avx2, KernelLists("avx2"));
  EXPECT_EQ(cpu.fma, KernelLists("fma"));
  EXPECT_EQ(cpu.f16c, KernelLists("f16c"));
  EXPECT_EQ(cpu.avx512f, KernelLists("avx512f"));
  EXPECT_EQ(cpu.avx512bw, KernelLists("avx512bw"));
  EXPECT_EQ(cpu.avx512vl, KernelLists("avx512vl"));
  EXPECT_EQ(cpu.avx512dq, KernelLists("avx512dq"));
  EXPECT_EQ(cpu.avx512vnni, KernelLists("avx512_vnni"));
  EXPECT_EQ(cpu.avx512vbmi, KernelLists("avx512vbmi"));
  EXPECT_EQ(cpu.avx512bf16, KernelLists("avx512_bf16"));
  EXPECT_EQ(cpu.avx512fp16, KernelLists("avx512_fp16"));
  EXPECT_FALSE(cpu.neon);
#elif defined(__aarch64__)
  EXPECT_TRUE(cpu.neon);
  EXPECT_FALSE(cpu.avx2);
  if (!KernelLists("asimd")) GTEST_SKIP() << "/proc/cpuinfo is of another processor (emulation)";
  EXPECT_EQ(cpu.dotprod, KernelLists("asimddp"));
  EXPECT_EQ(cpu.i8mm, KernelLists("i8mm"));
  EXPECT_EQ(cpu.fp16, KernelLists("asimdhp"));
#endif
}

}  // namespace
}  // namespace sluice::platform
