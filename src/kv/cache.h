// Cache: the keys and values of the positions that a model has read, in fixed-size pages from preallocated
// pools.
//
// There are two pools. The pages of the first hold all layers that see the whole past, those of the second
// the layers with a sliding window, of which only the window is kept. A page holds 64 consecutive positions
// of one sequence, for all layers of its pool: for each layer the keys [n_kv_heads, 64, k_dim] and then the
// values [n_kv_heads, 64, v_dim]. So one tile of attention is one run of memory, and a page is one run too
// (to copy, or to write to a snapshot). Sequences (sequence.h) hold references to pages; forks share them,
// and a shared page is copied before it is written. All memory is taken when the cache is made.
//
// A cache and its sequences belong to one thread at a time; during a forward pass workers read and write
// disjoint slots. Sequences must not outlive their cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernels/kv_rows.h"
#include "kv/heavy_set.h"
#include "kv/page_pool.h"
#include "kv/page_table.h"
#include "memory/arena.h"
#include "memory/ledger.h"

namespace sluice::kv {

using kernels::KvRowBytes;
using kernels::KvType;
using kernels::KvTypeByName;
using kernels::KvTypeNames;
using kernels::Name;

struct LayerShape {
  int n_kv_heads;
  int k_dim;  // elements of one head's key
  int v_dim;
  int64_t window = 0;  // a query sees this many positions, its own included; 0 = all
};

// What becomes of the past when the context is full.
enum class Overflow : uint8_t {
  kStop,    // nothing more is read
  kWindow,  // the first positions and the newest ones stay visible
  kHeavy,   // and those in between that have drawn the most attention (heavy_set.h)
};

// What is chosen about a cache; its layers come from the model.
struct Settings {
  // Most positions that a sequence holds, or, unless overflow is kStop, that a query sees.
  int64_t context_length = 0;
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  bool rotate = true;   // rows of low-bit types before they are quantised; see Rotated
  int64_t batch = 512;  // most positions that a sequence grows by in one pass
  int sequences = 1;    // of full length
  Overflow overflow = Overflow::kStop;
  int64_t sinks = 4;                    // first positions that stay visible (kWindow, kHeavy)
  int64_t checkpoint_positions = 1024;  // CacheConfig::checkpoint_positions
};

struct CacheConfig {
  std::vector<LayerShape> layers;
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  bool rotate = true;          // rows of low-bit types before they are quantised; see Rotated
  int64_t context_length = 0;  // most positions that one sequence may have, or that a query sees (kWindow)
  int n_sequences = 1;         // full-length sequences that the pools have pages for
  Overflow overflow = Overflow::kStop;
  int64_t sinks = 0;      // kWindow, kHeavy: first positions that stay visible, < context_length
  int64_t max_batch = 1;  // most positions that one sequence grows by in one pass
  // Where there are rings: pages for one checkpoint beside the sequences, as long as a sequence that goes on
  // from it has left no more than so many of its positions behind.
  int64_t checkpoint_positions = 0;

  // Of layers that see the whole past: how many of the newest positions; 0 = all.
  int64_t window() const { return overflow == Overflow::kWindow ? context_length - sinks : 0; }
};

// How far before its end a checkpoint can be cut: prompts end in a header that is not always replayed as it
// was.
inline constexpr int64_t kCheckpointMargin = 64;

// The pools of pages. kSets has one "page" for each sequence of kHeavy: its HeavySet.
enum class Pool : uint8_t { kFull, kSliding, kSets };
inline constexpr size_t kPoolCount = 3;

// Whether rows of this type are rotated (ops/rotation.h) before they are quantised, where the cache wants it:
// one large element of a block takes all the steps of 4 or 5 bits for itself, and rotation spreads it over
// the head.
constexpr bool Rotated(KvType type) { return type == KvType::kQ5_0 || type == KvType::kQ4_0; }

// Bytes that a cache of this configuration takes from the ledger's `kv` account.
uint64_t CacheBytes(const CacheConfig& config);

class Cache {
 public:
  // Takes CacheBytes(config) from the ledger, or fails with kDoesNotFit.
  static Result<std::unique_ptr<Cache>> Create(const CacheConfig& config, memory::Ledger& ledger);
  Cache(const Cache&) = delete;  // sequences point here
  Cache& operator=(const Cache&) = delete;

  const CacheConfig& config() const { return config_; }
  PagePool& pool(Pool which) { return pools_[static_cast<size_t>(which)]; }
  const PagePool& pool(Pool which) const { return pools_[static_cast<size_t>(which)]; }
  const Retention& retention(Pool which) const { return retentions_[static_cast<size_t>(which)]; }
  Pool pool_of(int layer) const { return places_[static_cast<size_t>(layer)].pool; }
  // What a query of this layer sees of its past: the newest `window` positions, its own included (0: all),
  // and, where the past is longer, the first `sinks`.
  struct View {
    int64_t window = 0;
    int64_t sinks = 0;
  };
  View view(int layer) const;
  const HeavyShape& heavy() const { return heavy_; }
  HeavySet Set(int32_t page) const { return {heavy_, pool(Pool::kSets).data(page)}; }
  // Whether some layers keep less than the whole past.
  bool forgets() const;

  // A page's slots of one head: [64, k_dim] keys and [64, v_dim] values, rows k_row_bytes / v_row_bytes
  // apart.
  std::byte* Keys(int layer, int32_t page, int kv_head) {
    const Place& place = places_[static_cast<size_t>(layer)];
    return pool(place.pool).data(page) + place.k_offset +
           static_cast<size_t>(kv_head) * kPagePositions * k_row_bytes(layer);
  }
  std::byte* Values(int layer, int32_t page, int kv_head) {
    const Place& place = places_[static_cast<size_t>(layer)];
    return pool(place.pool).data(page) + place.v_offset +
           static_cast<size_t>(kv_head) * kPagePositions * v_row_bytes(layer);
  }
  size_t k_row_bytes(int layer) const {
    return kernels::KvRowBytes(config_.k_type, config_.layers[layer].k_dim);
  }
  size_t v_row_bytes(int layer) const {
    return kernels::KvRowBytes(config_.v_type, config_.layers[layer].v_dim);
  }
  bool rotates_keys() const { return config_.rotate && Rotated(config_.k_type); }
  bool rotates_values() const { return config_.rotate && Rotated(config_.v_type); }

 private:
  friend struct Layout;
  friend class Sequence;
  // Where a layer's keys and values lie: in which pool, how far into a page.
  struct Place {
    Pool pool;
    size_t k_offset, v_offset;
  };

  Cache() = default;

  CacheConfig config_;
  memory::Arena arena_;
  std::vector<Place> places_;  // by layer
  std::array<Retention, kPoolCount> retentions_;
  std::array<PagePool, kPoolCount> pools_;
  HeavyShape heavy_;            // no slots unless the overflow is kHeavy
  std::vector<int32_t> order_;  // [slots], scratch of an eviction
  std::vector<uint8_t> gone_;   // [slots]
};

}  // namespace sluice::kv
