// Arena: one block of memory of a size known beforehand, charged to a ledger account, from which pieces are
// taken, to be given back all at once (GiveBack: or under pressure). Holds weights, the KV cache, activations.
//
// Owns the memory; move-only; the spans it hands out live as long as it does, moves included. Allocate is for
// one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/result.h"
#include "memory/ledger.h"
#include "platform/mapping.h"

namespace sluice::memory {

inline constexpr size_t kCacheLineBytes = 64;
inline constexpr size_t kPageBytes = 4096;  // what direct reads align to

class Arena {
 public:
  struct Options {
    platform::PageSize page_size = platform::PageSize::kBase;
    bool touch = false;  // take all pages now, so that none is missing later
  };

  Arena() = default;
  // Reserves `size` bytes, rounded up to whole pages, and maps them. The memory reads as zero. `ledger` must
  // outlive the arena. Error: kDoesNotFit, from the ledger or the system.
  static Result<Arena> Create(uint64_t size, Account account, Ledger& ledger, Options options);
  static Result<Arena> Create(uint64_t size, Account account, Ledger& ledger) {
    return Create(size, account, ledger, Options());
  }
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  size_t size() const { return memory_.size(); }
  size_t used() const { return used_; }
  std::span<std::byte> bytes() { return memory_.writable_bytes(); }

  // The next `size` bytes at an address that is a multiple of `alignment`, a power of two up to the page
  // size. Sizes were planned: running out is a bug (SLUICE_CHECK).
  std::span<std::byte> Allocate(size_t size, size_t alignment = kCacheLineBytes);
  // Returns the whole pages within `bytes`, which the arena handed out, to the system and to the ledger; what was in them
  // is lost. Returns how many bytes these are.
  uint64_t GiveBack(std::span<const std::byte> bytes);
  template <typename T>
  std::span<T> AllocateArray(size_t count) {
    static_assert(std::is_trivial_v<T>);
    return {reinterpret_cast<T*>(Allocate(count * sizeof(T)).data()), count};
  }

 private:
  platform::Mapping memory_;
  Ledger* ledger_ = nullptr;
  Account account_ = Account::kReserve;
  size_t used_ = 0;
  uint64_t given_back_ = 0;
};

}  // namespace sluice::memory
