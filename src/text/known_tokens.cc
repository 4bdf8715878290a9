#include "text/known_tokens.h"

namespace sluice::text {
namespace {

constexpr KnownToken kKnownTokens[] = {
    {"<|eot_id|>", KnownRole::kEndOfTurn},             // Llama 3
    {"<|im_end|>", KnownRole::kEndOfTurn},             // ChatML: Qwen, SmolLM …
    {"<|end|>", KnownRole::kEndOfTurn},                // Phi 3
    {"<end_of_turn>", KnownRole::kEndOfTurn},          // Gemma
    {"<|endoftext|>", KnownRole::kEndOfTurn},          // GPT-2 and many others
    {"<|end_of_text|>", KnownRole::kEndOfTurn},        // Granite, Llama 3 base
    {"<EOT>", KnownRole::kEndOfTurn, true},            // CodeLlama
    {"_<EOT>", KnownRole::kEndOfTurn, true},           // CodeLlama
    {"[EOT]", KnownRole::kEndOfTurn, true},            // Kimi K2
    {"<｜end▁of▁sentence｜>", KnownRole::kEndOfTurn},  // DeepSeek
    {"<end_of_utterance>", KnownRole::kEndOfTurn},     // SmolDocling
    {"<|eom_id|>", KnownRole::kEndOfMessage},          // Llama 3.1
    {"<|return|>", KnownRole::kEnd},                   // gpt-oss
    {"<|call|>", KnownRole::kEnd},                     // gpt-oss
    {"<|flush|>", KnownRole::kEnd},                    // Solar Open
    {"<|calls|>", KnownRole::kEnd},                    // Solar Open
    {"<turn|>", KnownRole::kEnd},                      // Gemma 4
    {"<|tool_response>", KnownRole::kEnd},             // Gemma 4
    {"<eos>", KnownRole::kEnd, true},                  // Gemma
    {"</s>", KnownRole::kEnd, true},                   // Llama 2, Mistral
    {"[EOS]", KnownRole::kEnd, true},                  // Kimi K2
    {"[e~[", KnownRole::kEnd},                         // MiniMax M2
    {"<|fim_prefix|>", KnownRole::kFimPrefix},         // Qwen
    {"<fim-prefix>", KnownRole::kFimPrefix},           // SantaCoder
    {"<fim_prefix>", KnownRole::kFimPrefix},           // StarCoder, Granite
    {"<｜fim▁begin｜>", KnownRole::kFimPrefix},        // DeepSeek
    {"<PRE>", KnownRole::kFimPrefix, true},            // CodeLlama
    {"▁<PRE>", KnownRole::kFimPrefix},                 // CodeLlama
    {"<|code_prefix|>", KnownRole::kFimPrefix},        // GLM 4.5
    {"<|prefix|>", KnownRole::kFimPrefix},             // Falcon H1
    {"<|fim_suffix|>", KnownRole::kFimSuffix},         // as above
    {"<fim-suffix>", KnownRole::kFimSuffix},
    {"<fim_suffix>", KnownRole::kFimSuffix},
    {"<｜fim▁hole｜>", KnownRole::kFimSuffix},
    {"<SUF>", KnownRole::kFimSuffix, true},
    {"▁<SUF>", KnownRole::kFimSuffix},
    {"<|code_suffix|>", KnownRole::kFimSuffix},
    {"<|suffix|>", KnownRole::kFimSuffix},
    {"<|fim_middle|>", KnownRole::kFimMiddle},
    {"<fim-middle>", KnownRole::kFimMiddle},
    {"<fim_middle>", KnownRole::kFimMiddle},
    {"<｜fim▁end｜>", KnownRole::kFimMiddle},
    {"<MID>", KnownRole::kFimMiddle, true},
    {"▁<MID>", KnownRole::kFimMiddle},
    {"<|code_middle|>", KnownRole::kFimMiddle},
    {"<|middle|>", KnownRole::kFimMiddle},
    {"<|fim_pad|>", KnownRole::kFimEnd},  // Qwen
    {"<fim-pad>", KnownRole::kFimEnd},
    {"<fim_pad>", KnownRole::kFimEnd},      // StarCoder, Granite
    {"<|fim_repo|>", KnownRole::kFimEnd},   // Qwen
    {"<|repo_name|>", KnownRole::kFimEnd},  // Qwen
    {"<fim-repo>", KnownRole::kFimEnd},
    {"<reponame>", KnownRole::kFimEnd, true},  // Granite
    {"<|file_sep|>", KnownRole::kFimEnd},      // Qwen
};

}  // namespace

std::span<const KnownToken> KnownTokens() { return kKnownTokens; }

}  // namespace sluice::text
