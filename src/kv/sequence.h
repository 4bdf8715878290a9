// Sequence: the positions 0 … length − 1 of one conversation, as pages of a cache. It grows, shrinks, forks,
// and comes back to checkpoints. Where the cache has rings, old positions are gone for some layers, and the
// sequence can only be cut back as far as the rings still hold what the model would see there.
//
// Move-only: a copy is made by Fork. One thread at a time; must not outlive its cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

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
  // Where a position is kept: at itself, unless others before it have been let go (kHeavy; then of positions
  // that were appended since).
  int64_t slot(int64_t position) const { return position - evicted_; }
  // The page that holds slots 64 · index … for a layer. Precondition: it is held.
  int32_t page(int layer, int64_t index) const { return table(cache_->pool_of(layer)).page(index); }
  // By what position keys and queries are turned.
  int64_t RopePosition(int64_t position) const {
    return keeps_heavy() ? cache_->heavy().FramePosition(position) : position;
  }

  // kHeavy: what is kept of each layer, and which of its scores are those with the batch under way.
  bool keeps_heavy() const { return cache_->heavy().slots > 0; }
  HeavySet set() const { return cache_->Set(set_); }
  int scores_under_way() const { return 1 - current_; }

  // Makes room for `n` more positions, ready to be written, and lengthens the sequence by them. All or
  // nothing. Errors: kDoesNotFit when the context or a pool is full, with the numbers.
  Status Append(int64_t n);
  // Whether Append(n) would find the pages that it needs.
  bool HasPagesFor(int64_t n);
  // Most positions that one batch may append: kHeavy lets tokens go between batches only.
  int64_t BatchRoom() const;
  // Ends a batch: all positions have been written, and (kHeavy) the scores are those after it.
  void Commit();

  // Whether the sequence can be cut to `length`: to 0 always, else while the rings hold what is seen there,
  // and under kHeavy no further than to where the batch under way began. As many positions as the largest
  // batch has, and kCheckpointMargin, can always be taken back from the longest length.
  bool CanTruncate(int64_t length) const;
  // Forgets the positions from `length` on. Precondition: 0 ≤ length ≤ this->length(), CanTruncate(length).
  void Truncate(int64_t length);
  void Clear() { Truncate(0); }
  // A second sequence with the same past; pages are shared until one of the two writes.
  Sequence Fork() const;

  // What is held, in numbers: with the bytes of ForEachRun, all of a sequence.
  struct Held {
    int64_t length = 0, evicted = 0;
    std::array<int64_t, 2> first_page = {};  // of the rings
    int64_t current = 0;
  };
  Held held() const;
  // Calls fn(bytes) -> Status for every run of memory that belongs to the sequence, in one order, until it
  // fails. Precondition: no batch is under way.
  template <typename F>
  Status ForEachRun(F&& fn) {
    Status done;
    ForEachTable([&](PagePool& pool, PageTable& table) {
      table.ForEach([&](int64_t, int32_t page) {
        if (done) done = fn(std::span(pool.data(page), pool.page_bytes()));
      });
    });
    if (done && set_ >= 0) {
      PagePool& sets = cache_->pool(Pool::kSets);
      done = fn(std::span(sets.data(set_), sets.page_bytes()));
    }
    return done;
  }
  // Makes an empty sequence hold so much, with whatever bytes; ForEachRun is to fill them, and CheckHeld to
  // look at them. Errors: kCorrupt for what can't be, kDoesNotFit.
  Status Hold(const Held& held);
  Status CheckHeld() const;

  // A checkpoint is a past to come back to, whatever was appended or truncated since. It holds what it takes
  // to go on from here, or from up to kCheckpointMargin positions before.
  Sequence Checkpoint() const;
  void Restore(const Sequence& checkpoint) { *this = checkpoint.Fork(); }

 private:
  static constexpr size_t kTables = 2;  // of kFull and kSliding
  using Tables = std::array<PageTable, kTables>;

  const PageTable& table(Pool pool) const { return tables_[static_cast<size_t>(pool)]; }
  int64_t slots() const { return length_ - evicted_; }
  bool MustEvict() const { return keeps_heavy() && slots() == cache_->heavy().slots; }
  void BeginHeavyBatch();
  void Evict();
  void Compact(int layer, std::span<const uint8_t> gone);

  // Calls fn(pool, table) for each pool that has pages.
  template <typename F>
  void ForEachTable(F&& fn) {
    for (size_t i = 0; i < kTables; ++i) {
      if (PagePool& pool = cache_->pool(static_cast<Pool>(i)); pool.count() > 0) fn(pool, tables_[i]);
    }
  }

  Cache* cache_;
  Tables tables_;
  int64_t length_ = 0;
  // kHeavy:
  int64_t evicted_ = 0;    // positions that were let go, in every layer as many
  int64_t committed_ = 0;  // length when the batch under way began
  int32_t set_ = -1;       // page in Pool::kSets
  int current_ = 0;        // which of the set's scores hold
};

}  // namespace sluice::kv
