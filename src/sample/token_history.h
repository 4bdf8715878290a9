// TokenHistory: the last tokens of a conversation, newest first, in a ring that never grows. One thread at a
// time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::sample {

class TokenHistory {
 public:
  explicit TokenHistory(size_t capacity) : ring_(capacity) {}

  void Push(int32_t token) {
    if (ring_.empty()) return;
    ring_[next_] = token;
    next_ = next_ + 1 == ring_.size() ? 0 : next_ + 1;
    size_ = std::min(size_ + 1, ring_.size());
  }

  void Clear() { next_ = size_ = 0; }

  size_t size() const { return size_; }
  size_t capacity() const { return ring_.size(); }

  // The i-th newest token, i < size(); 0 is the newest.
  int32_t operator[](size_t i) const {
    return ring_[next_ > i ? next_ - 1 - i : next_ + ring_.size() - 1 - i];
  }

 private:
  std::vector<int32_t> ring_;
  size_t next_ = 0;  // where the next token goes
  size_t size_ = 0;
};

}  // namespace sluice::sample
