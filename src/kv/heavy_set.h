// HeavySet: which tokens a sequence keeps when its context overflows by weight (Overflow::kHeavy), and how
// heavy they are. For each layer: the position of every slot, ascending, and the attention that it has drawn
// so far, summed in the order of the tokens that paid it.
//
// When all slots are taken, each layer lets the same number of tokens go, those with the least attention of
// all that are neither sinks nor in the newer half. The slots are a multiple of 64 and so is what goes: it
// happens only at positions that are multiples of 64, and what is kept depends on the tokens alone.
//
// Keys are stored turned by FramePosition, not by their own position, so that no distance is ever greater
// than the context (docs/kv.md): positions are counted in laps of half a context; a query sees its own lap
// and the one before at true distances, and older tokens as if no more than two laps lay between.
//
// HeavyShape is a value; HeavySet a view of a set's memory. One thread at a time, but for disjoint slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::kv {

struct HeavyShape {
  int layers = 0;
  int64_t slots = 0;  // for each layer; a multiple of 128
  int64_t sinks = 0;

  static constexpr int64_t kSmallestContext = 256;
  // Slots of a context of this length.
  static constexpr int64_t SlotsFor(int64_t context_length) { return context_length / 128 * 128; }

  int64_t lap() const { return slots / 2; }
  int64_t recent() const { return slots / 2; }
  // Tokens that go when the slots are full.
  int64_t evicted() const { return slots / 8 < 64 ? 64 : slots / 8 / 64 * 64; }
  int64_t most_sinks() const { return slots / 4; }

  // By what position a key is turned, and a query for its own lap.
  int64_t FramePosition(int64_t position) const {
    return position < lap() ? position : lap() + position % lap();
  }

  size_t bytes() const { return static_cast<size_t>(layers) * static_cast<size_t>(slots) * 12; }
};

class HeavySet {
 public:
  HeavySet(const HeavyShape& shape, std::byte* memory) : shape_(shape), memory_(memory) {}

  std::span<int32_t> positions(int layer) { return {reinterpret_cast<int32_t*>(At(layer)), Slots()}; }
  // Attention so far (which = the current one of two), and with the batch under way (the other).
  std::span<float> scores(int layer, int which) {
    return {reinterpret_cast<float*>(At(shape_.layers * (1 + which) + layer)), Slots()};
  }

  // The slots that stay when all are taken, of one layer: marks the others in `gone` [slots]. `order` [slots]
  // is scratch.
  void Choose(int layer, int which, int64_t length, std::span<int32_t> order, std::span<uint8_t> gone);

 private:
  size_t Slots() const { return static_cast<size_t>(shape_.slots); }
  std::byte* At(int row) { return memory_ + static_cast<size_t>(row) * Slots() * 4; }

  HeavyShape shape_;
  std::byte* memory_;
};

}  // namespace sluice::kv
