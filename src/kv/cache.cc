#include "kv/cache.h"

#include "base/check.h"
#include "base/units.h"

namespace sluice::kv {

namespace {
constexpr size_t kAlignment = 64;
}  // namespace

// What a configuration comes to: which layer lies where, and how many pages of which size there are.
struct Layout {
  std::vector<Cache::Place> places;
  std::array<Retention, kPoolCount> retentions;
  std::array<size_t, kPoolCount> page_bytes = {};
  std::array<int64_t, kPoolCount> pages = {};
  HeavyShape heavy;

  explicit Layout(const CacheConfig& config) {
    Retention& full = retentions[static_cast<size_t>(Pool::kFull)];
    Retention& sliding = retentions[static_cast<size_t>(Pool::kSliding)];
    if (config.overflow == Overflow::kHeavy) {
      heavy = {.layers = static_cast<int>(config.layers.size()),
               .slots = HeavyShape::SlotsFor(config.context_length),
               .sinks = config.sinks};
      page_bytes[static_cast<size_t>(Pool::kSets)] = AlignUp(heavy.bytes(), kAlignment);
    }
    full = {.context = heavy.slots > 0 ? heavy.slots : config.context_length,
            .window = config.window(),
            .sinks = config.overflow == Overflow::kWindow ? config.sinks : 0,
            .slack = Slack(config)};
    sliding = {.slack = Slack(config)};
    for (const LayerShape& layer : config.layers) {
      const Pool pool = PoolFor(config, full, layer);
      if (pool == Pool::kSliding) sliding.window = std::max(sliding.window, layer.window);
      AddLayer(config, layer, pool);
    }
    CountPages(config);
  }

  bool forgets() const {
    return PageBytes(Pool::kSliding) > 0 || retentions[static_cast<size_t>(Pool::kFull)].window > 0 ||
           heavy.slots > 0;
  }
  size_t PageBytes(Pool pool) const { return page_bytes[static_cast<size_t>(pool)]; }
  uint64_t Bytes() const {
    uint64_t total = 0;
    for (size_t pool = 0; pool < kPoolCount; ++pool)
      total += static_cast<uint64_t>(pages[pool]) * page_bytes[pool];
    return total;
  }

 private:
  // A batch can be taken back, and so can as much as checkpoints and drafts want to.
  static int64_t Slack(const CacheConfig& config) { return std::max(config.max_batch, kCheckpointMargin); }

  // A ring where one is smaller than what the other layers keep.
  static Pool PoolFor(const CacheConfig& config, const Retention& full, const LayerShape& layer) {
    const Retention ring{.window = layer.window, .slack = Slack(config)};
    return layer.window > 0 && ring.pages() < full.pages() ? Pool::kSliding : Pool::kFull;
  }

  void AddLayer(const CacheConfig& config, const LayerShape& layer, Pool pool) {
    size_t& offset = page_bytes[static_cast<size_t>(pool)];
    const size_t slots = static_cast<size_t>(layer.n_kv_heads) * kPagePositions;
    const size_t k_offset = offset;
    const size_t v_offset =
        AlignUp(k_offset + slots * kernels::KvRowBytes(config.k_type, layer.k_dim), kAlignment);
    offset = AlignUp(v_offset + slots * kernels::KvRowBytes(config.v_type, layer.v_dim), kAlignment);
    places.push_back({pool, k_offset, v_offset});
  }

  void CountPages(const CacheConfig& config) {
    // A checkpoint shares its pages with the sequence that goes on from it, but for the half-filled last one
    // and for those that the sequence's rings have left behind.
    const bool checkpoints = forgets() && config.checkpoint_positions > 0;
    for (size_t pool = 0; pool < kPoolCount; ++pool) {
      if (page_bytes[pool] == 0) continue;
      const bool sets = pool == static_cast<size_t>(Pool::kSets);
      pages[pool] = (sets ? 1 : retentions[pool].pages()) * config.n_sequences;
      if (!checkpoints) continue;
      const int64_t kept = retentions[pool].window == 0 && !sets ? heavy.slots : retentions[pool].window;
      const int64_t left_behind = std::min(config.checkpoint_positions, kept);
      pages[pool] += 1 + (left_behind > 0 ? PagesFor(left_behind + kCheckpointMargin) + 1 : 0);
    }
  }
};

uint64_t CacheBytes(const CacheConfig& config) { return Layout(config).Bytes(); }

Result<std::unique_ptr<Cache>> Cache::Create(const CacheConfig& config, memory::Ledger& ledger) {
  SLUICE_CHECK(config.context_length > 0 && config.n_sequences > 0 && config.max_batch > 0);
  SLUICE_CHECK(0 <= config.sinks && config.sinks < config.context_length);
  Layout layout(config);
  SLUICE_CHECK(config.overflow != Overflow::kHeavy || (layout.heavy.slots >= HeavyShape::kSmallestContext &&
                                                       config.sinks <= layout.heavy.most_sinks()));
  std::unique_ptr<Cache> cache(new Cache);
  cache->config_ = config;
  cache->places_ = std::move(layout.places);
  cache->retentions_ = layout.retentions;
  cache->heavy_ = layout.heavy;
  cache->order_.resize(static_cast<size_t>(layout.heavy.slots));
  cache->gone_.resize(static_cast<size_t>(layout.heavy.slots));
  // All of it is taken now: memory stays flat, and what was promised is there when it is needed.
  const memory::Arena::Options options{.page_size = platform::PageSize::kHuge, .touch = true};
  SLUICE_TRY_ASSIGN(cache->arena_,
                    memory::Arena::Create(layout.Bytes(), memory::Account::kKv, ledger, options));
  for (size_t pool = 0; pool < kPoolCount; ++pool) {
    const size_t bytes = static_cast<size_t>(layout.pages[pool]) * layout.page_bytes[pool];
    cache->pools_[pool] = PagePool(cache->arena_.Allocate(bytes, kAlignment).data(), layout.page_bytes[pool],
                                   layout.pages[pool]);
  }
  return cache;
}

Cache::View Cache::view(int layer) const {
  const int64_t window = config_.layers[static_cast<size_t>(layer)].window;
  const Retention& full = retention(Pool::kFull);
  const bool narrower = window > 0 && (window <= full.window || full.window == 0);
  if (pool_of(layer) == Pool::kSliding || narrower) return {.window = window};
  return {.window = full.window, .sinks = full.sinks};
}

bool Cache::forgets() const {
  return pool(Pool::kSliding).count() > 0 || retention(Pool::kFull).window > 0 || heavy_.slots > 0;
}

}  // namespace sluice::kv
