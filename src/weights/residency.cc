#include "weights/residency.h"

#include <algorithm>

namespace sluice::weights {

namespace {

constexpr uint64_t kPage = platform::File::kDirectAlignment;

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

uint64_t SlotBytes(const Slab& slab) {
  uint64_t total = 0;
  for (size_t e = 0; e < static_cast<size_t>(slab.n_extents); ++e) {
    const Extent& extent = slab.extents[e];
    total += AlignUp(extent.offset % kPage + extent.size_bytes, kPage);
  }
  return total;
}

}  // namespace sluice::weights
