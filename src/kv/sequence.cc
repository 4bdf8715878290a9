#include "kv/sequence.h"

#include <utility>

#include "base/check.h"

namespace sluice::kv {

Sequence::Sequence(Cache& cache)
    : cache_(&cache),
      tables_{PageTable(cache.retention(Pool::kFull)), PageTable(cache.retention(Pool::kSliding))} {}

Sequence::Sequence(Sequence&& other) noexcept
    : cache_(other.cache_), tables_(other.tables_), length_(std::exchange(other.length_, 0)) {
  other.tables_ = {PageTable({}), PageTable({})};
}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this != &other) {
    Clear();
    cache_ = other.cache_;
    std::swap(tables_, other.tables_);
    length_ = std::exchange(other.length_, 0);
  }
  return *this;
}

bool Sequence::HasPagesFor(int64_t n) {
  bool enough = true;
  ForEachTable([&](PagePool& pool, PageTable& table) {
    table.DropUnseen(pool, length_ + n, cache_->retention(Pool::kFull).slack);
    enough = enough && table.PagesToGrow(pool, length_, n) <= pool.free();
  });
  return enough;
}

Status Sequence::Append(int64_t n) {
  const CacheConfig& config = cache_->config();
  if (config.overflow == Overflow::kStop && n > config.context_length - length_) {
    return Fail(ErrorCode::kDoesNotFit,
                "the context is full: {} tokens are held and {} more were asked for, of at most {}", length_,
                n, config.context_length);
  }
  if (!HasPagesFor(n)) {
    Error error = Fail(ErrorCode::kDoesNotFit, "the KV cache is full");
    ForEachTable([&](PagePool& pool, PageTable& table) {
      error.message +=
          fmt::format("; {} pages of {} positions are needed, {} of {} are free",
                      table.PagesToGrow(pool, length_, n), kPagePositions, pool.free(), pool.count());
    });
    return error;
  }
  ForEachTable([&](PagePool& pool, PageTable& table) { table.Grow(pool, length_, n); });
  length_ += n;
  return {};
}

bool Sequence::CanTruncate(int64_t length) const {
  return std::ranges::all_of(tables_, [&](const PageTable& table) { return table.CanTruncate(length); });
}

void Sequence::Truncate(int64_t length) {
  SLUICE_CHECK(0 <= length && length <= length_);
  ForEachTable([&](PagePool& pool, PageTable& table) { table.Truncate(pool, length); });
  length_ = length;
}

Sequence Sequence::Fork() const {
  return Sequence(cache_,
                  {table(Pool::kFull).Share(cache_->pool(Pool::kFull)),
                   table(Pool::kSliding).Share(cache_->pool(Pool::kSliding))},
                  length_);
}

Sequence Sequence::Checkpoint() const {
  Sequence checkpoint = Fork();
  checkpoint.ForEachTable(
      [&](PagePool& pool, PageTable& table) { table.DropUnseen(pool, length_, kCheckpointMargin); });
  return checkpoint;
}

}  // namespace sluice::kv
