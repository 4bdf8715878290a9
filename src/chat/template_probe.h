// The probe: renders small made-up conversations with a template and looks at what comes out, to learn what
// the template takes and what its model writes. Once per template, at load, within tight bounds.
//
// Internal to chat. Free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/jinja/limits.h"
#include "chat/jinja/parser.h"
#include "chat/prompt_context.h"

namespace sluice::chat {

struct ProbeResult {
  Capabilities capabilities;
  MessageShape shape;
  ThinkingVariables variables;  // for ThinkingSwitch::kVariable
};

// Error: that of rendering the plainest conversation, if no way to put it works.
Result<ProbeResult> ProbeTemplate(const jinja::Template& source, std::string_view bos_token,
                                  std::string_view eos_token);

// One rendering: context, interpreter, segments. Errors as ChatTemplate::Render.
Result<std::vector<Segment>> RenderOnce(const jinja::Template& source, const RenderInput& input,
                                        const ContextOptions& options, const jinja::Limits& limits);

}  // namespace sluice::chat
