// Fusion: which operators of a layer run together, on a row or a tile while it is at hand, instead of each
// writing a whole matrix for the next to read. The same bits come out at every level (docs/speed.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::runtime {

// Each level has all those before it.
enum class Fusion : uint8_t {
  kNone,       // every operator writes all of its results
  kNorm,       // a row is normalised and quantised in one go
  kQkv,        // Q, K and V are one product; a row's heads are normalised, turned and stored in one go
  kAttention,  // scores stay within their tile: an online softmax straight from the cache
  kAll,        // gate, up and activation in one go; output projections add to the residual stream themselves
};
inline constexpr std::array kFusionLevels{Fusion::kNone, Fusion::kNorm, Fusion::kQkv, Fusion::kAttention,
                                          Fusion::kAll};

// "none", "norm" …, as flags spell it.
constexpr std::string_view FusionName(Fusion fusion) {
  constexpr std::array<std::string_view, kFusionLevels.size()> kNames{"none", "norm", "qkv", "attention",
                                                                      "all"};
  return kNames[static_cast<size_t>(fusion)];
}
constexpr std::optional<Fusion> FusionByName(std::string_view name) {
  for (const Fusion fusion : kFusionLevels) {
    if (FusionName(fusion) == name) return fusion;
  }
  return std::nullopt;
}

}  // namespace sluice::runtime
