// PageTable: the pages of one pool that one sequence holds. Two kinds: one that keeps every position, and a
// ring, which keeps the first positions (sinks) and the newest ones. A ring gives a page back when no query
// can see it any more, and when so many positions lie behind it that no batch under way and no withdrawn one
// can.
//
// A value with references in it: Share makes another holder, Clear lets go. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kv/page_pool.h"

namespace sluice::kv {

inline constexpr int kPagePositions = 64;

constexpr int64_t PagesFor(int64_t positions) { return (positions + kPagePositions - 1) / kPagePositions; }

// Which positions a pool keeps of a sequence.
struct Retention {
  int64_t context = 0;  // window == 0: the most positions that there are
  int64_t window = 0;   // a query at p sees those above p − window; 0: all
  int64_t sinks = 0;    // and the first ones
  int64_t slack = 0;    // a ring holds so many positions more, to be taken back

  int64_t sink_pages() const { return PagesFor(sinks); }
  int64_t ring_pages() const { return window == 0 ? PagesFor(context) : PagesFor(window + slack) + 1; }
  // Most pages that one sequence holds.
  int64_t pages() const { return sink_pages() + ring_pages(); }
  // The first position outside of the sinks that a query at `position` sees.
  int64_t FirstSeen(int64_t position) const {
    return window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
  }
};

class PageTable {
 public:
  explicit PageTable(const Retention& retention)
      : retention_(retention), pages_(static_cast<size_t>(retention.pages()), -1) {}

  // The page of positions 64 · index …; it must be held.
  int32_t page(int64_t index) const { return pages_[Slot(index)]; }
  // Whether page `index` is held.
  bool holds(int64_t index) const {
    return index < end_ && (index >= first_ || index < retention_.sink_pages());
  }
  int64_t end() const { return end_; }
  int64_t first() const { return first_; }

  // Whether a sequence of `length` positions, these held, can go on from there.
  bool CanTruncate(int64_t length) const {
    return length == 0 || first_ <= retention_.sink_pages() ||
           first_ * kPagePositions <= retention_.FirstSeen(length);
  }

  // Pages of the pool that growing from `length` to `length + n` positions takes, after DropUnseen.
  int64_t PagesToGrow(const PagePool& pool, int64_t length, int64_t n) const;
  // Precondition: the pool has them. A half-filled last page that is shared is copied.
  void Grow(PagePool& pool, int64_t length, int64_t n);
  // Gives back what no query from `position` − `margin` on sees.
  void DropUnseen(PagePool& pool, int64_t position, int64_t margin);
  // Gives back the pages that begin at `length` or later. Precondition: CanTruncate(length).
  void Truncate(PagePool& pool, int64_t length);
  // Makes page `index` the caller's own. Precondition: the pool has a free page if it is shared.
  void Own(PagePool& pool, int64_t index) { pages_[Slot(index)] = pool.Own(pages_[Slot(index)]); }
  // For an empty table: to hold the pages of `length` positions, those of a ring from page `first` on.
  bool CanHold(int64_t length, int64_t first) const;
  int64_t PagesToHold(int64_t length, int64_t first) const;  // precondition: CanHold
  void Hold(PagePool& pool, int64_t length, int64_t first);  // precondition: the pool has them
  // Another holder of the same pages.
  PageTable Share(PagePool& pool) const;

  // Calls fn(index, page) for all pages held, by ascending index.
  template <typename F>
  void ForEach(F&& fn) const {
    for (int64_t index = 0; index < std::min(end_, retention_.sink_pages()); ++index) fn(index, page(index));
    for (int64_t index = std::max(first_, retention_.sink_pages()); index < end_; ++index)
      fn(index, page(index));
  }

 private:
  size_t Slot(int64_t index) const {
    const int64_t sinks = retention_.sink_pages();
    return static_cast<size_t>(index < sinks ? index : sinks + (index - sinks) % retention_.ring_pages());
  }

  Retention retention_;
  std::vector<int32_t> pages_;  // [sink pages, ring pages]
  int64_t first_ = 0;           // of the ring's pages, the first that is held
  int64_t end_ = 0;             // behind the last page
};

}  // namespace sluice::kv
