#include "plan/planner.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/check.h"
#include "base/units.h"

namespace sluice::plan {

namespace {

using kv::KvType;
using memory::Account;

constexpr uint64_t kPage = 4096;
constexpr int64_t kMaxContext = int64_t{1} << 26;  // more than any model reads
// Down to here a context is shortened before the cache loses bits or weights are streamed; a chat needs about
// this much.
constexpr int64_t kComfortableContext = 2048;
constexpr int64_t kSmallestBatch = 32;
// Bytes of KV cache displace pinned weights, which then are read again for every token. While weights stream,
// a context that nobody asked for takes at most this share of the budget.
constexpr uint64_t kKvShareWhileStreaming = 8;

struct KvTypes {
  KvType k, v;
};
// From the best downwards.
constexpr KvTypes kKvLadder[] = {{KvType::kF16, KvType::kF16},
                                 {KvType::kQ8_0, KvType::kQ8_0},
                                 {KvType::kQ8_0, KvType::kQ4_0},
                                 {KvType::kQ4_0, KvType::kQ4_0}};

std::string KvText(KvType k, KvType v) {
  return k == v ? std::string(kv::Name(k)) : fmt::format("K {} / V {}", kv::Name(k), kv::Name(v));
}

// One way to run a model: what the ladder changes.
struct Setting {
  Residency residency = Residency::kResident;
  kv::Settings kv;
};

class Planner {
 public:
  Planner(const ModelFacts& facts, const Request& request) : facts_(facts), request_(request) {}

  Result<Plan> Make() const;
  bool FitsAt(int64_t context, bool stream) const;
  Setting Wanted() const;

 private:
  // For accounts of this plan.
  uint64_t room() const {
    const uint64_t taken = request_.used_bytes + UnaccountedWithin(request_.budget_bytes);
    return request_.budget_bytes > taken ? request_.budget_bytes - taken : 0;
  }
  uint64_t Activations(const kv::Settings& kv) const {
    return facts_.activation_bytes(kv, request_.threads, request_.fusion);
  }
  bool unlimited() const { return request_.budget_bytes == memory::Ledger::kUnlimited; }

  weights::StoreOptions Store(const Setting& setting, uint64_t pinned_bytes) const;
  // What each account holds. kPin holds up to pinned_bytes of weights; 0 is the least it can do with.
  std::array<uint64_t, memory::kAccountCount> Accounts(const Setting& setting,
                                                       uint64_t pinned_bytes = 0) const;
  uint64_t Bytes(const Setting& setting) const {
    const auto accounts = Accounts(setting);
    return std::accumulate(accounts.begin(), accounts.end(), uint64_t{0});
  }
  // The budget that a setting takes.
  uint64_t Total(const Setting& setting) const {
    const uint64_t accounted = Bytes(setting) + request_.used_bytes;
    return accounted + UnaccountedBytes(accounted);
  }
  bool Fits(const Setting& setting) const { return unlimited() || Bytes(setting) <= room(); }

  bool StepDown(Setting& setting, int64_t context_floor) const;
  bool Descend(Setting& setting, int64_t context_floor) const;
  Setting Lowest(Setting setting) const;
  void ShortenWhileStreaming(Setting& setting) const;
  std::vector<std::string> Steps(const Setting& from, const Setting& to) const;
  bool HasRoomForPageCache(const Setting& setting) const;
  Plan Finish(const Setting& wanted, const Setting& setting) const;
  Error Refuse(const Setting& setting) const;
  int64_t LargestTypedContext(Setting setting) const;

  const ModelFacts& facts_;
  const Request& request_;
};

Setting Planner::Wanted() const {
  Setting setting{.residency = request_.residency.value_or(Residency::kResident)};
  setting.kv.context_length = request_.context_length != 0 ? request_.context_length
                                                           : std::min(facts_.context_length, kDefaultContext);
  setting.kv.k_type = request_.k_type.value_or(KvType::kF16);
  setting.kv.v_type = request_.v_type.value_or(KvType::kF16);
  // More than the context holds is never read in one go.
  setting.kv.batch = std::min(request_.batch.value_or(kDefaultBatch), setting.kv.context_length);
  setting.kv.sequences = request_.sequences;
  setting.kv.overflow = request_.overflow;
  setting.kv.sinks = request_.sinks;
  return setting;
}

weights::StoreOptions Planner::Store(const Setting& setting, uint64_t pinned_bytes) const {
  weights::StoreOptions store = request_.store;
  store.residency = setting.residency;
  store.pinned_bytes = std::min(pinned_bytes, request_.store.pinned_bytes);
  return store;
}

std::array<uint64_t, memory::kAccountCount> Planner::Accounts(const Setting& setting,
                                                              uint64_t pinned_bytes) const {
  std::array<uint64_t, memory::kAccountCount> accounts{};
  const auto set = [&](Account account, uint64_t bytes) { accounts[static_cast<size_t>(account)] = bytes; };
  const weights::Footprint weights = facts_.weight_bytes(Store(setting, pinned_bytes));
  set(Account::kWeightsPinned, weights.pinned_bytes);
  set(Account::kWeightsStream, weights.ring_bytes);
  set(Account::kKv, AlignUp(facts_.kv_bytes(setting.kv), kPage));
  set(Account::kActivations, AlignUp(Activations(setting.kv), kPage));
  set(Account::kTokenizer, facts_.tokenizer_bytes);
  set(Account::kIo, weights.io_bytes);
  set(Account::kReserve, request_.reserve_bytes);
  return accounts;
}

// One step of the ladder, the residency apart. False at its foot.
bool Planner::StepDown(Setting& setting, int64_t context_floor) const {
  kv::Settings& kv = setting.kv;
  if (request_.context_length == 0 && kv.context_length > context_floor) {
    kv.context_length = std::max(kv.context_length / 2, context_floor);
    kv.batch = std::min(kv.batch, kv.context_length);
    return true;
  }
  for (const KvTypes& types : kKvLadder) {
    kv::Settings lower = kv;
    if (!request_.k_type) lower.k_type = types.k;
    if (!request_.v_type) lower.v_type = types.v;
    if (facts_.kv_bytes(lower) >= facts_.kv_bytes(kv)) continue;
    kv = lower;
    return true;
  }
  if (!request_.batch && kv.batch > kSmallestBatch) {
    kv.batch = std::max(kv.batch / 2, kSmallestBatch);
    return true;
  }
  return false;
}

bool Planner::Descend(Setting& setting, int64_t context_floor) const {
  while (!Fits(setting)) {
    if (!StepDown(setting, context_floor)) return false;
  }
  return true;
}

Setting Planner::Lowest(Setting setting) const {
  while (StepDown(setting, kSmallestContext)) {
  }
  return setting;
}

void Planner::ShortenWhileStreaming(Setting& setting) const {
  if (request_.context_length != 0) return;
  kv::Settings& kv = setting.kv;
  while (kv.context_length > kComfortableContext &&
         facts_.kv_bytes(kv) > request_.budget_bytes / kKvShareWhileStreaming)
    kv.context_length = std::max(kv.context_length / 2, kComfortableContext);
  kv.batch = std::min(kv.batch, kv.context_length);
}

std::vector<std::string> Planner::Steps(const Setting& from, const Setting& to) const {
  std::vector<std::string> steps;
  if (to.kv.context_length != from.kv.context_length) {
    steps.push_back(fmt::format("context {} → {} tokens: {} would take {} of KV cache",
                                from.kv.context_length, to.kv.context_length, from.kv.context_length,
                                FormatBytes(facts_.kv_bytes(from.kv))));
  }
  if (to.kv.k_type != from.kv.k_type || to.kv.v_type != from.kv.v_type) {
    kv::Settings before = to.kv;
    before.k_type = from.kv.k_type;
    before.v_type = from.kv.v_type;
    steps.push_back(fmt::format("KV cache {} → {}: {} instead of {}", KvText(from.kv.k_type, from.kv.v_type),
                                KvText(to.kv.k_type, to.kv.v_type), FormatBytes(facts_.kv_bytes(to.kv)),
                                FormatBytes(facts_.kv_bytes(before))));
  }
  if (to.kv.batch != std::min(from.kv.batch, to.kv.context_length)) {
    steps.push_back(fmt::format("batch {} → {} tokens: {} of activations instead of {}", from.kv.batch,
                                to.kv.batch, FormatBytes(Activations(to.kv)),
                                FormatBytes(Activations(from.kv))));
  }
  if (to.residency != from.residency) {
    steps.push_back(fmt::format(
        "weights stream from storage: with all {} of them in memory it would take {}, the budget is {}",
        FormatBytes(facts_.weight_bytes(Store(from, 0)).pinned_bytes), FormatBytes(Total(from)),
        FormatBytes(request_.budget_bytes)));
  }
  return steps;
}

// Even with the file in the page cache, no more than the budget is taken.
bool Planner::HasRoomForPageCache(const Setting& setting) const {
  return setting.residency == Residency::kResident && !unlimited() &&
         Bytes(setting) + facts_.tensor_bytes <= room();
}

Plan Planner::Finish(const Setting& wanted, const Setting& setting) const {
  const uint64_t least = Bytes(setting);
  const uint64_t left = unlimited() ? UINT64_MAX : room() - std::min(room(), least);
  Plan plan{.store = Store(setting, left),
            .kv = setting.kv,
            .accounts = Accounts(setting, left),
            .used_bytes = request_.used_bytes,
            .budget_bytes = request_.budget_bytes,
            .bounded = setting.residency != Residency::kMmap,
            .steps = Steps(wanted, setting)};
  if (plan.store.page_cache == weights::PageCache::kLeave && !HasRoomForPageCache(setting))
    plan.store.page_cache = weights::PageCache::kPassBy;
  plan.unaccounted_bytes =
      UnaccountedBytes(std::accumulate(plan.accounts.begin(), plan.accounts.end(), request_.used_bytes));
  plan.streamed_bytes = facts_.weight_bytes(plan.store).streamed_bytes;
  // The page cache drops the least recently used too, which hits nothing on a cycle longer than itself.
  if (!plan.bounded && !unlimited() && least + facts_.swept_bytes() > room())
    plan.streamed_bytes = facts_.swept_bytes();
  return plan;
}

// The largest context that fits, everything else as it is. 0 when none does.
int64_t Planner::LargestTypedContext(Setting setting) const {
  int64_t fits = 0, too_much = kMaxContext / kv::kPagePositions + 1;  // in pages
  while (too_much - fits > 1) {
    const int64_t middle = fits + (too_much - fits) / 2;
    setting.kv.context_length = middle * kv::kPagePositions;
    if (Fits(setting)) {
      fits = middle;
    } else {
      too_much = middle;
    }
  }
  return fits * kv::kPagePositions;
}

Error Planner::Refuse(const Setting& setting) const {
  const Setting lowest = Lowest(setting);
  const auto accounts = Accounts(setting);
  const size_t largest = static_cast<size_t>(std::ranges::max_element(accounts) - accounts.begin());
  std::string next = fmt::format("it takes a budget of {}", FormatBytes(Total(lowest)));
  if (const int64_t context = request_.context_length != 0 ? LargestTypedContext(lowest) : 0; context > 0)
    next += fmt::format(", or a context of {} tokens", context);
  if (request_.k_type || request_.v_type) {
    Request freed = request_;
    freed.k_type = freed.v_type = std::nullopt;
    if (MakePlan(facts_, freed)) next += ", or a KV cache of fewer bits";
  }
  if (setting.residency == Residency::kResident || setting.residency == Residency::kLru) {
    Request freed = request_;
    freed.residency = Residency::kPin;
    if (MakePlan(facts_, freed)) next += ", or --residency pin, which streams weights from storage";
  }
  std::string already;
  if (request_.used_bytes > 0)
    already = fmt::format(", of which {} are in use", FormatBytes(request_.used_bytes));
  std::string what = fmt::format("{} with a context of {} tokens", facts_.name, setting.kv.context_length);
  return Fail(ErrorCode::kDoesNotFit,
              "{} does not fit: it needs {} (the largest part: {} {}) and the budget is {}{}; {}", what,
              FormatBytes(Total(setting) - request_.used_bytes),
              memory::AccountName(static_cast<Account>(largest)), FormatBytes(accounts[largest]),
              FormatBytes(request_.budget_bytes), already, next);
}

Result<Plan> Planner::Make() const {
  const Setting wanted = Wanted();
  if (Fits(wanted) && wanted.residency != Residency::kPin) return Finish(wanted, wanted);
  if (request_.strict) {
    if (Fits(wanted)) return Finish(wanted, wanted);
    Error error = Refuse(wanted);
    Request relaxed = request_;
    relaxed.strict = false;
    if (const auto plan = MakePlan(facts_, relaxed); plan && !plan->steps.empty())
      error.message += fmt::format("; without --strict: {}", fmt::join(plan->steps, "; "));
    return error;
  }
  const bool may_stream = !request_.residency;
  Setting setting = wanted;
  if (setting.residency != Residency::kPin &&
      Descend(setting, may_stream ? kComfortableContext : kSmallestContext))
    return Finish(wanted, setting);
  if (wanted.residency != Residency::kPin && !may_stream) return Refuse(wanted);
  setting = wanted;
  setting.residency = Residency::kPin;
  ShortenWhileStreaming(setting);
  if (!Descend(setting, kSmallestContext)) {
    // The smallest models take less in memory than the ring that streaming takes.
    Setting streamed = wanted;
    streamed.residency = Residency::kPin;
    return Refuse(may_stream && Bytes(Lowest(wanted)) <= Bytes(Lowest(streamed)) ? wanted : streamed);
  }
  return Finish(wanted, setting);
}

bool Planner::FitsAt(int64_t context, bool stream) const {
  Setting setting = Wanted();
  setting.residency = stream ? Residency::kPin : Residency::kResident;
  setting.kv.context_length = context;
  return Fits(setting);
}

}  // namespace

uint64_t Plan::total_bytes() const {
  return std::accumulate(accounts.begin(), accounts.end(), used_bytes + unaccounted_bytes);
}

Result<Plan> MakePlan(const ModelFacts& facts, const Request& request) {
  if (request.context_length < 0 || request.context_length > kMaxContext) {
    return Fail(ErrorCode::kInvalidArgument, "a context of {} tokens; expected 1 to {}",
                request.context_length, kMaxContext);
  }
  if (request.batch && *request.batch < 1) {
    return Fail(ErrorCode::kInvalidArgument, "a batch of {} tokens; expected 1 or more", *request.batch);
  }
  if (request.sequences < 1)
    return Fail(ErrorCode::kInvalidArgument, "{} sequences; expected 1 or more", request.sequences);
  // Learned positions end; rotated ones only get worse.
  if (facts.bounded_context && request.context_length > facts.context_length) {
    return Fail(ErrorCode::kInvalidArgument, "a context of {} tokens, but this model knows only {} positions",
                request.context_length, facts.context_length);
  }
  return Planner(facts, request).Make();
}

int64_t LargestContext(const ModelFacts& facts, const Request& request, KvType k_type, KvType v_type,
                       bool stream) {
  Request fixed = request;
  fixed.k_type = k_type;
  fixed.v_type = v_type;
  const Planner planner(facts, fixed);
  const int64_t most = (facts.bounded_context ? facts.context_length : kMaxContext) / kv::kPagePositions;
  int64_t fits = 0, too_much = most + 1;
  while (too_much - fits > 1) {
    const int64_t middle = fits + (too_much - fits) / 2;
    (planner.FitsAt(middle * kv::kPagePositions, stream) ? fits : too_much) = middle;
  }
  return fits * kv::kPagePositions;
}

std::string Summary(const Plan& plan) {
  std::string weights;
  const uint64_t held = plan.bytes(Account::kWeightsPinned);
  switch (plan.store.residency) {
    case Residency::kResident:
      weights = fmt::format("all weights in memory ({})", FormatBytes(held));
      break;
    case Residency::kPin:
      weights = fmt::format("{} of weights in memory, {} streamed for each token", FormatBytes(held),
                            FormatBytes(plan.streamed_bytes));
      break;
    case Residency::kLru:
      weights = fmt::format("weights in a cache of {} blocks, {} read for each token", plan.store.lru_blocks,
                            FormatBytes(plan.streamed_bytes));
      break;
    case Residency::kMmap:
      weights = "weights in the page cache, which no budget bounds";
      break;
  }
  const std::string budget =
      plan.budget_bytes == memory::Ledger::kUnlimited ? "no budget" : FormatBytes(plan.budget_bytes);
  return fmt::format("{} · context {}, KV {} · {} of {}", weights, plan.kv.context_length,
                     KvText(plan.kv.k_type, plan.kv.v_type), FormatBytes(plan.total_bytes()), budget);
}

}  // namespace sluice::plan
