#include "platform/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <cstdint>

namespace sluice::platform {
namespace {

constexpr bool Bit(uint64_t word, int bit) { return (word >> bit & 1) != 0; }

}  // namespace

#if defined(__x86_64__)

namespace {

// XCR0: which register states the operating system saves (Intel SDM volume 1, chapter 13).
__attribute__((target("xsave"))) uint64_t ReadXcr0() { return _xgetbv(0); }

constexpr uint64_t kYmmState = 0x06;  // SSE and AVX
constexpr uint64_t kZmmState = 0xe6;  // … and opmask, the upper halves of ZMM0–15, ZMM16–31

}  // namespace

CpuFeatures DetectCpuFeatures() {
  CpuFeatures cpu;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !Bit(ecx, 27) /* OSXSAVE */) return cpu;
  const uint64_t xcr0 = ReadXcr0();
  if ((xcr0 & kYmmState) != kYmmState || !Bit(ecx, 28) /* AVX */) return cpu;
  cpu.fma = Bit(ecx, 12);
  cpu.f16c = Bit(ecx, 29);

  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return cpu;
  const unsigned last_subleaf = eax;
  cpu.avx2 = Bit(ebx, 5);
  cpu.avx512f = Bit(ebx, 16) && (xcr0 & kZmmState) == kZmmState;
  if (!cpu.avx512f) return cpu;
  cpu.avx512dq = Bit(ebx, 17);
  cpu.avx512bw = Bit(ebx, 30);
  cpu.avx512vl = Bit(ebx, 31);
  cpu.avx512vbmi = Bit(ecx, 1);
  cpu.avx512vnni = Bit(ecx, 11);
  cpu.avx512fp16 = Bit(edx, 23);
  if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) cpu.avx512bf16 = Bit(eax, 5);
  return cpu;
}

#elif defined(__aarch64__)

// The kernel reports what every core has. Bit numbers: Linux arch/arm64/include/uapi/asm/hwcap.h.
CpuFeatures DetectCpuFeatures() {
  const uint64_t hwcap = getauxval(AT_HWCAP);
  const uint64_t hwcap2 = getauxval(AT_HWCAP2);
  CpuFeatures cpu;
  cpu.neon = Bit(hwcap, 1);      // ASIMD
  cpu.fp16 = Bit(hwcap, 10);     // ASIMDHP
  cpu.dotprod = Bit(hwcap, 20);  // ASIMDDP
  cpu.i8mm = Bit(hwcap2, 13);    // I8MM
  return cpu;
}

#else

CpuFeatures DetectCpuFeatures() { return {}; }

#endif

}  // namespace sluice::platform
