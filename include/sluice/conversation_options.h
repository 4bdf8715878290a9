// What a conversation should be like, as far as it costs memory. Everything left open is decided by the plan.
#pragma once

#include <cstdint>
#include <optional>

#include "kv/cache.h"
#include "runtime/fusion.h"

namespace sluice {

struct ConversationOptions {
  int64_t context_length =
      0;  // most tokens held; 0: the model's own, at most 8192, less where the budget is short
  std::optional<int64_t>
      batch;  // tokens of a prompt that are read in one go: 512, less where the budget is short
  // Of the cache: f16, fewer bits where the budget is short.
  std::optional<kv::KvType> k_type;
  std::optional<kv::KvType> v_type;
  bool rotate = true;  // rows of 4 and 5 bits before they are quantised; off only to measure what it gains
  runtime::Fusion fusion = runtime::Fusion::kAll;  // less only to measure what it gains
  kv::Overflow overflow = kv::Overflow::kStop;     // what becomes of the past when the context is full
  int64_t window = 0;  // kWindow: newest tokens that stay visible (0: what the context has beside the sinks)
  int64_t sinks = 4;   // kWindow, kHeavy: first tokens that stay visible
};

}  // namespace sluice
