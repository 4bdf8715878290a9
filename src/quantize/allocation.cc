#include "quantize/allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/units.h"

namespace sluice::quantize {
namespace {

// Choices that the search looks at before it is content with what it has.
constexpr int64_t kMostSteps = 2'000'000;

double Cost(const AllocationOption& option, double price) {
  return option.damage + price * static_cast<double>(option.bytes);
}

// The cheapest option at a price of bytes; of several the smallest.
size_t Cheapest(const AllocationItem& item, double price) {
  size_t best = 0;
  for (size_t o = 1; o < item.size(); ++o) {
    const double cost = Cost(item[o], price), least = Cost(item[best], price);
    if (cost < least || (cost == least && item[o].bytes < item[best].bytes)) best = o;
  }
  return best;
}

std::vector<size_t> CheapestOfAll(std::span<const AllocationItem> items, double price) {
  std::vector<size_t> chosen;
  for (const AllocationItem& item : items) chosen.push_back(Cheapest(item, price));
  return chosen;
}

uint64_t BytesOf(std::span<const AllocationItem> items, std::span<const size_t> chosen) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < items.size(); ++i) bytes += items[i][chosen[i]].bytes;
  return bytes;
}

double DamageOf(std::span<const AllocationItem> items, std::span<const size_t> chosen) {
  double damage = 0;
  for (size_t i = 0; i < items.size(); ++i) damage += items[i][chosen[i]].damage;
  return damage;
}

// The lowest price of a byte, within rounding, at which everybody's cheapest fits.
double FindPrice(std::span<const AllocationItem> items, uint64_t budget) {
  if (BytesOf(items, CheapestOfAll(items, 0)) <= budget) return 0;
  double high = 1e-30;
  while (BytesOf(items, CheapestOfAll(items, high)) > budget) high *= 2;
  double low = high / 2;
  for (int round = 0; round < 100; ++round) {
    const double middle = 0.5 * (low + high);
    (BytesOf(items, CheapestOfAll(items, middle)) > budget ? low : high) = middle;
  }
  return high;
}

// Uses what is left of the budget: again and again the one change that takes off the most damage.
void Fill(std::span<const AllocationItem> items, uint64_t budget, std::vector<size_t>& chosen) {
  uint64_t bytes = BytesOf(items, chosen);
  while (true) {
    double most = 0;
    size_t item = 0, option = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      const AllocationOption& now = items[i][chosen[i]];
      for (size_t o = 0; o < items[i].size(); ++o) {
        const double less = now.damage - items[i][o].damage;
        if (!(less > most) || bytes - now.bytes + items[i][o].bytes > budget) continue;
        most = less;
        item = i;
        option = o;
      }
    }
    if (most == 0) return;
    bytes += items[item][option].bytes - items[item][chosen[item]].bytes;
    chosen[item] = option;
  }
}

// Depth-first over all choices that may be better than the best so far. At a price p, a choice's damage is
// the bound plus each option's surplus over its item's cheapest plus p times the bytes left over: surpluses
// alone must stay below the gap.
class Search {
 public:
  Search(std::span<const AllocationItem> items, uint64_t budget, double price, double bound,
         std::vector<size_t>& best, double best_damage)
      : items_(items), budget_(budget), bound_(bound), best_(best), best_damage_(best_damage) {
    for (const AllocationItem& item : items) {
      const double least = Cost(item[Cheapest(item, price)], price);
      std::vector<Step>& steps = steps_.emplace_back();
      for (size_t o = 0; o < item.size(); ++o) steps.push_back({o, Cost(item[o], price) - least});
      std::ranges::stable_sort(steps, {}, &Step::surplus);
    }
    // Items whose second choice is near come last: what is decided first prunes most.
    order_.resize(items.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, std::greater<>(), [this](size_t i) {
      return steps_[i].size() > 1 ? steps_[i][1].surplus : std::numeric_limits<double>::infinity();
    });
    smallest_.assign(items.size() + 1, 0);
    for (size_t i = items.size(); i-- > 0;) {
      const AllocationItem& item = items[order_[i]];
      smallest_[i] = smallest_[i + 1] + std::ranges::min_element(item, {}, &AllocationOption::bytes)->bytes;
    }
    chosen_.assign(items.size(), 0);
  }

  // False when it gave up.
  bool Run() {
    Go(0, 0, 0);
    return steps_taken_ < kMostSteps;
  }
  double best_damage() const { return best_damage_; }

 private:
  struct Step {
    size_t option;
    double surplus;
  };

  void Go(size_t depth, uint64_t bytes, double surplus) {
    if (depth == items_.size()) {
      const double damage = DamageOf(items_, chosen_);
      if (!(damage < best_damage_)) return;
      best_damage_ = damage;
      best_ = chosen_;
      return;
    }
    const size_t item = order_[depth];
    for (const Step& step : steps_[item]) {
      if (++steps_taken_ >= kMostSteps) return;
      // Rounding must not cut off what is better: a little slack.
      if (bound_ + surplus + step.surplus > best_damage_ * (1 + 1e-12)) return;
      const uint64_t after = bytes + items_[item][step.option].bytes;
      if (after + smallest_[depth + 1] > budget_) continue;
      chosen_[item] = step.option;
      Go(depth + 1, after, surplus + step.surplus);
    }
  }

  const std::span<const AllocationItem> items_;
  const uint64_t budget_;
  const double bound_;
  std::vector<size_t>& best_;
  double best_damage_;
  std::vector<std::vector<Step>> steps_;  // of each item, the smallest surplus first
  std::vector<size_t> order_;
  std::vector<uint64_t> smallest_;  // bytes that the items from here on take at least
  std::vector<size_t> chosen_;
  int64_t steps_taken_ = 0;
};

}  // namespace

Result<Allocation> Allocate(std::span<const AllocationItem> items, uint64_t budget_bytes) {
  uint64_t least = 0;
  for (const AllocationItem& item : items) {
    SLUICE_CHECK(!item.empty());
    least += std::ranges::min_element(item, {}, &AllocationOption::bytes)->bytes;
  }
  if (least > budget_bytes) {
    return Fail(ErrorCode::kDoesNotFit, "{} is too little: the smallest types take {}",
                FormatBytes(budget_bytes), FormatBytes(least));
  }
  const double price = FindPrice(items, budget_bytes);
  Allocation allocation{.chosen = CheapestOfAll(items, price)};
  double bound = -price * static_cast<double>(budget_bytes);
  for (size_t i = 0; i < items.size(); ++i) bound += Cost(items[i][allocation.chosen[i]], price);
  Fill(items, budget_bytes, allocation.chosen);
  Search search(items, budget_bytes, price, bound, allocation.chosen, DamageOf(items, allocation.chosen));
  allocation.optimal = search.Run();
  allocation.bytes = BytesOf(items, allocation.chosen);
  allocation.damage = DamageOf(items, allocation.chosen);
  allocation.bound =
      allocation.optimal ? allocation.damage : std::max(0.0, std::min(bound, allocation.damage));
  return allocation;
}

}  // namespace sluice::quantize
