#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace sluice::text {
namespace {

std::vector<uint32_t> Borders(std::string_view text) {
  std::vector<uint32_t> border(text.size(), 0);
  for (size_t i = 1; i < text.size(); ++i) {
    size_t length = border[i - 1];
    while (length > 0 && text[i] != text[length]) length = border[length - 1];
    border[i] = static_cast<uint32_t>(text[i] == text[length] ? length + 1 : 0);
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) continue;
    std::vector<uint32_t> border = Borders(stops[i]);
    patterns_.push_back({std::move(stops[i]), std::move(border), i});
  }
}

bool StopMatcher::Push(std::string_view text, std::string* out) {
  if (matched_) return true;
  for (const char byte : text) {
    held_.push_back(byte);
    const Pattern* found = nullptr;
    for (Pattern& pattern : patterns_) {
      size_t& length = pattern.matched;
      while (length > 0 && pattern.text[length] != byte) length = pattern.border[length - 1];
      if (pattern.text[length] == byte) ++length;
      if (length < pattern.text.size()) continue;
      if (found == nullptr || pattern.text.size() > found->text.size()) found = &pattern;
      length = pattern.border[length - 1];
    }
    if (found != nullptr) {
      matched_ = found->index;
      out->append(held_, 0, held_.size() - found->text.size());
      held_.clear();
      return true;
    }
  }
  size_t keep = 0;  // the longest beginning of a stop string that the text ends with
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.matched);
  out->append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return false;
}

void StopMatcher::Finish(std::string* out) {
  out->append(held_);
  held_.clear();
  for (Pattern& pattern : patterns_) pattern.matched = 0;
}

}  // namespace sluice::text
