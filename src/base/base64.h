// Base64 (RFC 4648), for bytes that travel as text. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

std::string EncodeBase64(std::string_view bytes);

// Padding may be missing, and newlines may follow. nullopt for another character, or a length that no bytes
// have.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace sluice
