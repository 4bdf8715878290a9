#include "kv/sequence.h"

#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace sluice::kv {

Sequence::Sequence(Cache& cache)
    : cache_(&cache),
      tables_{PageTable(cache.retention(Pool::kFull)), PageTable(cache.retention(Pool::kSliding))} {}

Sequence::Sequence(Sequence&& other) noexcept : cache_(other.cache_), tables_{PageTable({}), PageTable({})} {
  *this = std::move(other);
}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this != &other) {
    Clear();
    std::swap(cache_, other.cache_);
    std::swap(tables_, other.tables_);
    std::swap(length_, other.length_);
    std::swap(evicted_, other.evicted_);
    std::swap(committed_, other.committed_);
    std::swap(set_, other.set_);
    std::swap(current_, other.current_);
  }
  return *this;
}

bool Sequence::HasPagesFor(int64_t n) {
  if (keeps_heavy()) {
    const PagePool& sets = cache_->pool(Pool::kSets);
    if ((set_ < 0 || sets.shared(set_)) && sets.free() == 0) return false;
  }
  if (MustEvict()) {
    // What moves within shared pages is copied first. Evicting then makes more room than a batch takes.
    const PagePool& pool = cache_->pool(Pool::kFull);
    int64_t shared = 0;
    table(Pool::kFull).ForEach([&](int64_t, int32_t page) { shared += pool.shared(page); });
    return shared <= pool.free();
  }
  bool enough = true;
  ForEachTable([&](PagePool& pool, PageTable& table) {
    table.DropUnseen(pool, length_ + n, cache_->retention(Pool::kFull).slack);
    enough = enough && table.PagesToGrow(pool, slots(), n) <= pool.free();
  });
  return enough;
}

int64_t Sequence::BatchRoom() const {
  if (!keeps_heavy()) return std::numeric_limits<int64_t>::max();
  return MustEvict() ? cache_->heavy().evicted() : cache_->heavy().slots - slots();
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
                      table.PagesToGrow(pool, slots(), n), kPagePositions, pool.free(), pool.count());
    });
    return error;
  }
  if (keeps_heavy()) {
    SLUICE_CHECK(n <= BatchRoom());
    if (length_ == committed_) BeginHeavyBatch();
    for (int layer = 0; layer < cache_->heavy().layers; ++layer) {
      for (int64_t i = 0; i < n; ++i) {
        const size_t slot = static_cast<size_t>(slots() + i);
        set().positions(layer)[slot] = static_cast<int32_t>(length_ + i);
        set().scores(layer, scores_under_way())[slot] = 0;
      }
    }
  }
  ForEachTable([&](PagePool& pool, PageTable& table) { table.Grow(pool, slots(), n); });
  length_ += n;
  return {};
}

void Sequence::BeginHeavyBatch() {
  PagePool& sets = cache_->pool(Pool::kSets);
  set_ = set_ < 0 ? sets.Take() : sets.Own(set_);
  if (MustEvict()) Evict();
  for (int layer = 0; layer < cache_->heavy().layers; ++layer) {
    const std::span<const float> now = set().scores(layer, current_).first(static_cast<size_t>(slots()));
    std::ranges::copy(now, set().scores(layer, scores_under_way()).begin());
  }
}

void Sequence::Evict() {
  SLUICE_CHECK(length_ == committed_ && length_ % kPagePositions == 0);
  PagePool& pool = cache_->pool(Pool::kFull);
  PageTable& pages = tables_[static_cast<size_t>(Pool::kFull)];
  for (int64_t index = 0; index < pages.end(); ++index) pages.Own(pool, index);
  for (int layer = 0; layer < cache_->heavy().layers; ++layer) {
    set().Choose(layer, current_, length_, cache_->order_, cache_->gone_);
    Compact(layer, cache_->gone_);
  }
  evicted_ += cache_->heavy().evicted();
  pages.Truncate(pool, slots());
}

// Moves what stays to the front, in its order.
void Sequence::Compact(int layer, std::span<const uint8_t> gone) {
  const int n_kv_heads = cache_->config().layers[static_cast<size_t>(layer)].n_kv_heads;
  const size_t k_bytes = cache_->k_row_bytes(layer), v_bytes = cache_->v_row_bytes(layer);
  const std::span<int32_t> positions = set().positions(layer);
  const std::span<float> scores = set().scores(layer, current_);
  size_t to = 0;
  for (size_t from = 0; from < gone.size(); ++from) {
    if (gone[from]) continue;
    if (from != to) {
      const int32_t source = page(layer, static_cast<int64_t>(from) / kPagePositions);
      const int32_t target = page(layer, static_cast<int64_t>(to) / kPagePositions);
      for (int head = 0; head < n_kv_heads; ++head) {
        std::memcpy(cache_->Keys(layer, target, head) + to % kPagePositions * k_bytes,
                    cache_->Keys(layer, source, head) + from % kPagePositions * k_bytes, k_bytes);
        std::memcpy(cache_->Values(layer, target, head) + to % kPagePositions * v_bytes,
                    cache_->Values(layer, source, head) + from % kPagePositions * v_bytes, v_bytes);
      }
      positions[to] = positions[from];
      scores[to] = scores[from];
    }
    ++to;
  }
}

void Sequence::Commit() {
  if (!keeps_heavy() || length_ == committed_) return;
  committed_ = length_;
  current_ = scores_under_way();
}

bool Sequence::CanTruncate(int64_t length) const {
  if (keeps_heavy()) return length == 0 || length >= committed_;
  return std::ranges::all_of(tables_, [&](const PageTable& table) { return table.CanTruncate(length); });
}

void Sequence::Truncate(int64_t length) {
  SLUICE_CHECK(0 <= length && length <= length_ && CanTruncate(length));
  if (length == 0) {
    if (set_ >= 0) cache_->pool(Pool::kSets).Release(set_);
    set_ = -1;
    evicted_ = committed_ = 0;
  }
  ForEachTable([&](PagePool& pool, PageTable& table) { table.Truncate(pool, length - evicted_); });
  length_ = length;
}

Sequence Sequence::Fork() const {
  Sequence fork(*cache_);
  for (size_t i = 0; i < kTables; ++i) fork.tables_[i] = tables_[i].Share(cache_->pool(static_cast<Pool>(i)));
  fork.length_ = length_;
  fork.evicted_ = evicted_;
  fork.committed_ = committed_;
  fork.current_ = current_;
  fork.set_ = set_;
  if (set_ >= 0) cache_->pool(Pool::kSets).Share(set_);
  return fork;
}

Sequence::Held Sequence::held() const {
  return {.length = length_,
          .evicted = evicted_,
          .first_page = {tables_[0].first(), tables_[1].first()},
          .current = current_};
}

Status Sequence::Hold(const Held& held) {
  SLUICE_CHECK(length_ == 0);
  const HeavyShape& heavy = cache_->heavy();
  const int64_t slots = held.length - held.evicted;
  const bool evicts = keeps_heavy() && held.evicted >= 0 && held.evicted % heavy.evicted() == 0 &&
                      (held.evicted == 0 || slots >= heavy.slots - heavy.evicted()) && slots <= heavy.slots;
  if (held.length < 0 || slots < 0 || (held.evicted != 0 && !evicts) || (keeps_heavy() && !evicts) ||
      held.current < 0 || held.current > 1)
    return Fail(ErrorCode::kCorrupt, "{} positions of which {} were let go can't be", held.length,
                held.evicted);
  bool possible = true, enough = true;
  for (size_t i = 0; i < kTables; ++i) {
    const PagePool& pool = cache_->pool(static_cast<Pool>(i));
    if (pool.count() == 0) continue;
    possible = possible && tables_[i].CanHold(slots, held.first_page[i]);
    enough = enough && possible && tables_[i].PagesToHold(slots, held.first_page[i]) <= pool.free();
  }
  if (!possible)
    return Fail(ErrorCode::kCorrupt, "rings that begin at pages {} and {} can't hold {} positions",
                held.first_page[0], held.first_page[1], slots);
  if (!enough || (keeps_heavy() && cache_->pool(Pool::kSets).free() == 0)) {
    return Fail(ErrorCode::kDoesNotFit, "the KV cache has no room for {} positions", slots);
  }
  for (size_t i = 0; i < kTables; ++i) {
    if (PagePool& pool = cache_->pool(static_cast<Pool>(i)); pool.count() > 0)
      tables_[i].Hold(pool, slots, held.first_page[i]);
  }
  if (keeps_heavy() && held.length > 0) set_ = cache_->pool(Pool::kSets).Take();
  length_ = committed_ = held.length;
  evicted_ = held.evicted;
  current_ = static_cast<int>(held.current);
  return {};
}

Status Sequence::CheckHeld() const {
  if (set_ < 0) return {};
  // Ascending, with all sinks and all of the newest half: what Evict and attention take for granted.
  const HeavyShape& heavy = cache_->heavy();
  for (int layer = 0; layer < heavy.layers; ++layer) {
    const std::span<const int32_t> positions = set().positions(layer).first(static_cast<size_t>(slots()));
    bool sound = true;
    for (int64_t i = 0; i < slots(); ++i) {
      const int64_t position = positions[static_cast<size_t>(i)];
      const int64_t before = i == 0 ? -1 : positions[static_cast<size_t>(i) - 1];
      sound = sound && position > before && (i >= heavy.sinks || position == i) &&
              position <= length_ - (slots() - i) &&
              (i < slots() - heavy.recent() || position == length_ - (slots() - i));
    }
    if (!sound) return Fail(ErrorCode::kCorrupt, "the kept positions of layer {} can't be", layer);
  }
  return {};
}

Sequence Sequence::Checkpoint() const {
  Sequence checkpoint = Fork();
  checkpoint.ForEachTable(
      [&](PagePool& pool, PageTable& table) { table.DropUnseen(pool, length_, kCheckpointMargin); });
  return checkpoint;
}

}  // namespace sluice::kv
