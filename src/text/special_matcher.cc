#include "text/special_matcher.h"

#include <algorithm>
#include <utility>

namespace sluice::text {

SpecialMatcher SpecialMatcher::Create(const Vocabulary& vocabulary, std::vector<TokenId> ids) {
  SpecialMatcher matcher;
  std::erase_if(ids, [&](TokenId id) { return vocabulary.Text(id).empty(); });
  // string_view compares bytes as unsigned, which is the order that the narrowing in Next needs.
  std::sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    return std::pair(vocabulary.Text(a), a) < std::pair(vocabulary.Text(b), b);
  });
  ids.shrink_to_fit();
  for (const TokenId id : ids) ++matcher.first_[static_cast<uint8_t>(vocabulary.Text(id)[0]) + 1u];
  for (size_t b = 1; b < matcher.first_.size(); ++b) matcher.first_[b] += matcher.first_[b - 1];
  matcher.ids_ = std::move(ids);
  return matcher;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::Next(const Vocabulary& vocabulary, std::string_view text,
                                                          size_t from) const {
  if (ids_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    const uint8_t first_byte = static_cast<uint8_t>(text[begin]);
    auto low = ids_.begin() + first_[first_byte];
    auto high = ids_.begin() + first_[first_byte + 1u];
    // [low, high) are the tokens that agree with the text in the first `length` bytes; the shorter come
    // first.
    std::optional<Match> longest;
    for (size_t length = 1; low != high; ++length) {
      if (vocabulary.Text(*low).size() == length) {
        longest = Match{begin, begin + length, *low};
        while (low != high && vocabulary.Text(*low).size() == length) ++low;
      }
      if (begin + length == text.size()) break;
      const uint8_t byte = static_cast<uint8_t>(text[begin + length]);
      const auto at = [&](TokenId id) { return static_cast<uint8_t>(vocabulary.Text(id)[length]); };
      low = std::partition_point(low, high, [&](TokenId id) { return at(id) < byte; });
      high = std::partition_point(low, high, [&](TokenId id) { return at(id) <= byte; });
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace sluice::text
