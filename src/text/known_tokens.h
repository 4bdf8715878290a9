// What token texts mean in practice. GGUF files often leave out which tokens end a turn, so every runtime
// knows some by their spelling; this is that list. Sources: the tokenizer_config.json and
// generation_config.json of the model families named beside each entry, and the list llama.cpp keeps for the
// same purpose (llama-vocab.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::text {

enum class KnownRole : uint8_t {
  kEndOfTurn,     // ends generation; the first one present is the model's eot, if the file names none
  kEndOfMessage,  // ends generation; the model's eom, if the file names none
  kEnd,           // ends generation
  kFimPrefix,
  kFimSuffix,
  kFimMiddle,
  kFimEnd  // padding, repository and file marks of fill-in-the-middle prompts; generating one ends the answer
};

struct KnownToken {
  std::string_view text;
  KnownRole role;
  // Spelled so that ordinary vocabularies may hold it as plain text ("</s>" is an HTML tag to Gemma): it
  // counts only where the file says that it is a control token.
  bool ambiguous = false;
};

// In order of preference.
std::span<const KnownToken> KnownTokens();

}  // namespace sluice::text
