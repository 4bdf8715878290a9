// Clock: time as a seam, so that tests need not wait. `MonotonicClock` is the real one.
#pragma once

#include <chrono>

namespace sluice {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since an arbitrary fixed moment; never goes back.
  virtual double NowSeconds() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  double NowSeconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace sluice
