#include "formats/grid_choice.h"

#include <bit>
#include <cmath>

#include "formats/fit.h"

namespace sluice::formats {
namespace {

// The choice under way: magnitudes, signs, and the cost in units of s.
class UnitSearch {
 public:
  UnitSearch(const GridChoice& grid, const float (&m)[kUnit][kUnit], const float (&b)[kUnit], float s)
      : grid_(grid) {
    for (int i = 0; i < kUnit; ++i) {
      for (int j = 0; j < kUnit; ++j) m_[i][j] = s * s * m[i][j];
      b_[i] = s * b[i];
    }
  }

  void SetSigns(const float (&wanted)[kUnit]) {
    int minuses = 0;
    for (int i = 0; i < kUnit; ++i) {
      sign_[i] = wanted[i] < 0 ? -1.0f : 1.0f;
      minuses += wanted[i] < 0 ? 1 : 0;
    }
    if (!grid_.even_signs || minuses % 2 == 0) return;
    int cheapest = 0;
    const auto weight = [&](int i) { return std::fabs(wanted[i]) * std::sqrt(m_[i][i]); };
    for (int i = 1; i < kUnit; ++i) {
      if (weight(i) < weight(cheapest)) cheapest = i;
    }
    sign_[cheapest] = -sign_[cheapest];
  }

  // The best entry for each vector in turn, the others as they are.
  void ChooseEntries() {
    for (int first = 0; first < kUnit; first += grid_.vector) ChooseEntry(first);
  }

  // Flips signs (pairs of them where their number must stay even) while that helps.
  void FlipSigns() {
    for (int round = 0; round < kUnit; ++round) {
      float rest[kUnit];  // b − M c
      for (int i = 0; i < kUnit; ++i) {
        rest[i] = b_[i];
        for (int j = 0; j < kUnit; ++j) rest[i] -= m_[i][j] * Code(j);
      }
      const auto alone = [&](int i) {
        const float step = -2 * Code(i);
        return step * (step * m_[i][i] - 2 * rest[i]);
      };
      float best = 0;
      int flip_i = -1, flip_j = -1;
      for (int i = 0; i < kUnit; ++i) {
        const int end = grid_.even_signs ? i : 1;
        for (int j = 0; j < end; ++j) {
          const float change =
              grid_.even_signs ? alone(i) + alone(j) + 8 * Code(i) * Code(j) * m_[i][j] : alone(i);
          if (!(change < best)) continue;
          best = change;
          flip_i = i;
          flip_j = grid_.even_signs ? j : -1;
        }
      }
      if (flip_i < 0) return;
      sign_[flip_i] = -sign_[flip_i];
      if (flip_j >= 0) sign_[flip_j] = -sign_[flip_j];
    }
  }

  void Put(int8_t* codes) const {
    for (int i = 0; i < kUnit; ++i) codes[i] = static_cast<int8_t>(Code(i));
  }

 private:
  float Code(int i) const { return sign_[i] * magnitude_[i]; }

  void ChooseEntry(int first) {
    const int n = grid_.vector;
    // Cost of magnitudes a: Σ_j a_j (linear_j + Σ_{k ≤ j} quadratic_jk a_k).
    float linear[kUnit], quadratic[kUnit][kUnit];
    for (int j = 0; j < n; ++j) {
      const int row = first + j;
      float rest = b_[row];
      for (int k = 0; k < kUnit; ++k) {
        if (k < first || k >= first + n) rest -= m_[row][k] * Code(k);
      }
      linear[j] = -2 * sign_[row] * rest;
      for (int k = 0; k < j; ++k) quadratic[j][k] = 2 * sign_[row] * sign_[first + k] * m_[row][first + k];
      quadratic[j][j] = m_[row][row];
    }
    const auto entries = static_cast<size_t>(grid_.entries);
    Lanes least = Lanes{} + INFINITY;
    float least_cost = INFINITY;
    size_t best = 0;
    for (size_t e = 0; e < entries; e += kLanes) {
      Lanes a[kUnit], cost{};
      for (int j = 0; j < n; ++j) {
        a[j] = Load(&grid_.values[static_cast<size_t>(j) * entries + e]);
        Lanes slope = Lanes{} + linear[j];
        for (int k = 0; k <= j; ++k) slope += quadratic[j][k] * a[k];
        cost += a[j] * slope;
      }
      const auto better = cost < least;
      uint64_t halves[2];
      std::memcpy(halves, &better, sizeof(halves));
      if ((halves[0] | halves[1]) == 0) continue;
      for (size_t l = 0; l < kLanes; ++l) {
        if (!(cost[l] < least_cost)) continue;
        least_cost = cost[l];
        best = e + l;
      }
      least = Lanes{} + least_cost;
    }
    for (int j = 0; j < n; ++j) magnitude_[first + j] = grid_.values[static_cast<size_t>(j) * entries + best];
  }

  const GridChoice& grid_;
  float m_[kUnit][kUnit], b_[kUnit];
  float sign_[kUnit] = {}, magnitude_[kUnit] = {};
};

}  // namespace

void ChooseUnit(const GridChoice& grid, const float (&m)[kUnit][kUnit], const float (&b)[kUnit],
                const float (&wanted)[kUnit], float s, int8_t* codes) {
  UnitSearch search(grid, m, b, s);
  search.SetSigns(wanted);
  search.ChooseEntries();
  search.FlipSigns();
  search.ChooseEntries();
  search.Put(codes);
}

}  // namespace sluice::formats
