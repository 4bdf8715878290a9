#include "platform/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/check.h"
#include "base/units.h"
#include "platform/os_error.h"

namespace sluice::platform {
namespace {

// Linux 5.14 and later; older C libraries don't name it.
constexpr int kMadvPopulateWrite = 23;

}  // namespace

Result<Mapping> Mapping::OfFile(const File& file) {
  SLUICE_TRY_ASSIGN(const uint64_t size, file.Size());
  if (size == 0) return Fail(ErrorCode::kCorrupt, "{} is empty", file.path());
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) return OsError(errno, "mapping the {} bytes of {}", size, file.path());
  return Mapping(static_cast<std::byte*>(data), size);
}

Result<Mapping> Mapping::Anonymous(size_t size, PageSize page_size) {
  SLUICE_CHECK(size > 0);
  if (size > SIZE_MAX / 2) return OsError(ENOMEM, "taking {} of memory", FormatBytes(size));
  // mmap aligns to a page only: for 2 MiB take that much more and give the ends back.
  const size_t slack = page_size == PageSize::kHuge ? kHugePageBytes : 0;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t mapped = AlignUp(size, page) + slack;
  void* address = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return OsError(errno, "taking {} of memory", FormatBytes(size));
  auto* const begin = static_cast<std::byte*>(address);
  if (page_size == PageSize::kBase) return Mapping(begin, size);

  const auto misaligned = reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
  const size_t head = misaligned == 0 ? 0 : kHugePageBytes - misaligned;
  if (head > 0) ::munmap(begin, head);
  if (head < slack) ::munmap(begin + mapped - (slack - head), slack - head);
  // Not granted where huge pages are switched off: then these are ordinary pages.
  ::madvise(begin + head, mapped - slack, MADV_HUGEPAGE);
  return Mapping(begin + head, size);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void Mapping::Discard(size_t offset, size_t size) {
  SLUICE_CHECK(offset <= size_ && size <= size_ - offset);
  // Of a huge page that is discarded in part nothing is freed until memory runs out, unless it is split
  // before: MADV_FREE does that.
  ::madvise(data_ + offset, size, MADV_FREE);
  ::madvise(data_ + offset, size, MADV_DONTNEED);
}

void Mapping::Touch() {
  if (::madvise(data_, size_, kMadvPopulateWrite) == 0) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < size_; i += page) {
    volatile std::byte* const byte = data_ + i;
    *byte = *byte;
  }
}

}  // namespace sluice::platform
