// Markers that models put around their thoughts and tool calls: what is known of the families in use, found
// again in a template's text or in what it renders. Internal to chat; const tables, any thread.
#pragma once

#include <optional>
#include <string_view>

#include "chat/chat_template.h"

namespace sluice::chat {

struct MarkerPair {
  std::string_view open;
  std::string_view close;  // may be empty: to the end
};

// The thought's tags that `template_text` mentions.
std::optional<MarkerPair> FindThinkTags(std::string_view template_text);

// The tool-call markers in `text`: an assistant turn with a call as the template renders it, or the template
// itself.
std::optional<MarkerPair> FindToolMarkers(std::string_view text);

}  // namespace sluice::chat
