// SLUICE_CHECK: our own invariants. A failed check is a bug in Sluice, never a bad input: it prints
// the place and aborts. Bytes from outside are answered with Result (result.h).
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sluice {

[[noreturn]] inline void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "sluice: internal error: check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace sluice

#define SLUICE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::sluice::CheckFailed(#condition, __FILE__, __LINE__))
