// What a run used: figures of the process, and the one line under an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "platform/memory_info.h"
#include "sluice/conversation.h"
#include "sluice/engine.h"

namespace sluice {

// "61.2 MiB", or "unknown" where the system doesn't say.
std::string FormatBytesOr(std::optional<uint64_t> bytes, std::string_view otherwise = "unknown");

// "12 tokens at 310 tok/s (prompt 24 at 1210 tok/s), first after 0.03 s · memory 61.2 MiB of 15.3 GiB · avx512vnni, 2
// threads"
std::string SpeedLine(const Answer& answer, const Engine& engine);

// The contents of a file that a user named. Errors: kNotFound, kIo; kResourceExhausted above `max_bytes`.
Result<std::string> ReadWholeFile(const std::string& path, uint64_t max_bytes = kGiB);

}  // namespace sluice
