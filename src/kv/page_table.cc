#include "kv/page_table.h"

#include "base/check.h"

namespace sluice::kv {

int64_t PageTable::PagesToGrow(const PagePool& pool, int64_t length, int64_t n) const {
  const bool copies_last = n > 0 && length % kPagePositions != 0 && pool.shared(page(end_ - 1));
  return PagesFor(length + n) - end_ + copies_last;
}

void PageTable::Grow(PagePool& pool, int64_t length, int64_t n) {
  if (n > 0 && length % kPagePositions != 0) Own(pool, end_ - 1);
  SLUICE_CHECK(PagesFor(length + n) - std::max(first_, retention_.sink_pages()) <= retention_.ring_pages());
  for (; end_ < PagesFor(length + n); ++end_) pages_[Slot(end_)] = pool.Take();
}

void PageTable::DropUnseen(PagePool& pool, int64_t position, int64_t margin) {
  const int64_t sinks = retention_.sink_pages();
  const int64_t keep =
      std::min(end_, retention_.FirstSeen(std::max<int64_t>(0, position - margin)) / kPagePositions);
  for (; first_ < keep; ++first_) {
    if (first_ >= sinks) pool.Release(page(first_));
  }
}

void PageTable::Truncate(PagePool& pool, int64_t length) {
  SLUICE_CHECK(CanTruncate(length));
  const int64_t sinks = retention_.sink_pages();
  const int64_t end = PagesFor(length);
  for (; end_ > end; --end_) {
    if (holds(end_ - 1)) pool.Release(page(end_ - 1));
  }
  if (first_ <= sinks || length == 0) first_ = 0;
}

bool PageTable::CanHold(int64_t length, int64_t first) const {
  const int64_t end = PagesFor(length), sinks = retention_.sink_pages();
  const int64_t needed = std::max(sinks, retention_.FirstSeen(length) / kPagePositions);
  return 0 <= first && first <= std::min(end, needed) && (first == 0 || retention_.window > 0) &&
         end - std::max(first, sinks) <= retention_.ring_pages();
}

int64_t PageTable::PagesToHold(int64_t length, int64_t first) const {
  const int64_t end = PagesFor(length), sinks = retention_.sink_pages();
  return std::min(end, sinks) + std::max<int64_t>(0, end - std::max(first, sinks));
}

void PageTable::Hold(PagePool& pool, int64_t length, int64_t first) {
  SLUICE_CHECK(end_ == 0 && CanHold(length, first));
  first_ = first;
  for (; end_ < PagesFor(length); ++end_) {
    if (end_ >= first_ || end_ < retention_.sink_pages()) pages_[Slot(end_)] = pool.Take();
  }
}

PageTable PageTable::Share(PagePool& pool) const {
  ForEach([&](int64_t, int32_t page) { pool.Share(page); });
  return *this;
}

}  // namespace sluice::kv
