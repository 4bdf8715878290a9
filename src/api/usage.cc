#include "sluice/usage.h"

#include "base/units.h"
#include "platform/file.h"

namespace sluice {

std::string FormatBytesOr(std::optional<uint64_t> bytes, std::string_view otherwise) {
  return bytes ? FormatBytes(*bytes) : std::string(otherwise);
}

std::string SpeedLine(const Answer& answer, const Engine& engine) {
  return fmt::format("{} tokens at {:.1f} tok/s (prompt {} at {:.0f} tok/s), first after {:.2f} s · memory {} of {} · {}, {} threads",
                     answer.generation.tokens, answer.decode_tokens_per_second(),
                     answer.prompt_tokens, answer.prefill_tokens_per_second(), answer.first_token_seconds,
                     FormatBytesOr(platform::ReadProcessMemory().peak_rss_bytes), FormatBytes(engine.budget_bytes()), engine.kernels(),
                     engine.threads());
}

Result<std::string> ReadWholeFile(const std::string& path, uint64_t max_bytes) {
  return platform::ReadWholeFile(path, max_bytes);
}

}  // namespace sluice
