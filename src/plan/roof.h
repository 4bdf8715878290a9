// The machine's roofs, measured. Roof: how fast it reads memory, the bound of decoding, which reads every
// weight once a token. Peaks: how fast it multiplies, the bound of reading prompts.
//
// Roof takes the best of several access patterns over a buffer on huge pages that no cache holds. Machines
// shared with others change from minute to minute, so a figure is only worth something beside one taken in
// the same second: measure right before and after what is compared with it.
//
// Owns its buffer, charged to the ledger's reserve. One thread at a time; works on the context's pool.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "memory/arena.h"
#include "runtime/context.h"

namespace sluice::plan {

struct RoofReading {
  double bytes_per_second = 0;
  std::string_view pattern;  // which one was the fastest: "1 stream", "4 streams", …
};

class Roof {
 public:
  // Takes `buffer_bytes` of memory (touched). Errors: kDoesNotFit.
  static Result<Roof> Create(const runtime::Context& context, uint64_t buffer_bytes);

  // Reads the buffer once with each pattern and returns the best: some tens of milliseconds for a GiB.
  RoofReading Measure();

 private:
  explicit Roof(const runtime::Context& context) : context_(&context) {}
  const runtime::Context* context_;
  memory::Arena arena_;
};

// Multiply-adds per second of all workers of the context's pool together, with the instruction that its
// kernels use.
struct Peaks {
  double int8_macs_per_second = 0;  // quantised weights
  double f32_macs_per_second = 0;   // F32, F16 and BF16 weights
};
// Some milliseconds. One thread at a time; works on the context's pool.
Peaks MeasurePeaks(const runtime::Context& context);

}  // namespace sluice::plan
