// Ledger: who has how much of the memory budget. All large memory is reserved here before it is taken, and
// what `plan`, `--stats` and the server show are these figures.
//
// Thread-safe. Outlives everything that is charged to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace sluice::memory {

enum class Account : uint8_t {
  kWeightsPinned,   // weights that stay
  kWeightsStream,   // the ring that streamed weights pass through
  kWeightsExperts,  // the expert cache
  kKv,              // keys and values, window rings, recurrent state
  kActivations,
  kTokenizer,
  kIo,
  kServer,
  kReserve  // kept free, for what no account has
};
inline constexpr size_t kAccountCount = 9;

// "weights.pinned", "kv" …: the names that people see.
std::string_view AccountName(Account account);

struct LedgerSnapshot {
  uint64_t budget_bytes = 0;
  std::array<uint64_t, kAccountCount> used_bytes = {};  // by Account

  uint64_t used(Account account) const { return used_bytes[static_cast<size_t>(account)]; }
  uint64_t total_bytes() const;
  uint64_t available_bytes() const { return budget_bytes - total_bytes(); }
};

class Ledger {
 public:
  // For a program that was given no budget: figures are kept, nothing is refused.
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  explicit Ledger(uint64_t budget_bytes) : state_{.budget_bytes = budget_bytes} {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Error: kDoesNotFit when less than `bytes` is left of the budget; the message has what was asked, what is
  // left, and who has the most. Nothing is reserved then.
  Status Reserve(Account account, uint64_t bytes);
  // Gives back part or all of what was reserved (more than that is a bug).
  void Release(Account account, uint64_t bytes);

  LedgerSnapshot Snapshot() const;

 private:
  mutable std::mutex mutex_;
  LedgerSnapshot state_;
};

// A part of the budget that is held while this lives, for memory that comes from elsewhere than an Arena. Move-only.
class Reservation {
 public:
  Reservation() = default;
  // Errors: as Ledger::Reserve. `ledger` outlives the result.
  static Result<Reservation> Take(Ledger& ledger, Account account, uint64_t bytes);
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation() {
    if (ledger_ != nullptr) ledger_->Release(account_, bytes_);
  }

 private:
  Ledger* ledger_ = nullptr;
  Account account_ = Account::kReserve;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::memory
