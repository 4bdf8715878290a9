#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/math.h"
#include "sample/softmax.h"

namespace sluice::sample {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// The total order of tokens: likelier first, the lower id among equals.
bool Likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Fills in the weights e^((logit − max) / temperature) and returns their sum in the order of the list.
double Weigh(std::span<Candidate> candidates, float max, double temperature) {
  double sum = 0;
  for (Candidate& c : candidates) {
    c.weight = ExpNonPositive((static_cast<double>(c.logit) - max) / temperature);
    sum += c.weight;
  }
  return sum;
}

float LargestLogit(std::span<const Candidate> candidates) {
  float max = kImpossible;
  for (const Candidate& c : candidates) max = std::max(max, c.logit);
  return max;
}

// The least logit whose probability is `ratio` of that of `max`.
float FloorFor(float max, double ratio) {
  return ratio > 0 ? static_cast<float>(static_cast<double>(max) + LogDouble(std::min(ratio, 1.0)))
                   : kImpossible;
}

float ToFloat(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return std::isinf(value) ? static_cast<float>(value) : static_cast<float>(std::clamp(value, -kMax, kMax));
}

// A window as asked for (−1 = everything), in tokens.
size_t Window(int64_t asked, int64_t context_length) {
  return static_cast<size_t>(asked < 0 ? context_length : std::min(asked, context_length));
}

}  // namespace

struct Sampler::Setup {
  const SamplerOptions& options;
  SamplerModel model;
  Penalties::Settings penalties;
  Dry::Settings dry;
};

Result<Sampler> Sampler::Create(const SamplerOptions& options, SamplerModel model) {
  SLUICE_CHECK(model.vocab_size > 0 && model.context_length > 0);
  SLUICE_TRY(Validate(options, model.vocab_size));
  if (options.temperature > 0 && !options.seed)
    return Fail(ErrorCode::kInvalidArgument, "seed is missing; a temperature above 0 needs one");
  const Penalties::Settings penalties{
      Window(options.repeat_last_n, model.context_length), static_cast<float>(options.repeat_penalty),
      static_cast<float>(options.presence_penalty), static_cast<float>(options.frequency_penalty)};
  const Dry::Settings dry{Window(options.dry_penalty_last_n, model.context_length), options.dry_multiplier,
                          options.dry_base, static_cast<size_t>(options.dry_allowed_length)};
  SLUICE_CHECK(!dry.active() || model.append_piece);
  return Sampler(Setup{options, std::move(model), penalties, dry});
}

Sampler::Sampler(Setup setup)
    : vocab_size_(static_cast<size_t>(setup.model.vocab_size)),
      history_(std::max(setup.penalties.active() ? setup.penalties.window + 1 : 0,
                        setup.dry.active() ? setup.dry.window : 0)),
      penalties_(setup.penalties, vocab_size_),
      dry_(setup.dry, setup.options.dry_sequence_breakers, std::move(setup.model.append_piece), vocab_size_),
      random_(setup.options.seed.value_or(0)),
      logits_(vocab_size_) {
  const SamplerOptions& options = setup.options;
  const bool greedy = options.temperature == 0;
  filters_ = {.temperature = greedy ? 0 : std::clamp(options.temperature, 1e-6, 1e6),
              .top_k = options.top_k <= 0 || options.top_k >= setup.model.vocab_size
                           ? 0
                           : static_cast<size_t>(options.top_k),
              .top_p = options.top_p,
              .min_p = options.min_p,
              .typical_p = options.typical_p};
  for (const auto [id, bias] : options.logit_bias)
    bias_.emplace_back(static_cast<int32_t>(id), ToFloat(bias));
  candidates_.reserve(greedy ? 1 : vocab_size_);
}

void Sampler::Accept(int32_t token) {
  SLUICE_CHECK(token >= 0 && static_cast<size_t>(token) < vocab_size_);
  if (history_.capacity() == 0) return;
  history_.Push(token);
  penalties_.Accept(history_);
  dry_.Accept(token);
}

std::optional<int32_t> Sampler::Sample(std::span<const float> logits) {
  SLUICE_CHECK(logits.size() == vocab_size_);
  std::copy(logits.begin(), logits.end(), logits_.begin());
  for (const auto& [id, bias] : bias_) logits_[static_cast<size_t>(id)] += bias;
  penalties_.Apply(history_, logits_);
  dry_.Apply(history_, logits_);

  candidates_.clear();
  const float max = MaxLogit(logits_);
  if (max == kImpossible) return std::nullopt;
  if (filters_.temperature == 0) {
    const auto first =
        std::find_if(logits_.begin(), logits_.end(), [&](float logit) { return logit >= max; });
    candidates_.push_back({max, static_cast<int32_t>(first - logits_.begin()), 1});
    return candidates_.front().id;
  }
  Choose(max);
  return Draw();
}

// Leaves in candidates_ what the filters leave. Top-p and min-p both keep a beginning of the list ordered by
// likelihood, and min-p compares with the likeliest only, so they may be taken in either order: the cheap one
// first.
void Sampler::Choose(float max) {
  const bool nucleus = filters_.top_p < 1;
  std::optional<double> total;  // of the weights at temperature 1, before top-p and min-p
  if (filters_.top_k > 0 || filters_.typical_p < 1) {
    if (filters_.top_k > 0) {
      KeepTopK(max);
    } else {
      KeepFrom(kImpossible, max);
    }
    if (filters_.typical_p < 1) KeepTypical();
    max = LargestLogit(candidates_);
    if (nucleus) total = Weigh(candidates_, max, 1);
    const float floor = FloorFor(max, filters_.min_p);
    std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < floor; });
  } else {
    double ratio = filters_.min_p;
    if (nucleus && ratio == 0) {
      // Tokens of less than (1 − top_p) / (2 · vocabulary) come to less than 1 − top_p together: none is in
      // the nucleus, and the sort need not see them.
      total = SumExp(logits_, max);
      ratio = (1 - filters_.top_p) / (2 * static_cast<double>(vocab_size_)) * *total;
    }
    KeepFrom(FloorFor(max, ratio), max);
  }
  if (nucleus) KeepNucleus(total, max);
}

// The top_k likeliest tokens, likeliest first: a heap with its worst in front goes over the vocabulary once.
void Sampler::KeepTopK(float max) {
  for (size_t id = 0; id < vocab_size_; ++id) {
    const bool full = candidates_.size() == filters_.top_k;
    const float logit = std::min(logits_[id], max);
    if (!(logit > (full ? candidates_.front().logit : kImpossible))) continue;
    if (full) {
      std::pop_heap(candidates_.begin(), candidates_.end(), Likelier);
      candidates_.pop_back();
    }
    candidates_.push_back({logit, static_cast<int32_t>(id), 0});
    std::push_heap(candidates_.begin(), candidates_.end(), Likelier);
  }
  std::sort(candidates_.begin(), candidates_.end(), Likelier);
}

// All tokens whose logit is at least `floor`, in the order of their ids.
void Sampler::KeepFrom(float floor, float max) {
  for (size_t id = 0; id < vocab_size_; ++id) {
    const float logit = logits_[id];
    if (logit >= floor && logit > kImpossible)
      candidates_.push_back({std::min(logit, max), static_cast<int32_t>(id), 0});
  }
}

// Locally typical sampling (Meister et al. 2022, arXiv:2202.00666): the tokens whose information −log p is
// nearest to the entropy, as many as make up the mass typical_p.
void Sampler::KeepTypical() {
  const double max = LargestLogit(candidates_);
  const double sum = Weigh(candidates_, static_cast<float>(max), 1);
  double mean = 0;  // of max − logit; the entropy is this plus log sum
  for (const Candidate& c : candidates_) mean += c.weight / sum * (max - c.logit);
  const auto distance = [&](const Candidate& c) { return std::fabs(max - c.logit - mean); };
  const auto farther = [&](const Candidate& a, const Candidate& b) {
    const double da = distance(a);
    const double db = distance(b);
    return da != db ? da > db : Likelier(b, a);
  };
  // Taken from a heap, nearest first, to the end of the list: only as many are ordered as are kept.
  std::make_heap(candidates_.begin(), candidates_.end(), farther);
  auto heap_end = candidates_.end();
  double mass = 0;
  do {
    std::pop_heap(candidates_.begin(), heap_end, farther);
    mass += (--heap_end)->weight;
  } while (mass < filters_.typical_p * sum && heap_end != candidates_.begin());
  candidates_.erase(candidates_.begin(), heap_end);
}

// The shortest beginning of the ordered list that makes up the mass top_p of `total`, which is that of the
// whole vocabulary when it isn't given.
void Sampler::KeepNucleus(std::optional<double> total, float max) {
  std::sort(candidates_.begin(), candidates_.end(), Likelier);
  const double mass = Weigh(candidates_, max, 1);
  // Not even all but the last make up top_p of what is left, let alone of the total: nothing to cut.
  if (mass - candidates_.back().weight < filters_.top_p * mass) return;
  const double wanted = filters_.top_p * (total ? *total : SumExp(logits_, max));
  double sum = 0;
  size_t kept = 0;
  do {
    sum += candidates_[kept++].weight;
  } while (sum < wanted && kept < candidates_.size());
  candidates_.resize(kept);
}

int32_t Sampler::Draw() {
  const double sum = Weigh(candidates_, LargestLogit(candidates_), filters_.temperature);
  const double target = random_.Uniform() * sum;
  double reached = 0;
  for (const Candidate& c : candidates_) {
    reached += c.weight;
    if (reached > target) return c.id;
  }
  return candidates_.back().id;  // not reached: the same sum again, and target is below it
}

SamplerState Sampler::Save() const {
  SamplerState state{random_.state(), {}, dry_.Save()};
  for (size_t i = history_.size(); i-- > 0;) state.history.push_back(history_[i]);
  return state;
}

Status Sampler::Restore(const SamplerState& state) {
  if (state.random == Random::State{})
    return Fail(ErrorCode::kInvalidArgument, "sampler state: the random generator's state is all zero");
  if (state.history.size() > history_.capacity())
    return Fail(ErrorCode::kInvalidArgument, "sampler state: {} tokens of history, expected at most {}",
                state.history.size(), history_.capacity());
  for (const int32_t token : state.history) {
    if (token < 0 || static_cast<size_t>(token) >= vocab_size_)
      return Fail(ErrorCode::kInvalidArgument, "sampler state: token {} in the history, expected 0 to {}",
                  token, vocab_size_ - 1);
  }
  if (!dry_.Restore(state.dry))
    return Fail(ErrorCode::kInvalidArgument, "sampler state: it belongs to other DRY sequence breakers");
  penalties_.Clear();
  history_.Clear();
  for (const int32_t token : state.history) {
    history_.Push(token);
    penalties_.Accept(history_);
  }
  random_ = Random(state.random);
  return {};
}

size_t Sampler::memory_bytes() const {
  return sizeof(*this) + logits_.capacity() * sizeof(float) + candidates_.capacity() * sizeof(Candidate) +
         history_.capacity() * sizeof(int32_t) + penalties_.memory_bytes() + dry_.memory_bytes();
}

}  // namespace sluice::sample
