#include "weights/residency.h"

#include <algorithm>
#include <span>

namespace sluice::weights {

namespace {

constexpr uint64_t kPage = platform::File::kDirectAlignment;

std::span<const Extent> ExtentsOf(const Slab& slab) {
  return std::span(slab.extents).first(static_cast<size_t>(slab.n_extents));
}

// Bytes of the pages that it lies in.
uint64_t WholePages(const Extent& extent) { return AlignUp(extent.offset % kPage + extent.size_bytes, kPage); }

uint64_t PinnedArenaBytes(const std::vector<Slab>& slabs, const std::vector<bool>& pinned) {
  return LayOutArena(slabs, pinned).size_bytes;
}

// Every slab earns `share` of its size; those whose turn has come are pinned.
std::vector<bool> Spread(const std::vector<Slab>& slabs, double share) {
  std::vector<bool> pinned(slabs.size());
  double credit = 0;
  for (size_t i = 0; i < slabs.size(); ++i) {
    const auto size = static_cast<double>(slabs[i].size_bytes());
    credit += share * size;
    pinned[i] = credit >= size;
    if (pinned[i]) credit -= size;
  }
  return pinned;
}

}  // namespace

std::string_view ResidencyName(Residency residency) {
  switch (residency) {
    case Residency::kResident: return "resident";
    case Residency::kPin: return "pin";
    case Residency::kLru: return "lru";
    case Residency::kMmap: return "mmap";
  }
  return "";
}

std::vector<bool> ChoosePinned(const std::vector<Slab>& slabs, uint64_t bytes) {
  std::vector<bool> all(slabs.size(), true);
  if (PinnedArenaBytes(slabs, all) <= bytes) return all;
  // What page rounding takes is only known of a choice, so the share is searched: the largest that fits.
  double fits = 0, too_much = 1;
  for (int round = 0; round < 24; ++round) {
    const double share = (fits + too_much) / 2;
    (PinnedArenaBytes(slabs, Spread(slabs, share)) <= bytes ? fits : too_much) = share;
  }
  return Spread(slabs, fits);
}

ArenaLayout LayOutArena(const std::vector<Slab>& slabs, const std::vector<bool>& pinned) {
  struct Piece {
    uint32_t shard;
    uint64_t offset, size;
    size_t slab, extent;
  };
  std::vector<Piece> pieces;
  for (size_t s = 0; s < slabs.size(); ++s) {
    if (!pinned[s]) continue;
    for (size_t e = 0; e < static_cast<size_t>(slabs[s].n_extents); ++e) {
      const Extent& extent = slabs[s].extents[e];
      pieces.push_back({extent.shard, extent.offset, extent.size_bytes, s, e});
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.offset < b.offset;
  });
  ArenaLayout layout;
  layout.offsets.resize(slabs.size());
  const Piece* before = nullptr;
  uint64_t end = 0;  // of the piece before, in the arena
  for (const Piece& piece : pieces) {
    const bool touches = before != nullptr && before->shard == piece.shard && piece.offset >= before->offset + before->size &&
                         piece.offset - (before->offset + before->size) < kPage;
    const uint64_t begin = touches ? end + (piece.offset - (before->offset + before->size))
                                   : AlignUp(end, kPage) + piece.offset % kPage;
    layout.offsets[piece.slab][piece.extent] = begin;
    end = begin + piece.size;
    before = &piece;
  }
  layout.size_bytes = AlignUp(end, kPage);
  return layout;
}

std::vector<bool> ChooseStaying(const std::vector<Slab>& slabs, const StoreOptions& options) {
  switch (options.residency) {
    case Residency::kResident: return std::vector<bool>(slabs.size(), true);
    case Residency::kPin: return ChoosePinned(slabs, options.pinned_bytes);
    case Residency::kLru:
    case Residency::kMmap: break;
  }
  return std::vector<bool>(slabs.size(), false);
}

uint64_t SlotBytes(const std::vector<Slab>& slabs) {
  uint64_t largest = 0;
  for (const Slab& slab : slabs) {
    uint64_t total = 0;
    for (const Extent& extent : ExtentsOf(slab)) total += WholePages(extent);
    largest = std::max(largest, total);
  }
  return largest;
}

uint64_t BlockBytes(uint64_t size, uint64_t wanted) {
  const uint64_t parts = std::max<uint64_t>(1, (size + wanted / 2) / wanted);
  return AlignUp((size + parts - 1) / parts, kPage);
}

uint64_t BufferedBytes(const std::vector<Slab>& slabs, const StoreOptions& options) {
  if (options.page_cache != PageCache::kEmptyBehind) return 0;
  uint64_t largest = 0;
  for (const Slab& slab : slabs) {
    for (const Extent& extent : ExtentsOf(slab))
      largest = std::max(largest, BlockBytes(WholePages(extent), options.read_bytes));
  }
  return static_cast<uint64_t>(options.depth) * largest;
}

uint64_t RingBytes(const std::vector<Slab>& slabs, const StoreOptions& options) {
  const uint64_t slot = SlotBytes(slabs);
  if (options.residency != Residency::kLru) return options.ring_bytes / slot * slot;
  uint64_t in_block = 0, largest_block = 0;
  for (size_t i = 0; i < slabs.size(); ++i) {
    in_block = i > 0 && slabs[i].block == slabs[i - 1].block ? in_block + 1 : 1;
    largest_block = std::max(largest_block, in_block);
  }
  return slot * largest_block * static_cast<uint64_t>(std::max(1, options.lru_blocks));
}

Footprint PlanFootprint(const Schedule& schedule, const StoreOptions& options) {
  Footprint footprint;
  if (options.residency == Residency::kMmap) return footprint;
  const std::vector<Slab> slabs = CutSlabs(schedule, options.slab_bytes);
  const std::vector<bool> stays = ChooseStaying(slabs, options);
  footprint.pinned_bytes = LayOutArena(slabs, stays).size_bytes;
  footprint.io_bytes = BufferedBytes(slabs, options);
  for (size_t i = 0; i < slabs.size(); ++i) footprint.streamed_bytes += stays[i] ? 0 : slabs[i].size_bytes();
  if (footprint.streamed_bytes > 0) footprint.ring_bytes = AlignUp(RingBytes(slabs, options), kPage);
  return footprint;
}

}  // namespace sluice::weights
