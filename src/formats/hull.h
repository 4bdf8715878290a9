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

// An entry of the grid for one vector.
struct Point {
  float a, b;
  int entry;
};

// The entries that are best for a vector under some scale: the upper hull of (b, a), from the largest a to
// the smallest b.
class Hull {
 public:
  // a and b of all entries of the grid, a multiple of 4. `scales`: ascending; whatever they are, the hull is
  // the same, but it is found soonest with scales about where the best one will be.
  template <size_t kEntries, size_t kScales>
  void Set(const std::array<float, kEntries>& a, const std::array<float, kEntries>& b,
           const std::array<float, kScales>& scales) {
    const auto point = [&](size_t entry) { return Point{a[entry], b[entry], static_cast<int>(entry)}; };
    count_ = 0;
    Point left = point(Largest<kEntries>([&](size_t e) { return Load(&a[e]); }));
    Append(left);
    std::array<Point, kEntries> beyond;
    const auto append = [&](const Point& right) {
      if (right.entry == left.entry) return;
      AppendBetween(left, right, std::span(beyond).first(Beyond(left, right, a, b, beyond)));
      Append(right);
      left = right;
    };
    for (const float scale : scales)
      append(point(Largest<kEntries>([&](size_t e) { return Load(&a[e]) - (0.5f * scale) * Load(&b[e]); })));
    append(point(Largest<kEntries>([&](size_t e) { return -Load(&b[e]); })));
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

  // The first entry with the largest value; value(e) gives those of e … e + 3.
  template <size_t kEntries, typename Value>
  static size_t Largest(const Value& value) {
    Lanes most = value(0);
    for (size_t e = kLanes; e < kEntries; e += kLanes) {
      const Lanes next = value(e);
      most = next > most ? next : most;
    }
    const float largest = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    for (size_t e = 0; e < kEntries; e += kLanes) {
      const Lanes found = value(e);
      if (!Any(found == largest)) continue;
      size_t l = 0;
      while (found[l] != largest) ++l;
      return e + l;
    }
    return 0;
  }

  // How far a point is beyond the line between two corners, up to a constant and a factor; and what all
  // points on the line have, a little more than rounding makes of it.
  struct Line {
    float width, height, value;
    Line(const Point& left, const Point& right) : width(left.b - right.b), height(left.a - right.a) {
      value = (left.a * width - left.b * height) + 1e-6f * (std::fabs(left.a * width) + left.b * height);
    }
    template <typename Float>
    Float Of(Float a, Float b) const {
      return a * width - b * height;
    }
  };

  // Puts the points beyond the line between two corners into `out`; returns their number.
  template <size_t kEntries>
  static size_t Beyond(const Point& left, const Point& right, const std::array<float, kEntries>& a,
                       const std::array<float, kEntries>& b, std::array<Point, kEntries>& out) {
    const Line line(left, right);
    size_t count = 0;
    for (size_t e = 0; e < kEntries; e += kLanes) {
      const Lanes value = line.Of(Load(&a[e]), Load(&b[e]));
      if (!Any(value > line.value)) continue;
      for (size_t l = 0; l < kLanes; ++l) {
        if (value[l] > line.value) out[count++] = {a[e + l], b[e + l], static_cast<int>(e + l)};
      }
    }
    return count;
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
