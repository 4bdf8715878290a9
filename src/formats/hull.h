// Inside formats/ only: which entries of a grid can be the best for a vector under some scale
// (encode_grid.cc).
//
// The error of entry e under the scale f is, up to a constant, f² b(e) − 2 f a(e). The entry that has the
// least for some f is a corner of the upper hull of the points (b, a); a grid of thousands has a handful of
// them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "formats/fit.h"

namespace sluice::formats {

// a and b of an entry, or of a part of it: they are added together.
using Pair = float __attribute__((vector_size(8)));

// An entry of the grid for one vector.
struct Point {
  float a, b;
  int entry;
};

// The entries that are best for a vector under some scale: the upper hull of (b, a), from the largest a to
// the smallest b.
class Hull {
 public:
  // All entries of the grid, a multiple of kChunk. `scales`: ascending; whatever they are, the hull is
  // the same, but it is found soonest with scales about where the best one will be.
  template <size_t kEntries, size_t kScales>
  void Set(const std::array<Pair, kEntries>& entries, const std::array<float, kScales>& scales) {
    static_assert(kEntries % kChunk == 0);
    std::array<Gap, kScales + 1> gaps{};  // unused ones have no points beyond them
    size_t count = 0;
    const std::array<Point, kScales + 2> extremes = Extremes(entries, scales);
    for (const Point& point : extremes) {
      const Point& left = count == 0 ? extremes[0] : gaps[count - 1].right;
      if (point.entry != left.entry) gaps[count++] = Gap(left, point);
    }
    std::array<std::array<uint16_t, kEntries + 1>, kScales + 1> beyond;
    FindBeyond(entries, gaps, beyond);
    count_ = 0;
    Append(extremes[0]);
    std::array<Point, kEntries> points;
    for (size_t g = 0; g < count; ++g) {
      for (size_t i = 0; i < gaps[g].beyond; ++i) {
        const size_t entry = beyond[g][i];
        points[i] = {entries[entry][0], entries[entry][1], static_cast<int>(entry)};
      }
      AppendBetween(gaps[g].left, gaps[g].right, std::span(points).first(gaps[g].beyond));
      Append(gaps[g].right);
    }
  }

  // The least of scale² b − 2 scale a. Sets *entry to the entry that has it.
  float LeastCost(float scale, int* entry) const {
    float least = INFINITY;
    for (int i = 0; i < count_; ++i) {
      const float cost = scale * (scale * corners_[i].b - 2 * corners_[i].a);
      if (!(cost < least)) continue;
      least = cost;
      *entry = corners_[i].entry;
    }
    return least;
  }

 private:
  static constexpr int kMaxCorners = 64;  // more than rounding leaves of any grid

  void Append(const Point& point) {
    if (count_ < kMaxCorners) corners_[count_++] = point;
  }

  static bool Any(__typeof__(Lanes() > Lanes()) mask) {
    uint64_t halves[2];
    std::memcpy(halves, &mask, sizeof(halves));
    return (halves[0] | halves[1]) != 0;
  }

  // The a of four entries, and their b.
  struct FourEntries {
    Lanes a, b;
  };
  static FourEntries LoadEntries(const Pair* entries) {
    Lanes first, second;
    std::memcpy(&first, entries, sizeof(first));
    std::memcpy(&second, entries + 2, sizeof(second));
    return {__builtin_shufflevector(first, second, 0, 2, 4, 6),
            __builtin_shufflevector(first, second, 1, 3, 5, 7)};
  }

  // Entries that are looked at before it is asked whether one of them is the best so far.
  static constexpr size_t kChunk = 32;

  // The first entries with the largest a, with the largest a − scale/2 · b for each scale, and with the
  // smallest b.
  template <size_t kEntries, size_t kScales>
  static std::array<Point, kScales + 2> Extremes(const std::array<Pair, kEntries>& entries,
                                                 const std::array<float, kScales>& scales) {
    constexpr size_t kKinds = kScales + 2;
    std::array<float, kKinds> factors{};
    std::ranges::transform(scales, factors.begin() + 1, [](float scale) { return 0.5f * scale; });
    const auto value = [&factors](size_t kind, const auto& at, const auto& bt) {
      return kind == kKinds - 1 ? -bt : at - factors[kind] * bt;
    };
    std::array<float, kKinds> largest;
    std::array<size_t, kKinds> where{};  // the first chunk that has it
    largest.fill(-INFINITY);
    for (size_t chunk = 0; chunk < kEntries; chunk += kChunk) {
      std::array<Lanes, kKinds> most;
      most.fill(Lanes{} - INFINITY);
      for (size_t e = chunk; e < chunk + kChunk; e += kLanes) {
        const auto [at, bt] = LoadEntries(&entries[e]);
        for (size_t kind = 0; kind < kKinds; ++kind) {
          const Lanes next = value(kind, at, bt);
          most[kind] = next > most[kind] ? next : most[kind];
        }
      }
      for (size_t kind = 0; kind < kKinds; ++kind) {
        if (!Any(most[kind] > largest[kind])) continue;
        for (size_t l = 0; l < kLanes; ++l) largest[kind] = std::max(largest[kind], most[kind][l]);
        where[kind] = chunk;
      }
    }
    std::array<Point, kKinds> points;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      size_t e = where[kind];
      const size_t last = e + kChunk - 1;  // where values overflow none may be equal
      while (e < last && value(kind, entries[e][0], entries[e][1]) != largest[kind]) ++e;
      points[kind] = {entries[e][0], entries[e][1], static_cast<int>(e)};
    }
    return points;
  }

  // How far a point is beyond the line between two corners, up to a constant and a factor; and what all
  // points on the line have, a little more than rounding makes of it.
  struct Line {
    float width = 0, height = 0, value = 0;
    Line() = default;
    Line(const Point& left, const Point& right) : width(left.b - right.b), height(left.a - right.a) {
      value = (left.a * width - left.b * height) + 1e-6f * (std::fabs(left.a * width) + left.b * height);
    }
    template <typename Float>
    Float Of(Float a, Float b) const {
      return a * width - b * height;
    }
  };

  // Two corners that are known, and how many points are beyond the line between them.
  struct Gap {
    Point left{}, right{};
    Line line;
    size_t beyond = 0;
    Gap() { line.value = INFINITY; }
    Gap(const Point& from, const Point& to) : left(from), right(to), line(from, to) {}
  };

  // Puts the entries beyond each gap's line into its list.
  template <size_t kEntries, size_t kGaps>
  static void FindBeyond(const std::array<Pair, kEntries>& entries, std::array<Gap, kGaps>& gaps,
                         std::array<std::array<uint16_t, kEntries + 1>, kGaps>& beyond) {
    for (size_t e = 0; e < kEntries; e += kLanes) {
      const auto [at, bt] = LoadEntries(&entries[e]);
      std::array<decltype(at > bt), kGaps> found;
      auto any = at != at;
      for (size_t g = 0; g < kGaps; ++g) {
        found[g] = gaps[g].line.Of(at, bt) > gaps[g].line.value;
        any |= found[g];
      }
      if (!Any(any)) continue;
      for (size_t g = 0; g < kGaps; ++g) {
        if (!Any(found[g])) continue;
        // Without branches: what is not beyond is overwritten by the next.
        for (size_t l = 0; l < kLanes; ++l) {
          beyond[g][gaps[g].beyond] = static_cast<uint16_t>(e + l);
          gaps[g].beyond += static_cast<size_t>(found[g][l] & 1);
        }
      }
    }
  }

  // The corners between two corners: the point farthest beyond their line, and what is on either side of it.
  // `points` holds all that may be; its order is lost.
  void AppendBetween(const Point& left, const Point& right, std::span<Point> points) {
    const Line line(left, right);
    const Point* farthest = nullptr;
    float distance = line.value;
    for (const Point& point : points) {
      const float value = line.Of(point.a, point.b);
      if (!(value > distance)) continue;
      distance = value;
      farthest = &point;
    }
    if (farthest == nullptr || count_ == kMaxCorners) return;
    const Point corner = *farthest;
    if (!(corner.b < left.b && corner.b > right.b)) return;
    // Those on the left of the corner come first, those on its right behind them.
    const auto middle =
        std::partition(points.begin(), points.end(), [&](const Point& p) { return p.b > corner.b; });
    const auto on_left = static_cast<size_t>(middle - points.begin());
    AppendBetween(left, corner, points.first(on_left));
    Append(corner);
    AppendBetween(corner, right, points.subspan(on_left));
  }

  int count_ = 0;
  Point corners_[kMaxCorners];
};

}  // namespace sluice::formats
