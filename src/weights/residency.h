// Residency: which slabs of a model stay in memory and which are read anew in each pass, and where those that stay lie.
//
// A dense model's pass reads its weights in a cycle. A cache that drops the least recently used is always wrong on a
// cycle longer than itself; keeping a fixed part and streaming the rest reads the least that can be: weights − pinned.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "io/io_queue.h"
#include "weights/schedule.h"

namespace sluice::weights {

enum class Residency {
  kResident,  // everything stays
  kPin,       // as much as fits stays, evenly spread over the pass; the rest is streamed
  kLru,       // a few whole blocks stay, the least recently used makes room: what others do, kept for comparison
  kMmap,      // the kernel decides; not bounded
};
// "resident", "pin" …, as flags spell it.
std::string_view ResidencyName(Residency residency);

// What reading weights does to the kernel's page cache.
enum class PageCache {
  kPassBy,       // direct reads, where the file system has them; else kEmptyBehind
  kEmptyBehind,  // read through it, and dropped from it after use
  kLeave,        // read through it and left there: the next start of the same model finds its file in memory
};

struct StoreOptions {
  Residency residency = Residency::kResident;
  uint64_t pinned_bytes = UINT64_MAX;   // kPin: the most that stays, page rounding included
  uint64_t ring_bytes = 64 * kMiB;      // kPin: what streamed slabs pass through
  int lru_blocks = 2;                   // kLru: blocks that stay
  uint64_t slab_bytes = 2 * kMiB;       // that is computed on at a time
  uint64_t read_bytes = kMiB;           // of a read, about (BlockBytes); whole pages
  int depth = 8;                        // reads under way
  io::IoBackend backend = io::IoBackend::kAuto;
  PageCache page_cache = PageCache::kPassBy;
};

// Which slabs stay when at most `bytes` may: evenly spread, so that computing on them hides reads of the others.
std::vector<bool> ChoosePinned(const std::vector<Slab>& slabs, uint64_t bytes);

// The arena of pinned slabs. Each extent lies at an address that equals its file offset modulo 4096, so that direct
// reads land in place; extents that touch in the file touch here, sharing the page between them.
struct ArenaLayout {
  uint64_t size_bytes = 0;
  // Where each extent of each slab begins; empty for slabs that are not pinned.
  std::vector<std::array<uint64_t, kMaxMatrices>> offsets;
};
ArenaLayout LayOutArena(const std::vector<Slab>& slabs, const std::vector<bool>& pinned);

// Which slabs stay under the options' residency; none where a cache or the kernel decides.
std::vector<bool> ChooseStaying(const std::vector<Slab>& slabs, const StoreOptions& options);

// Bytes of each read of an extent of `size` bytes when reads are to be of about `wanted` ones, both whole
// pages: equal parts (but for the last page), of less than half as much again.
uint64_t BlockBytes(uint64_t size, uint64_t wanted);

// Bytes that the largest slab takes in the ring: each extent widened to whole pages.
uint64_t SlotBytes(const std::vector<Slab>& slabs);
// Of the page cache that reads under way take, when it is emptied behind them.
uint64_t BufferedBytes(const std::vector<Slab>& slabs, const StoreOptions& options);
// Of the ring; of the cache of whole blocks (kLru).
uint64_t RingBytes(const std::vector<Slab>& slabs, const StoreOptions& options);

// Memory that holding the weights takes, and what it saves.
struct Footprint {
  uint64_t pinned_bytes = 0;    // weights.pinned
  uint64_t ring_bytes = 0;      // weights.stream
  uint64_t io_bytes = 0;        // io: page cache that reads pass through, where it is emptied behind them
  uint64_t streamed_bytes = 0;  // read in each pass
};
// What WeightStore will take with these options.
Footprint PlanFootprint(const Schedule& schedule, const StoreOptions& options);

}  // namespace sluice::weights
