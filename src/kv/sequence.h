// Sequence: the positions 0 … length − 1 of one conversation, as pages of a cache. It grows, shrinks, forks,
// and comes back to checkpoints. Where the cache has rings, old positions are gone for some layers, and the
// sequence can only be cut back as far as the rings still hold what the model would see there.
//
// Move-only: a copy is made by Fork. One thread at a time; must not outlive its cache.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "kv/cache.h"

namespace sluice::kv {

class Sequence {
 public:
  explicit Sequence(Cache& cache);
  ~Sequence() { Clear(); }
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;

  int64_t length() const { return length_; }
  // The page that holds positions 64 · index … for a layer. Precondition: it is held.
  int32_t page(int layer, int64_t index) const { return table(cache_->pool_of(layer)).page(index); }

  // Makes room for `n` more positions, ready to be written, and lengthens the sequence by them. All or
  // nothing. Errors: kDoesNotFit when the context or a pool is full, with the numbers.
  Status Append(int64_t n);
  // Whether Append(n) would find the pages that it needs.
  bool HasPagesFor(int64_t n);

  // Whether the sequence can be cut to `length`: to 0 always, else while the rings hold what is seen there.
  // As many positions as the largest batch has, and kCheckpointMargin, can always be taken back from the
  // longest length.
  bool CanTruncate(int64_t length) const;
  // Forgets the positions from `length` on. Precondition: 0 ≤ length ≤ this->length(), CanTruncate(length).
  void Truncate(int64_t length);
  void Clear() { Truncate(0); }
  // A second sequence with the same past; pages are shared until one of the two writes.
  Sequence Fork() const;

  // A checkpoint is a past to come back to, whatever was appended or truncated since. It holds what it takes
  // to go on from here, or from up to kCheckpointMargin positions before.
  Sequence Checkpoint() const;
  void Restore(const Sequence& checkpoint) { *this = checkpoint.Fork(); }

 private:
  Sequence(Cache* cache, std::array<PageTable, kPoolCount> tables, int64_t length)
      : cache_(cache), tables_(std::move(tables)), length_(length) {}
  const PageTable& table(Pool pool) const { return tables_[static_cast<size_t>(pool)]; }

  // Calls fn(pool, table) for each pool that has pages.
  template <typename F>
  void ForEachTable(F&& fn) {
    for (size_t i = 0; i < kPoolCount; ++i) {
      if (PagePool& pool = cache_->pool(static_cast<Pool>(i)); pool.count() > 0) fn(pool, tables_[i]);
    }
  }

  Cache* cache_;
  std::array<PageTable, kPoolCount> tables_;
  int64_t length_ = 0;
};

}  // namespace sluice::kv
