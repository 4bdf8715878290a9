// Tool calls in a model's own words → ToolCall. The notations in use, told apart by looking:
//   {"name": "f", "arguments": {…}}, or "parameters"; alone, several, or in a list     Hermes, Qwen, Llama 3,
//   Mistral f[ARGS]{…}, f{…}, function<sep>f … {…}, functions.f:0<sep>{…}                       Mistral,
//   DeepSeek, Kimi, Functionary <function=f><parameter=key>value</parameter></function> Qwen3-Coder, Seed
//   f<arg_key>key</arg_key><arg_value>value</arg_value>                                 GLM
//   <invoke name="f"><parameter name="key">value</parameter></invoke>                   MiniMax
//
// Model output is hostile: time is linear in the text, what can't be read gives no call. Free functions; any
// thread.
#pragma once

#include <string_view>
#include <vector>

#include "chat/messages.h"

namespace sluice::chat {

// The calls in `text`, which is what stands between the markers (markers.h). Empty if it isn't all calls.
std::vector<ToolCall> ParseToolCalls(std::string_view text);

// The same for an answer without markers, which must be one or more JSON objects with a name and arguments.
std::vector<ToolCall> ParseBareToolCalls(std::string_view text);

// Can `text`, the beginning of an answer, still become one that ParseBareToolCalls takes?
bool MayBeBareToolCall(std::string_view text);

}  // namespace sluice::chat
