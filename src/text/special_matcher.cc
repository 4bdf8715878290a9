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

}  // namespace sluice::text
