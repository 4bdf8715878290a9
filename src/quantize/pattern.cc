#include "quantize/pattern.h"

namespace sluice::quantize {
namespace {

// One element of a pattern that stands for one character. Returns its length in the pattern, 0 when `c` is
// none of it.
size_t MatchOne(std::string_view pattern, char c) {
  if (pattern[0] == '?') return 1;
  const size_t close = pattern[0] == '[' ? pattern.find(']', 2) : pattern.npos;
  if (close == pattern.npos) return pattern[0] == c ? 1 : 0;  // a bracket that nothing closes is a bracket
  const bool others = pattern[1] == '!';
  bool among = false;
  for (size_t i = others ? 2 : 1; i < close; ++i) {
    if (i + 2 < close && pattern[i + 1] == '-') {
      among = among || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      among = among || pattern[i] == c;
    }
  }
  return among != others ? close + 1 : 0;
}

}  // namespace

bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.find_first_of("*?[") == pattern.npos) return name.find(pattern) != name.npos;
  size_t p = 0, n = 0;
  size_t star = pattern.npos, resume = 0;  // the last *, and where in the name what follows it is tried next
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
      continue;
    }
    const size_t length = p < pattern.size() ? MatchOne(pattern.substr(p), name[n]) : 0;
    if (length > 0) {
      p += length;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace sluice::quantize
