// ShrinkGuard: a mapped file that becomes shorter must not kill the process.
//
// Reading a mapped page that the file has no longer raises SIGBUS. While a guard watches over the mapping,
// such a page and all behind it become zeros instead, and the guard says so: whoever computed with them
// throws the result away. SIGBUS from anywhere else goes to the handler that was there before; where there
// was none, the process ends as it would have.
//
// The handler is of the whole process: installed with the first guard, taken away with the last. Any thread
// may make, ask and destroy guards.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/result.h"

namespace sluice::platform {

class ShrinkGuard {
 public:
  static constexpr size_t kMost = 1024;  // guards at a time

  ShrinkGuard() = default;
  // Watches over the mapping of a file, which outlives the guard. Errors: kResourceExhausted when kMost do
  // already.
  static Result<ShrinkGuard> Watch(std::span<const std::byte> mapping);

  ShrinkGuard(ShrinkGuard&& other) noexcept { *this = std::move(other); }
  ShrinkGuard& operator=(ShrinkGuard&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~ShrinkGuard();

  // Whether a page was missing since the guard was made. What was read since may have been zeros.
  bool page_was_missing() const;

 private:
  explicit ShrinkGuard(int slot) : slot_(slot) {}
  int slot_ = -1;  // −1: watches over nothing
};

}  // namespace sluice::platform
