#include "chat/markers.h"

namespace sluice::chat {
namespace {

constexpr MarkerPair kThinkTags[] = {
    {"Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"},  // Apriel
    {"<think:opensource>", "</think:opensource>"},                 // Hunyuan 3
    {"<seed:think>", "</seed:think>"},                             // Seed-OSS
    {"<|START_THINKING|>", "<|END_THINKING|>"},                    // Command A, R7B
    {"[THINK]", "[/THINK]"},                                       // Magistral
    {"<|channel>thought\n", "<channel|>"},                         // Gemma 4
    {"<|inner_prefix|>", "<|inner_suffix|>"},                      // Apertus
    {"◁think▷", "◁/think▷"},                                       // Kimi-VL
    {"<think>", "</think>"},                                       // DeepSeek R1, Qwen3 and most others
    {"<thinking>", "</thinking>"},                                 //
    {"<thought>", "</thought>"},                                   //
    {"<reasoning>", "</reasoning>"},                               //
};

// The longer ones first where one contains another.
constexpr MarkerPair kToolMarkers[] = {
    {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},              // DeepSeek V3, R1
    {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},  // Kimi K2
    {"<|START_ACTION|>", "<|END_ACTION|>"},                          // Command A, R7B
    {"<minimax:tool_call>", "</minimax:tool_call>"},                 // MiniMax
    {"<seed:tool_call>", "</seed:tool_call>"},                       // Seed-OSS
    {"<TOOLCALL>", "</TOOLCALL>"},                                   // Nemotron
    {"<tool_calls>", "</tool_calls>"},                               // Apriel
    {"<tool_call>", "</tool_call>"},                                 // Hermes, Qwen, GLM
    {"[TOOL_CALLS]", ""},                                            // Mistral
    {"<function=", "</function>"},                                   // Functionary
    {"<|tool_call|>", ""},                                           // Granite
    {"functools", ""},                                               // Firefunction
    {"<|python_tag|>", ""},                                          // Llama 3
};

template <size_t n>
std::optional<MarkerPair> FindIn(const MarkerPair (&table)[n], std::string_view text) {
  for (const MarkerPair& pair : table) {
    if (text.find(pair.open) != text.npos) return pair;
    if (!pair.close.empty() && text.find(pair.close) != text.npos) return pair;
  }
  return std::nullopt;
}

}  // namespace

std::optional<MarkerPair> FindThinkTags(std::string_view template_text) {
  return FindIn(kThinkTags, template_text);
}

std::optional<MarkerPair> FindToolMarkers(std::string_view text) { return FindIn(kToolMarkers, text); }

}  // namespace sluice::chat
