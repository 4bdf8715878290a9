// MergeTable: the merges of a byte-pair encoding, in token ids. Which pair of neighbours joins first is
// decided by the merge's rank, its place in the list.
//
// Immutable after Create; any number of threads may merge at once, each with its own Workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace sluice::text {

class MergeTable {
 public:
  // Room that is reused from word to word.
  struct Workspace {
    std::vector<uint64_t> queue;
    std::vector<uint32_t> next, previous;
  };

  // Each merge is "left right", two token texts with one space between. Merges that name a text without a
  // token are left out, with a warning appended. Errors: kCorrupt when the pairs are made to collide.
  static Result<MergeTable> Create(const Vocabulary& vocabulary, std::span<const std::string_view> merges,
                                   std::vector<std::string>* warnings);

  // Merges `symbols` until no pair of neighbours has a merge: lowest rank first, leftmost among equals. In
  // time n log n of their number.
  void Apply(std::vector<TokenId>* symbols, Workspace* workspace) const;

  size_t memory_bytes() const {
    return merges_.capacity() * sizeof(Merge) + slots_.capacity() * sizeof(uint32_t);
  }

 private:
  struct Merge {
    TokenId left, right, result;
  };
  static constexpr uint32_t kNoMerge = UINT32_MAX;

  // The rank of the merge that joins the two, or kNoMerge.
  uint32_t Find(TokenId left, TokenId right) const;

  std::vector<Merge> merges_;  // by rank
  std::vector<uint32_t>
      slots_;  // hash table from pair to rank, linear probing; a power of two, at most half full
};

}  // namespace sluice::text
