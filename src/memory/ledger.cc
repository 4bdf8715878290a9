#include "memory/ledger.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <string>

#include "base/check.h"
#include "base/units.h"

namespace sluice::memory {
namespace {

constexpr std::array<std::string_view, kAccountCount> kNames = {
    "weights.pinned", "weights.stream", "weights.experts", "kv", "activations", "tokenizer", "io",
    "server",         "reserve"};

// "weights.pinned 4.20 GiB, kv 512 MiB": the largest accounts in use, at most three.
std::string LargestAccounts(const LedgerSnapshot& state) {
  std::array<size_t, kAccountCount> order;
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return state.used_bytes[i]; });
  std::string text;
  for (const size_t i : std::span(order).first(3)) {
    if (state.used_bytes[i] == 0) break;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kNames[i], FormatBytes(state.used_bytes[i]));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::string_view AccountName(Account account) { return kNames[static_cast<size_t>(account)]; }

uint64_t LedgerSnapshot::total_bytes() const {
  return std::accumulate(used_bytes.begin(), used_bytes.end(), uint64_t{0});
}

Status Ledger::Reserve(Account account, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const uint64_t available = state_.available_bytes();
  if (bytes > available) {
    return Fail(ErrorCode::kDoesNotFit, "{} needs {}, but {} is left of the budget of {} (in use: {})",
                AccountName(account), FormatBytes(bytes), FormatBytes(available),
                FormatBytes(state_.budget_bytes), LargestAccounts(state_));
  }
  state_.used_bytes[static_cast<size_t>(account)] += bytes;
  return {};
}

void Ledger::Release(Account account, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  uint64_t& used = state_.used_bytes[static_cast<size_t>(account)];
  SLUICE_CHECK(bytes <= used);
  used -= bytes;
}

Result<Reservation> Reservation::Take(Ledger& ledger, Account account, uint64_t bytes) {
  SLUICE_TRY(ledger.Reserve(account, bytes));
  Reservation reservation;
  reservation.ledger_ = &ledger;
  reservation.account_ = account;
  reservation.bytes_ = bytes;
  return reservation;
}

LedgerSnapshot Ledger::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace sluice::memory
