// CharsMap: SentencePiece's precompiled normalisation ("NFKC with extras"): a trie of character sequences,
// each with what replaces it. Format (google/sentencepiece, normalizer.cc and darts-clone): a little-endian
// uint32 with the trie's size in bytes, the trie as uint32 units of a double array, then the replacements,
// each ended by a NUL.
//
// Immutable after Create; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::text {

class CharsMap {
 public:
  // An empty map changes nothing.
  CharsMap() = default;
  // Copies `bytes`. Errors: kCorrupt when the sizes don't fit together.
  static Result<CharsMap> Create(std::span<const std::byte> bytes);

  struct Prefix {
    size_t size;                   // bytes of the text that are replaced; 0 when the map has nothing for them
    std::string_view replacement;  // a view into the map
  };
  // The longest beginning of `text` that the map replaces.
  Prefix Match(std::string_view text) const;

  size_t memory_bytes() const { return trie_.capacity() * sizeof(uint32_t) + replacements_.capacity(); }

 private:
  std::vector<uint32_t> trie_;
  std::string replacements_;  // ends with a NUL
};

}  // namespace sluice::text
