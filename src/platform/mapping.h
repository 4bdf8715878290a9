// Mapping: an owned mmap, of a file (read-only) or of fresh zeroed memory. Move-only;
// unmapped when destroyed.
//
// Reading a mapped file that has become shorter raises SIGBUS: map only where the kernel is meant to decide
// what stays in memory, under a ShrinkGuard, and use File::PreadFull otherwise.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/result.h"
#include "platform/file.h"

namespace sluice::platform {

// At this alignment and in this size, memory can be backed by huge pages.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

enum class PageSize {
  kBase,
  // 2 MiB-aligned and marked for transparent huge pages, as far as the system allows them. Reserved pages
  // (MAP_HUGETLB) are not used: they are left out of RSS and of the memory cgroup, and running out of them
  // is a SIGBUS.
  kHuge
};

class Mapping {
 public:
  Mapping() = default;
  // The whole file. It must not be empty. The file may be closed afterwards.
  static Result<Mapping> OfFile(const File& file);
  // `size` bytes of memory that reads as zero, private to this process. Pages are taken when first touched.
  // size > 0.
  static Result<Mapping> Anonymous(size_t size, PageSize page_size = PageSize::kBase);

  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Anonymous memory only.
  std::span<std::byte> writable_bytes() { return {data_, size_}; }

  // Gives the pages of anonymous memory in [offset, offset + size) back to the system: they read as zero, and are taken
  // again when they are touched. Both are multiples of a page.
  void Discard(size_t offset, size_t size);

  // Takes all pages of anonymous memory now, so that no fault happens later. Contents are kept.
  void Touch();

 private:
  Mapping(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sluice::platform
