// "Did you mean …": the known words that come nearest to an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::app {

// Single insertions, deletions, replacements and swaps of neighbours that turn one word into the other, bytewise,
// upper and lower case being the same. A word longer than 64 bytes is far from everything.
size_t EditDistance(std::string_view a, std::string_view b);

// At most `limit` candidates that `word` may be a slip of, nearest first: those that it is the beginning of, and those
// at most a third of its letters (at least one) away.
std::vector<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates, size_t limit = 3);

// " Did you mean a, b or c?", or nothing when nothing is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace sluice::app
