#include "suggest.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace sluice::app {

namespace {

constexpr size_t kLongestWord = 64;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool Same(char a, char b) { return Lower(a) == Lower(b); }

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) > kLongestWord) return a == b ? 0 : kLongestWord;
  std::array<std::array<size_t, kLongestWord + 1>, kLongestWord + 1> distance;  // of prefixes
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      size_t best = std::min(distance[i - 1][j], distance[i][j - 1]) + 1;
      best = std::min(best, distance[i - 1][j - 1] + (Same(a[i - 1], b[j - 1]) ? 0 : 1));
      if (i > 1 && j > 1 && Same(a[i - 1], b[j - 2]) && Same(a[i - 2], b[j - 1]))
        best = std::min(best, distance[i - 2][j - 2] + 1);
      distance[i][j] = best;
    }
  }
  return distance[a.size()][b.size()];
}

std::vector<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates, size_t limit) {
  std::vector<std::tuple<size_t, std::string>> near;  // distance first: that is the order
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 2 && word.size() < candidate.size() &&
                        std::ranges::equal(word, std::string_view(candidate).substr(0, word.size()), Same);
    const size_t distance = EditDistance(word, candidate);
    if (begins || distance <= std::max<size_t>(1, word.size() / 3)) near.emplace_back(distance, candidate);
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(limit, near.size()); ++i) names.push_back(std::get<1>(near[i]));
  return names;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> names = Nearest(word, candidates);
  if (names.empty()) return "";
  std::string text = " Did you mean ";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text + "?";
}

}  // namespace sluice::app
