// PagePool: equal pages of one block of memory, handed out and counted by reference. A page that somebody
// else holds too is never handed out again, and whoever wants to write to it copies it first (Own).
//
// Does not own the memory. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::kv {

class PagePool {
 public:
  PagePool() = default;
  // `base`: [pages, page_bytes]
  PagePool(std::byte* base, size_t page_bytes, int64_t pages);

  std::byte* data(int32_t page) const { return base_ + static_cast<size_t>(page) * page_bytes_; }
  size_t page_bytes() const { return page_bytes_; }
  int64_t count() const { return static_cast<int64_t>(references_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  bool shared(int32_t page) const { return references_[static_cast<size_t>(page)] > 1; }

  int32_t Take();  // precondition: free() > 0
  void Share(int32_t page) { ++references_[static_cast<size_t>(page)]; }
  void Release(int32_t page);
  // A page with the contents of `page` that the caller alone holds; the caller's reference moves there.
  // Precondition: free() > 0 if it is shared.
  int32_t Own(int32_t page);

 private:
  std::byte* base_ = nullptr;
  size_t page_bytes_ = 0;
  std::vector<int32_t> references_;  // by page
  std::vector<int32_t> free_;
};

}  // namespace sluice::kv
