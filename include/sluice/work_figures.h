// WorkFigures: what a stretch of work (reading a prompt, answering) took, and the meter that measures it.
#pragma once

#include <cstdint>
#include <optional>

#include "platform/process_activity.h"
#include "session/session.h"
#include "sluice/engine.h"
#include "weights/weight_store.h"

namespace sluice {

struct WorkFigures {
  int64_t tokens = 0;
  int64_t passes = 0;  // over the model's weights
  double seconds = 0;
  std::optional<uint64_t> bytes_read;   // weights from storage
  std::optional<double> stall_seconds;  // workers waiting for them, the sum of all
  platform::ProcessActivity activity;   // what the kernel counted meanwhile
  double memory_bytes = 0;              // weights, keys and values that the passes went through

  // Nothing where there is nothing to divide.
  std::optional<double> bytes_read_per_token() const;
  std::optional<double> stall_seconds_per_token() const;

  // Of works that were measured in the same way.
  WorkFigures& operator+=(const WorkFigures& other);
};

// Measures what happens between two moments. Belongs to one session; engine, session and its model outlive
// it.
class WorkMeter {
 public:
  WorkMeter(const Engine& engine, const session::Session& session);

  // What happened since the last call, or since the meter was made. Tokens are left to the caller.
  WorkFigures Lap();

 private:
  struct Counters {
    double seconds = 0;
    int64_t passes = 0;
    int64_t held = 0;  // tokens in the session
    weights::StoreStats store;
    platform::ProcessActivity activity;
  };
  Counters Now() const;

  const Engine& engine_;
  const session::Session& session_;
  Counters last_;
};

}  // namespace sluice
