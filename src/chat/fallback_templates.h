// Templates for models whose file carries none that works, by family (docs/templates.md). Internal to chat;
// any thread.
#pragma once

#include <string_view>

#include "chat/chat_template.h"

namespace sluice::chat {

struct FallbackTemplate {
  std::string_view name;
  std::string_view text;
};

// The one of that name, nullptr if there is none. Some files carry just a name in place of a template.
const FallbackTemplate* FindFallback(std::string_view name);

// The one that suits the model best: by the tokens of its vocabulary, then by its name, at last chatml.
const FallbackTemplate& ChooseFallback(const TemplateSource& source);

}  // namespace sluice::chat
