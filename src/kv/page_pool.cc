#include "kv/page_pool.h"

#include <cstring>

#include "base/check.h"

namespace sluice::kv {

PagePool::PagePool(std::byte* base, size_t page_bytes, int64_t pages)
    : base_(base), page_bytes_(page_bytes), references_(static_cast<size_t>(pages), 0) {
  free_.reserve(static_cast<size_t>(pages));
  for (int64_t page = pages - 1; page >= 0; --page) free_.push_back(static_cast<int32_t>(page));
}

int32_t PagePool::Take() {
  SLUICE_CHECK(!free_.empty());
  const int32_t page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::Release(int32_t page) {
  int32_t& references = references_[static_cast<size_t>(page)];
  SLUICE_CHECK(references > 0);
  if (--references == 0) free_.push_back(page);
}

int32_t PagePool::Own(int32_t page) {
  if (!shared(page)) return page;
  const int32_t own = Take();
  std::memcpy(data(own), data(page), page_bytes_);
  Release(page);
  return own;
}

}  // namespace sluice::kv
