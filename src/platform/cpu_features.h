// CpuFeatures: which instruction sets this processor has and the operating system lets us use.
//
// A value; any thread. A feature is true only when the kernel also saves its registers, so a true flag means
// that the instructions run. On a processor with unequal cores it means all of them.
#pragma once

namespace sluice::platform {

struct CpuFeatures {
  // x86-64. A 512-bit flag is never set without avx512f, nor fma, f16c and avx2 without the OS saving YMM.
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512dq = false;
  bool avx512vnni = false;
  bool avx512vbmi = false;
  bool avx512bf16 = false;
  bool avx512fp16 = false;
  // AArch64.
  bool neon = false;
  bool dotprod = false;  // SDOT, UDOT
  bool i8mm = false;     // SMMLA, UMMLA
  bool fp16 = false;     // half-precision vector arithmetic
};

// What the processor we are running on has. CpuFeatures{} is one that has nothing.
CpuFeatures DetectCpuFeatures();

}  // namespace sluice::platform
