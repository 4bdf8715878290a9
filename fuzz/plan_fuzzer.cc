// Reads a device profile or a Hugging Face config.json that an attacker has written; a shape that can be read
// is planned.
#include <string_view>

#include "plan/device.h"
#include "plan/planner.h"
#include "sluice/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto device = plan::ParseDevice(text))
    SLUICE_CHECK(plan::ParseDevice(plan::ToJson(*device)).has_value());
  const auto mix = quantize::FindMix("Q4_K_M");
  if (const auto subject = PlanSubject::OfConfig(text, **mix))
    (void)plan::MakePlan(subject->facts(), {.budget_bytes = 8ull << 30});
  return 0;
}
