// What a run used: figures of the process, and the one line under an answer.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "sluice/conversation.h"
#include "sluice/engine.h"

namespace sluice {

struct UsageFigures {
  uint64_t rss_bytes = 0;
  uint64_t peak_rss_bytes = 0;
};
UsageFigures ProcessUsage();

// "12 tokens at 310 tok/s (prompt 24 at 1210 tok/s), first after 0.03 s · memory 61.2 MiB of 15.3 GiB · avx512vnni, 2
// threads"
std::string SpeedLine(const Answer& answer, const Engine& engine);

// The contents of a file that a user named. Errors: kNotFound, kIo; kResourceExhausted above `max_bytes`.
Result<std::string> ReadWholeFile(const std::string& path, uint64_t max_bytes = kGiB);

}  // namespace sluice
