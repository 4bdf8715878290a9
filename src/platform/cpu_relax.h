// CpuRelax: tells the core that this is a spin loop (saves power, and leaves a hyper-thread
// sibling its share).
#pragma once

namespace sluice::platform {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace sluice::platform
