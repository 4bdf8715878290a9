// Limits and Meter: what one rendering may use. Templates come from strangers, and a template is a program:
// each evaluation costs a step, each byte that is held or copied counts, and the interpreter stops when one
// runs out.
//
// A Meter belongs to one rendering, hence to one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace sluice::chat::jinja {

// The real templates known to us have at most 20 KB and spend some thousand steps per message. The whole of
// the steps takes well under a second, the bytes stay under 100 MB with what the allocator adds.
struct Limits {
  size_t template_bytes = 256 * kKiB;
  uint64_t steps = 2'000'000;
  size_t live_bytes = 32 * kMiB;  // strings, lists and dicts that exist at one time, the output included
  size_t output_bytes = 16 * kMiB;
  int parse_depth = 100;  // nested blocks, brackets, operators
  int run_depth = 600;    // nested evaluations, through macro calls, too
  int64_t range_items = 100'000;
};

class Meter {
 public:
  explicit Meter(const Limits& limits) : steps_left_(limits.steps), bytes_left_(limits.live_bytes) {}

  // False when there are fewer left; then nothing is left.
  [[nodiscard]] bool Spend(uint64_t steps) {
    if (steps > steps_left_) {
      steps_left_ = 0;
      return false;
    }
    steps_left_ -= steps;
    return true;
  }
  // Work that goes through `bytes` bytes about once. A step is worth 128 of them; each call costs 8 by
  // itself.
  [[nodiscard]] bool SpendBytes(size_t bytes) {
    loose_bytes_ += bytes + 16;
    const uint64_t steps = loose_bytes_ / 128;
    loose_bytes_ %= 128;
    return Spend(steps);
  }

  [[nodiscard]] bool Reserve(size_t bytes) {
    if (bytes > bytes_left_) return false;
    bytes_left_ -= bytes;
    return true;
  }
  void Release(size_t bytes) { bytes_left_ += bytes; }
  size_t bytes_left() const { return bytes_left_; }

 private:
  uint64_t steps_left_;
  uint64_t loose_bytes_ = 0;  // not yet a whole step
  size_t bytes_left_;
};

}  // namespace sluice::chat::jinja
