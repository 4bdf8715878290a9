#include "text/sentencepiece.h"

#include <algorithm>
#include <string>

#include "text/pieces.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr uint32_t kEnd = UINT32_MAX;

// A stretch of the text that has been joined so far; size 0 once it is part of the one before it.
struct Symbol {
  uint32_t begin;
  uint32_t size;
  uint32_t previous;
  uint32_t next;
};

// Two neighbours that are a token together. Out of date once either has changed, which shows in their size.
struct Pair {
  float score;
  uint32_t left;
  uint32_t right;
  uint32_t size;
};

// The order of a heap whose top is joined next: the best score, the leftmost among equals.
bool JoinsLater(const Pair& a, const Pair& b) {
  return a.score != b.score ? a.score < b.score : a.left > b.left;
}

std::vector<Symbol> Characters(std::string_view text) {
  std::vector<Symbol> symbols;
  symbols.reserve(text.size());
  for (uint32_t position = 0; position < text.size();) {
    const uint32_t index = static_cast<uint32_t>(symbols.size());
    const uint32_t size = DecodeUtf8(text.substr(position)).size;
    symbols.push_back({position, size, index == 0 ? kEnd : index - 1, index + 1});
    position += size;
  }
  if (!symbols.empty()) symbols.back().next = kEnd;
  return symbols;
}

}  // namespace

void EncodeSentencePiece(const Vocabulary& vocabulary, std::string_view text, bool prefix_space,
                         std::vector<TokenId>* out) {
  std::string marked;
  if (prefix_space) AppendMarkingSpaces(" ", &marked);
  AppendMarkingSpaces(text, &marked);
  const std::string_view input = marked;

  std::vector<Symbol> symbols = Characters(input);
  std::vector<Pair> queue;
  const auto offer = [&](uint32_t left, uint32_t right) {
    if (left == kEnd || right == kEnd) return;
    const uint32_t size = symbols[left].size + symbols[right].size;
    if (size > vocabulary.longest_token()) return;
    const TokenId token = vocabulary.Find(input.substr(symbols[left].begin, size));
    if (token == kNoToken) return;
    queue.push_back({vocabulary.Score(token), left, right, size});
    std::push_heap(queue.begin(), queue.end(), JoinsLater);
  };
  for (uint32_t i = 1; i < symbols.size(); ++i) offer(i - 1, i);
  while (!queue.empty()) {
    const Pair pair = queue.front();
    std::pop_heap(queue.begin(), queue.end(), JoinsLater);
    queue.pop_back();
    Symbol& left = symbols[pair.left];
    Symbol& right = symbols[pair.right];
    if (left.size == 0 || right.size == 0 || left.size + right.size != pair.size) continue;
    left.size = pair.size;
    left.next = right.next;
    right.size = 0;
    if (left.next != kEnd) symbols[left.next].previous = pair.left;
    offer(left.previous, pair.left);
    offer(pair.left, left.next);
  }
  for (uint32_t i = symbols.empty() ? kEnd : 0; i != kEnd; i = symbols[i].next) {
    const std::string_view piece = input.substr(symbols[i].begin, symbols[i].size);
    const TokenId token = vocabulary.Find(piece);
    if (token != kNoToken) {
      out->push_back(token);
    } else {
      AppendBytesOrUnknown(vocabulary, piece, out);
    }
  }
}

}  // namespace sluice::text
