#include "sample/dry.h"

#include <algorithm>
#include <utility>

#include "base/math.h"

namespace sluice::sample {

Dry::Dry(const Settings& settings, std::vector<std::string> breakers, AppendPiece append_piece,
         size_t vocab_size)
    : settings_(settings), append_piece_(std::move(append_piece)) {
  if (!settings_.active()) return;
  for (std::string& text : breakers) {
    std::vector<uint32_t> border(text.size() + 1, 0);
    for (size_t i = 1, k = 0; i < text.size(); ++i) {
      while (k > 0 && text[i] != text[k]) k = border[k];
      if (text[i] == text[k]) ++k;
      border[i + 1] = static_cast<uint32_t>(k);
    }
    breakers_.push_back({std::move(text), std::move(border)});
  }
  piece_.reserve(1024);
  runs_.resize(settings_.window);
  longest_.resize(vocab_size);
}

bool Dry::Breaker::Advance(std::string_view piece, uint32_t* state) const {
  bool completed = false;
  for (const char c : piece) {
    while (*state > 0 && (*state == text.size() || text[*state] != c)) *state = border[*state];
    if (text[*state] == c) ++*state;
    completed |= *state == text.size();
  }
  return completed;
}

void Dry::Accept(int32_t token) {
  if (longest_.empty()) return;
  piece_.clear();
  append_piece_(token, &piece_);
  bool completed = false;
  for (Breaker& breaker : breakers_) completed |= breaker.Advance(piece_, &breaker.progress);
  run_length_ = completed ? 0 : run_length_ + 1;
}

bool Dry::CompletesBreaker(int32_t token) {
  piece_.clear();
  append_piece_(token, &piece_);
  for (const Breaker& breaker : breakers_) {
    uint32_t progress = breaker.progress;
    if (breaker.Advance(piece_, &progress)) return true;
  }
  return false;
}

// The Z algorithm on the window, newest token first: runs_[i] is the number of tokens, at most `limit`, that
// are the same reading back from i as from 0. Linear, whatever the text.
void Dry::FindRuns(const TokenHistory& history, size_t limit) {
  const size_t size = std::min(history.size(), settings_.window);
  size_t left = 0, right = 0;  // [left, right) is the match found so far that reaches furthest
  for (size_t i = 1; i < size; ++i) {
    size_t length = i < right ? std::min<size_t>(right - i, runs_[i - left]) : 0;
    if (i + length >= right) {
      while (length < limit && i + length < size && history[i + length] == history[length]) ++length;
      left = i;
      right = i + length;
    }
    runs_[i] = static_cast<uint32_t>(length);
  }
}

void Dry::Apply(const TokenHistory& history, std::span<float> logits) {
  if (longest_.empty() || run_length_ < settings_.allowed_length) return;
  FindRuns(history, run_length_);
  const size_t size = std::min(history.size(), settings_.window);
  for (size_t i = 1; i < size; ++i) {
    uint32_t& longest = longest_[static_cast<size_t>(history[i - 1])];
    longest = std::max(longest, runs_[i]);
  }
  for (size_t i = 1; i < size; ++i) {
    const int32_t token = history[i - 1];
    const uint32_t length = std::exchange(longest_[static_cast<size_t>(token)], 0);
    if (length < settings_.allowed_length || CompletesBreaker(token)) continue;
    const double power = PowDouble(settings_.base, static_cast<double>(length - settings_.allowed_length));
    logits[static_cast<size_t>(token)] -= static_cast<float>(std::min(settings_.multiplier * power, 1e30));
  }
}

Dry::State Dry::Save() const {
  State state{run_length_, {}};
  for (const Breaker& breaker : breakers_) state.breaker_progress.push_back(breaker.progress);
  return state;
}

bool Dry::Restore(const State& state) {
  if (state.breaker_progress.size() != breakers_.size()) return false;
  for (size_t i = 0; i < breakers_.size(); ++i) {
    if (state.breaker_progress[i] > breakers_[i].text.size()) return false;
  }
  for (size_t i = 0; i < breakers_.size(); ++i) breakers_[i].progress = state.breaker_progress[i];
  run_length_ = state.run_length;
  return true;
}

}  // namespace sluice::sample
