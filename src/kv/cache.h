// Cache: the keys and values of every position that a model has read, in fixed-size pages from one pool.
//
// A page holds 64 consecutive positions of one sequence, for all layers: for each layer the keys
// [n_kv_heads, 64, k_dim] and then the values [n_kv_heads, 64, v_dim]. So one tile of attention is one run of
// memory, and a page is one run too (to copy, or to write to a snapshot). Sequences hold references to pages;
// forks share them, and a shared page is copied before it is written. All memory is taken when the cache is made.
//
// A cache and its sequences belong to one thread at a time; during a forward pass workers read and write
// disjoint slots. Sequences must not outlive their cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernels/kv_rows.h"
#include "memory/arena.h"
#include "memory/ledger.h"

namespace sluice::kv {

using kernels::KvRowBytes;
using kernels::KvType;
using kernels::KvTypeByName;
using kernels::KvTypeNames;
using kernels::Name;
inline constexpr int kPagePositions = 64;

struct LayerShape {
  int n_kv_heads;
  int k_dim;  // elements of one head's key
  int v_dim;
};

struct CacheConfig {
  std::vector<LayerShape> layers;
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  bool rotate = true;          // rows of low-bit types before they are quantised; see Rotated
  int64_t context_length = 0;  // most positions that one sequence may have
  int n_sequences = 1;         // full-length sequences that the pool has pages for
};

// Whether rows of this type are rotated (ops/hadamard.h) before they are quantised, where the cache wants it:
// one large element of a block takes all the steps of 4 or 5 bits for itself, and rotation spreads it over
// the head.
constexpr bool Rotated(KvType type) { return type == KvType::kQ5_0 || type == KvType::kQ4_0; }

// Bytes that a cache of this configuration takes from the ledger's `kv` account.
uint64_t CacheBytes(const CacheConfig& config);

class Sequence;

class Cache {
 public:
  // Takes CacheBytes(config) from the ledger, or fails with kDoesNotFit.
  static Result<std::unique_ptr<Cache>> Create(const CacheConfig& config, memory::Ledger& ledger);
  Cache(const Cache&) = delete;  // sequences point here
  Cache& operator=(const Cache&) = delete;

  const CacheConfig& config() const { return config_; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t page_count() const { return static_cast<int64_t>(references_.size()); }

  // A page's slots of one head: [64, k_dim] keys and [64, v_dim] values, rows k_row_bytes / v_row_bytes apart.
  std::byte* Keys(int layer, int32_t page, int kv_head) {
    return base_ + static_cast<size_t>(page) * page_bytes_ + k_offsets_[layer] +
           static_cast<size_t>(kv_head) * kPagePositions * k_row_bytes(layer);
  }
  std::byte* Values(int layer, int32_t page, int kv_head) {
    return base_ + static_cast<size_t>(page) * page_bytes_ + v_offsets_[layer] +
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
  friend class Sequence;
  Cache() = default;
  int32_t TakePage();  // precondition: free_pages() > 0
  void Release(int32_t page);

  CacheConfig config_;
  memory::Arena arena_;
  std::byte* base_ = nullptr;
  size_t page_bytes_ = 0;
  std::vector<size_t> k_offsets_, v_offsets_;  // of each layer within a page
  std::vector<int32_t> references_;            // by page
  std::vector<int32_t> free_;
};

// The positions 0 … length−1 of one conversation. Move-only: a copy is made by Fork.
class Sequence {
 public:
  explicit Sequence(Cache& cache);
  ~Sequence() { Clear(); }
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&& other) noexcept;

  int64_t length() const { return length_; }
  int32_t page(int64_t index) const { return pages_[static_cast<size_t>(index)]; }

  // Makes room for `n` more positions, ready to be written, and lengthens the sequence by them. All or nothing.
  // Errors: kDoesNotFit when the context or the pool is full, with the numbers.
  Status Append(int64_t n);
  // Forgets the positions from `length` on. Precondition: 0 ≤ length ≤ this->length().
  void Truncate(int64_t length);
  void Clear() { Truncate(0); }
  // A second sequence with the same past; pages are shared until one of the two writes.
  Sequence Fork() const;

  // A checkpoint is a past to come back to, whatever was appended or truncated since.
  Sequence Checkpoint() const { return Fork(); }
  void Restore(const Sequence& checkpoint) { *this = checkpoint.Fork(); }

 private:
  Cache* cache_;
  std::vector<int32_t> pages_;  // ⌈length / 64⌉, reserved for the whole context
  int64_t length_ = 0;
};

}  // namespace sluice::kv
