// XXH64: a fast 64-bit checksum over bytes, taken as a stream. Finds accidents, not forgery.
// Source: the xxHash specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), seed 0.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace sluice {

class Xxh64 {
 public:
  // The same in any pieces.
  void Add(std::span<const std::byte> bytes) {
    total_ += bytes.size();
    if (held_ > 0) {
      const size_t more = std::min(bytes.size(), kStripe - held_);
      Hold(bytes.first(more));
      bytes = bytes.subspan(more);
      if (held_ < kStripe) return;
      Consume(stripe_.data());
      held_ = 0;
    }
    for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) Consume(bytes.data());
    Hold(bytes);
  }

  // Of all that was added.
  uint64_t digest() const {
    uint64_t hash = total_ < kStripe ? kPrime5 : MergedLanes();
    hash += total_;
    const std::byte* at = stripe_.data();
    size_t left = held_;
    for (; left >= 8; left -= 8, at += 8)
      hash = std::rotl(hash ^ Round(0, Load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
    if (left >= 4) {
      hash = std::rotl(hash ^ Load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
      left -= 4;
      at += 4;
    }
    for (; left > 0; --left, ++at)
      hash = std::rotl(hash ^ static_cast<uint64_t>(*at) * kPrime5, 11) * kPrime1;
    hash = (hash ^ hash >> 33) * kPrime2;
    hash = (hash ^ hash >> 29) * kPrime3;
    return hash ^ hash >> 32;
  }

 private:
  static constexpr size_t kStripe = 32;
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                            kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                            kPrime5 = 0x27D4EB2F165667C5;

  template <typename T>
  static T Load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
  }
  static uint64_t Round(uint64_t lane, uint64_t word) {
    return std::rotl(lane + word * kPrime2, 31) * kPrime1;
  }
  void Consume(const std::byte* stripe) {
    for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = Round(lanes_[i], Load<uint64_t>(stripe + 8 * i));
  }
  void Hold(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(stripe_.data() + held_, bytes.data(), bytes.size());
    held_ += bytes.size();
  }
  uint64_t MergedLanes() const {
    uint64_t hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
                    std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
    return hash;
  }

  std::array<uint64_t, 4> lanes_{kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  std::array<std::byte, kStripe> stripe_{};  // the beginning of one that is not whole yet
  size_t held_ = 0;
  uint64_t total_ = 0;
};

}  // namespace sluice
