#include "memory/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/units.h"
#include "memory/arena.h"

namespace sluice::memory {

size_t Lifetimes::Add(uint64_t bytes, int first, int last) {
  SLUICE_CHECK(first <= last);
  buffers_.push_back({AlignUp(bytes, kCacheLineBytes), first, last});
  return buffers_.size() - 1;
}

uint64_t Lifetimes::Place() {
  std::vector<size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return buffers_[i].bytes; });
  std::vector<size_t> placed;  // by ascending offsets
  uint64_t total = 0;
  for (const size_t i : order) {
    Buffer& buffer = buffers_[i];
    buffer.offset = 0;
    for (const size_t other_index : placed) {
      const Buffer& other = buffers_[other_index];
      if (other.last < buffer.first || buffer.last < other.first) continue;
      if (buffer.offset + buffer.bytes <= other.offset) break;  // the gap before this one is wide enough
      buffer.offset = std::max(buffer.offset, other.offset + other.bytes);
    }
    const auto by_offset = [&](size_t a, size_t b) { return buffers_[a].offset < buffers_[b].offset; };
    placed.insert(std::ranges::upper_bound(placed, i, by_offset), i);
    total = std::max(total, buffer.offset + buffer.bytes);
  }
  return total;
}

}  // namespace sluice::memory
