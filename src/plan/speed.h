// Speed: how fast a plan will run on a device.
//
// A pass over the model takes as long as the slower of two: reading the streamed weights from storage, and
// computing on all of them. Pure functions; any thread.
#pragma once

#include "plan/device.h"
#include "plan/facts.h"
#include "plan/planner.h"

namespace sluice::plan {

// What is being estimated: a prompt of this length, then an answer of that length.
inline constexpr int64_t kSpeedPrompt = 2000;
inline constexpr int64_t kSpeedAnswer = 200;
inline constexpr double kFluentSeconds = 0.2;  // a token, at most

// What storage gives a model, of what it gives when nobody does anything but read: into a ring while processors go through what has
// come, and into memory that no cache holds (weights that stay, the blocks of an lru). Measured: docs/streaming.md.
inline constexpr double kRingShare = 0.9;
inline constexpr double kFreshMemoryShare = 0.7;

// What a model makes of its products' speed, token by token: norms, activations and sampling come on top, and
// workers wait for each other at the end of an operation. Measured: docs/memory.md.
inline constexpr double kDecodeShare = 0.9;

struct Speed {
  double storage_seconds = 0;  // of one decoding pass
  double compute_seconds = 0;
  double decode_tokens_per_second = 0;
  double prefill_tokens_per_second = 0;
  // After a prompt of kSpeedPrompt tokens, or as much as the context holds, from a start with nothing in memory.
  double first_token_seconds = 0;
  double answer_seconds = 0;       // kSpeedAnswer tokens, without the prompt

  bool fluent() const { return decode_tokens_per_second * kFluentSeconds >= 1; }
  bool bound_by_storage() const { return storage_seconds > compute_seconds; }
};

// All zeros when the device's figures say nothing of what the plan needs.
Speed EstimateSpeed(const ModelFacts& facts, const Plan& plan, const DeviceProfile& device);

}  // namespace sluice::plan
