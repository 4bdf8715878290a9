#include "text/merge_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr size_t kProbesPerMerge = 32;  // as in vocabulary.cc

size_t SlotOf(TokenId left, TokenId right, size_t n_slots) {
  const uint64_t pair =
      (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  const uint64_t mixed = (pair ^ (pair >> 29)) * 0x9E3779B97F4A7C15ull;
  return (mixed ^ (mixed >> 32)) & (n_slots - 1);
}

}  // namespace

Result<MergeTable> MergeTable::Create(const Vocabulary& vocabulary, std::span<const std::string_view> merges,
                                      std::vector<std::string>* warnings) {
  MergeTable table;
  if (merges.size() >= kNoMerge / 4) {
    return Fail(ErrorCode::kCorrupt, "tokenizer.ggml.merges has {} entries, more than this program can hold",
                merges.size());
  }
  table.merges_.reserve(merges.size());
  table.slots_.assign(std::bit_ceil(2 * merges.size() + 2), kNoMerge);
  size_t probes = 0, absent = 0, first_absent = 0;
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view text = merges[i];
    const size_t space = text.find(' ', 1);  // from 1: a token may itself be a space
    Merge merge{kNoToken, kNoToken, kNoToken};
    if (space != std::string_view::npos) {
      joined.assign(text.substr(0, space)).append(text.substr(space + 1));
      merge = {vocabulary.Find(text.substr(0, space)), vocabulary.Find(text.substr(space + 1)),
               vocabulary.Find(joined)};
    }
    if (merge.left == kNoToken || merge.right == kNoToken || merge.result == kNoToken) {
      if (absent++ == 0) first_absent = i;
      continue;
    }
    size_t slot = SlotOf(merge.left, merge.right, table.slots_.size());
    const auto same = [&](uint32_t rank) {
      return table.merges_[rank].left == merge.left && table.merges_[rank].right == merge.right;
    };
    while (table.slots_[slot] != kNoMerge && !same(table.slots_[slot])) {
      slot = (slot + 1) & (table.slots_.size() - 1);
      if (++probes > kProbesPerMerge * merges.size() + 4096) {
        return Fail(ErrorCode::kCorrupt,
                    "the pairs of tokenizer.ggml.merges are made to collide in a hash table");
      }
    }
    if (table.slots_[slot] != kNoMerge) continue;  // repeated: the first counts
    table.slots_[slot] = static_cast<uint32_t>(table.merges_.size());
    table.merges_.push_back(merge);
  }
  if (absent > 0) {
    warnings->push_back(fmt::format(
        "{} of {} merges name texts that are not tokens (the first is {}, '{}'); they are not used", absent,
        merges.size(), first_absent, ToValidUtf8(merges[first_absent].substr(0, 64))));
  }
  return table;
}

uint32_t MergeTable::Find(TokenId left, TokenId right) const {
  for (size_t slot = SlotOf(left, right, slots_.size());; slot = (slot + 1) & (slots_.size() - 1)) {
    const uint32_t rank = slots_[slot];
    if (rank == kNoMerge || (merges_[rank].left == left && merges_[rank].right == right)) return rank;
  }
}

void MergeTable::Apply(std::vector<TokenId>* symbols, Workspace* workspace) const {
  // The symbols stay where they are and form a linked list. The queue holds (rank, place of the left symbol)
  // in one number, so that its order is the order of merging. An entry is out of date when the symbols at its
  // place are no longer those of its merge; a symbol that was merged away is marked by kNoToken, which no
  // merge names.
  std::vector<TokenId>& ids = *symbols;
  const uint32_t count = static_cast<uint32_t>(ids.size());
  if (count < 2) return;
  std::vector<uint64_t>& queue = workspace->queue;
  std::vector<uint32_t>& next = workspace->next;
  std::vector<uint32_t>& previous = workspace->previous;
  queue.clear();
  next.resize(count);
  previous.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // wraps at 0; checked there
    if (i + 1 == count) break;
    const uint32_t rank = Find(ids[i], ids[i + 1]);
    if (rank != kNoMerge) queue.push_back((static_cast<uint64_t>(rank) << 32) | i);
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());

  const auto offer = [&](uint32_t left, uint32_t right) {
    const uint32_t rank = Find(ids[left], ids[right]);
    if (rank == kNoMerge) return;
    queue.push_back((static_cast<uint64_t>(rank) << 32) | left);
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    const uint64_t first = queue.front();
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const Merge& merge = merges_[first >> 32];
    const uint32_t left = static_cast<uint32_t>(first);
    const uint32_t right = next[left];
    if (ids[left] != merge.left || right == count || ids[right] != merge.right) continue;
    ids[left] = merge.result;
    ids[right] = kNoToken;
    next[left] = next[right];
    if (next[left] != count) previous[next[left]] = left;
    if (left != 0) offer(previous[left], left);
    if (next[left] != count) offer(left, next[left]);
  }
  std::erase(ids, kNoToken);
}

}  // namespace sluice::text
