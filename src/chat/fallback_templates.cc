#include "chat/fallback_templates.h"

#include <algorithm>
#include <string>

namespace sluice::chat {
namespace {

constexpr std::string_view kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

constexpr std::string_view kLlama3 =
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content "
    "| trim }}"
    "<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}";

// The system message goes into the first user turn, as these models were trained.
constexpr std::string_view kLlama2 =
    "{% set ns = namespace(system='') %}{% for m in messages %}"
    "{% if m.role == 'system' %}{% set ns.system = '<<SYS>>\n' ~ m.content ~ '\n<</SYS>>\n\n' %}"
    "{% elif m.role == 'user' %}{{ bos_token }}[INST] {{ ns.system }}{{ m.content | trim }} [/INST]"
    "{% set ns.system = '' %}"
    "{% else %} {{ m.content | trim }} {{ eos_token }}{% endif %}{% endfor %}";

// Without a system role: ChatTemplate merges it.
constexpr std::string_view kMistral =
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% elif m.role == 'assistant' %} {{ m.content | trim }}{{ eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported') }}{% endif %}{% endfor %}";

constexpr std::string_view kGemma =
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}";

constexpr std::string_view kPhi3 =
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}";

constexpr std::string_view kZephyr =
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}";

constexpr std::string_view kGranite =
    "{% for m in messages %}<|start_of_role|>{{ m.role }}<|end_of_role|>{{ m.content }}<|end_of_text|>\n{% "
    "endfor %}"
    "{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}";

constexpr std::string_view kCommandR =
    "{{ bos_token }}{% for m in messages %}<|START_OF_TURN_TOKEN|>"
    "{{ {'system': '<|SYSTEM_TOKEN|>', 'assistant': '<|CHATBOT_TOKEN|>'}.get(m.role, '<|USER_TOKEN|>') }}"
    "{{ m.content | trim }}<|END_OF_TURN_TOKEN|>{% endfor %}"
    "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}";

constexpr std::string_view kVicuna =
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ m.content }}\n\n"
    "{% elif m.role == 'user' %}USER: {{ m.content }}\n"
    "{% else %}ASSISTANT: {{ m.content }}{{ eos_token }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}";

constexpr std::string_view kAlpaca =
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ m.content }}\n\n"
    "{% elif m.role == 'user' %}### Instruction:\n{{ m.content }}\n\n"
    "{% else %}### Response:\n{{ m.content }}{{ eos_token }}\n\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}### Response:\n{% endif %}";

constexpr FallbackTemplate kTemplates[] = {
    {"chatml", kChatMl},      {"llama3", kLlama3}, {"llama2", kLlama2}, {"mistral", kMistral},
    {"gemma", kGemma},        {"phi3", kPhi3},     {"zephyr", kZephyr}, {"granite", kGranite},
    {"command-r", kCommandR}, {"vicuna", kVicuna}, {"alpaca", kAlpaca},
};

// A control token that only one family has.
constexpr std::pair<std::string_view, std::string_view> kByToken[] = {
    {"<|im_start|>", "chatml"},
    {"<|start_header_id|>", "llama3"},
    {"<start_of_turn>", "gemma"},
    {"<|start_of_role|>", "granite"},
    {"<|START_OF_TURN_TOKEN|>", "command-r"},
    {"[INST]", "mistral"},
    {"<|end|>", "phi3"},
};

// A word in the model's name, in lower case.
constexpr std::pair<std::string_view, std::string_view> kByName[] = {
    {"zephyr", "zephyr"},   {"tinyllama", "zephyr"}, {"vicuna", "vicuna"},  {"alpaca", "alpaca"},
    {"mistral", "mistral"}, {"mixtral", "mistral"},  {"llama-2", "llama2"}, {"llama 2", "llama2"},
    {"llama2", "llama2"},   {"codellama", "llama2"},
};

}  // namespace

const FallbackTemplate* FindFallback(std::string_view name) {
  for (const FallbackTemplate& fallback : kTemplates) {
    if (fallback.name == name) return &fallback;
  }
  return nullptr;
}

const FallbackTemplate& ChooseFallback(const TemplateSource& source) {
  if (source.has_token) {
    for (const auto& [token, name] : kByToken) {
      if (source.has_token(token)) return *FindFallback(name);
    }
  }
  std::string model_name(source.model_name.substr(0, 200));
  std::transform(model_name.begin(), model_name.end(), model_name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const auto& [word, name] : kByName) {
    if (model_name.find(word) != std::string::npos) return *FindFallback(name);
  }
  if (source.architecture.starts_with("gemma")) return *FindFallback("gemma");
  if (source.architecture == "phi3") return *FindFallback("phi3");
  return kTemplates[0];
}

}  // namespace sluice::chat
