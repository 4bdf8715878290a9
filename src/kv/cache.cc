#include "kv/cache.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace sluice::kv {

namespace {

constexpr size_t kAlignment = 64;

int64_t PagesFor(int64_t positions) { return (positions + kPagePositions - 1) / kPagePositions; }

// Where each layer's keys and values lie in a page; returns the page's size.
size_t LayOutPage(const CacheConfig& config, std::vector<size_t>* k_offsets, std::vector<size_t>* v_offsets) {
  size_t offset = 0;
  for (const LayerShape& layer : config.layers) {
    const size_t slots = static_cast<size_t>(layer.n_kv_heads) * kPagePositions;
    if (k_offsets) k_offsets->push_back(offset);
    offset = AlignUp(offset + slots * kernels::KvRowBytes(config.k_type, layer.k_dim), kAlignment);
    if (v_offsets) v_offsets->push_back(offset);
    offset = AlignUp(offset + slots * kernels::KvRowBytes(config.v_type, layer.v_dim), kAlignment);
  }
  return offset;
}

int64_t PageCount(const CacheConfig& config) { return PagesFor(config.context_length) * config.n_sequences; }

}  // namespace

uint64_t CacheBytes(const CacheConfig& config) {
  return static_cast<uint64_t>(PageCount(config)) * LayOutPage(config, nullptr, nullptr);
}

Result<std::unique_ptr<Cache>> Cache::Create(const CacheConfig& config, memory::Ledger& ledger) {
  SLUICE_CHECK(config.context_length > 0 && config.n_sequences > 0);
  std::unique_ptr<Cache> cache(new Cache);
  cache->config_ = config;
  cache->page_bytes_ = LayOutPage(config, &cache->k_offsets_, &cache->v_offsets_);
  SLUICE_TRY_ASSIGN(cache->arena_, memory::Arena::Create(CacheBytes(config), memory::Account::kKv, ledger));
  cache->base_ = cache->arena_.Allocate(CacheBytes(config), kAlignment).data();
  const int64_t pages = PageCount(config);
  cache->references_.assign(static_cast<size_t>(pages), 0);
  cache->free_.reserve(static_cast<size_t>(pages));
  for (int64_t page = pages - 1; page >= 0; --page) cache->free_.push_back(static_cast<int32_t>(page));
  return cache;
}

int32_t Cache::TakePage() {
  SLUICE_CHECK(!free_.empty());
  const int32_t page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void Cache::Release(int32_t page) {
  int32_t& references = references_[static_cast<size_t>(page)];
  SLUICE_CHECK(references > 0);
  if (--references == 0) free_.push_back(page);
}

Sequence::Sequence(Cache& cache) : cache_(&cache) {
  pages_.reserve(static_cast<size_t>(PagesFor(cache.config().context_length)));
}

Sequence::Sequence(Sequence&& other) noexcept
    : cache_(other.cache_), pages_(std::move(other.pages_)), length_(std::exchange(other.length_, 0)) {
  other.pages_.clear();
}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this != &other) {
    Clear();
    cache_ = other.cache_;
    pages_ = std::move(other.pages_);
    length_ = std::exchange(other.length_, 0);
    other.pages_.clear();
  }
  return *this;
}

Status Sequence::Append(int64_t n) {
  const int64_t context = cache_->config().context_length;
  if (n > context - length_) {
    return Fail(ErrorCode::kDoesNotFit, "the context is full: {} tokens are held and {} more were asked for, of at most {}",
                length_, n, context);
  }
  // A half-filled last page that somebody else holds too is copied before it is written.
  const bool copy_last =
      n > 0 && length_ % kPagePositions != 0 && cache_->references_[static_cast<size_t>(pages_.back())] > 1;
  const int64_t fresh = PagesFor(length_ + n) - static_cast<int64_t>(pages_.size());
  if (fresh + copy_last > cache_->free_pages()) {
    return Fail(ErrorCode::kDoesNotFit, "the KV cache is full: {} pages of {} positions are needed, {} of {} are free",
                fresh + copy_last, kPagePositions, cache_->free_pages(), cache_->page_count());
  }
  if (copy_last) {
    const int32_t shared = pages_.back();
    const int32_t own = cache_->TakePage();
    std::memcpy(cache_->base_ + static_cast<size_t>(own) * cache_->page_bytes_,
                cache_->base_ + static_cast<size_t>(shared) * cache_->page_bytes_, cache_->page_bytes_);
    cache_->Release(shared);
    pages_.back() = own;
  }
  for (int64_t i = 0; i < fresh; ++i) pages_.push_back(cache_->TakePage());
  length_ += n;
  return {};
}

void Sequence::Truncate(int64_t length) {
  SLUICE_CHECK(0 <= length && length <= length_);
  const size_t keep = static_cast<size_t>(PagesFor(length));
  while (pages_.size() > keep) {
    cache_->Release(pages_.back());
    pages_.pop_back();
  }
  length_ = length;
}

Sequence Sequence::Fork() const {
  Sequence fork(*cache_);
  fork.pages_.insert(fork.pages_.end(), pages_.begin(), pages_.end());
  fork.length_ = length_;
  for (const int32_t page : pages_) ++cache_->references_[static_cast<size_t>(page)];
  return fork;
}

}  // namespace sluice::kv
