#include "memory/arena.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace sluice::memory {

Result<Arena> Arena::Create(uint64_t size, Account account, Ledger& ledger, Options options) {
  Arena arena;
  if (size == 0) return arena;
  if (size <= SIZE_MAX / 2) size = AlignUp(size, kPageBytes);  // beyond, Anonymous refuses
  SLUICE_TRY(ledger.Reserve(account, size));
  auto memory = platform::Mapping::Anonymous(size, options.page_size);
  if (!memory) {
    ledger.Release(account, size);
    return Annotate(std::move(memory).error(), std::string(AccountName(account)));
  }
  arena.memory_ = *std::move(memory);
  arena.ledger_ = &ledger;
  arena.account_ = account;
  if (options.touch) arena.memory_.Touch();
  return arena;
}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(ledger_, other.ledger_);
  std::swap(account_, other.account_);
  std::swap(used_, other.used_);
  std::swap(given_back_, other.given_back_);
  return *this;
}

Arena::~Arena() {
  if (ledger_ != nullptr) ledger_->Release(account_, memory_.size() - given_back_);
}

std::span<std::byte> Arena::Allocate(size_t size, size_t alignment) {
  SLUICE_CHECK(alignment <= kPageBytes && (alignment & (alignment - 1)) == 0);
  const size_t begin = AlignUp(used_, alignment);
  SLUICE_CHECK(begin <= memory_.size() && size <= memory_.size() - begin);
  used_ = begin + size;
  return memory_.writable_bytes().subspan(begin, size);
}

uint64_t Arena::GiveBack(std::span<const std::byte> bytes) {
  const std::span<std::byte> all = memory_.writable_bytes();
  SLUICE_CHECK(bytes.data() >= all.data() && bytes.data() + bytes.size() <= all.data() + all.size());
  const auto first = AlignUp(static_cast<size_t>(bytes.data() - all.data()), kPageBytes);
  const auto end = static_cast<size_t>(bytes.data() + bytes.size() - all.data()) / kPageBytes * kPageBytes;
  if (end <= first) return 0;
  memory_.Discard(first, end - first);
  ledger_->Release(account_, end - first);
  given_back_ += end - first;
  return end - first;
}

}  // namespace sluice::memory
