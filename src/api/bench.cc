#include "sluice/bench.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/median.h"
#include "base/units.h"
#include "plan/roof.h"

namespace sluice {

namespace {

// As large as the weights, so that both meet the same caches, within bounds: at least what no usual cache
// holds.
constexpr uint64_t kLargestRoofBuffer = kGiB;

constexpr int64_t kMostTokens = int64_t{1} << 26;

template <typename F>
double MedianOf(const std::vector<BenchSample>& samples, F&& figure) {
  std::vector<double> values;
  for (const BenchSample& sample : samples) values.push_back(figure(sample));
  return Median(std::move(values));
}

// Ids from all over the vocabulary; what they say doesn't matter.
std::vector<TokenId> AnyIds(int64_t count, int64_t vocab_size) {
  std::vector<TokenId> ids;
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<TokenId>((state >> 33) % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

Status CheckOptions(const BenchOptions& options) {
  const auto countable = [](int64_t tokens) { return tokens >= 0 && tokens <= kMostTokens; };
  if (countable(options.prompt_tokens) && countable(options.decode_tokens) && countable(options.depth) &&
      options.repetitions >= 1 && options.repetitions <= 1000)
    return {};
  return Fail(ErrorCode::kInvalidArgument,
              "prompt {}, decode {} and depth {} tokens, {} repetitions: out of range", options.prompt_tokens,
              options.decode_tokens, options.depth, options.repetitions);
}

ConversationOptions ConversationFor(const BenchOptions& options) {
  ConversationOptions conversation = options.conversation;
  if (conversation.context_length == 0) conversation.context_length = BenchContext(options);
  return conversation;
}

std::vector<TokenId> IdsFor(const BenchOptions& options, int64_t vocab_size) {
  return AnyIds(std::max({options.prompt_tokens, options.depth + options.decode_tokens, int64_t{1}}),
                vocab_size);
}

// The session begins anew with `prompt`.
Status ReadAnew(session::Session& session, std::span<const TokenId> prompt) {
  session.Truncate(0);
  SLUICE_TRY(session.Read(prompt));
  return {};
}

// Reads `options.decode_tokens` of the ids one by one, behind the first `options.depth`, which are held.
Status Decode(session::Session& session, const BenchOptions& options, std::span<const TokenId> ids) {
  for (int64_t i = 0; i < options.decode_tokens; ++i)
    SLUICE_TRY(session.Advance(ids[static_cast<size_t>(options.depth + i)]));
  return {};
}

template <typename F>
Result<double> SecondsOf(const Clock& clock, F&& work) {
  const double start = clock.NowSeconds();
  SLUICE_TRY(work());
  return clock.NowSeconds() - start;
}

}  // namespace

double BenchReport::prefill_tokens_per_second() const {
  return MedianOf(prefill, [](const BenchSample& s) { return s.tokens_per_second; });
}
double BenchReport::decode_tokens_per_second() const {
  return MedianOf(decode, [](const BenchSample& s) { return s.tokens_per_second; });
}
double BenchReport::decode_bytes_per_second() const {
  return decode_tokens_per_second() * static_cast<double>(weight_bytes_per_token);
}
double BenchReport::roof_bytes_per_second() const {
  return MedianOf(decode, [](const BenchSample& s) { return s.roof_bytes_per_second; });
}
double BenchReport::decode_share_of_roof() const {
  const double bytes = static_cast<double>(weight_bytes_per_token);
  return MedianOf(
      decode, [&](const BenchSample& s) { return s.tokens_per_second * bytes / s.roof_bytes_per_second; });
}
double BenchReport::prefill_macs_per_second() const {
  return prefill_tokens_per_second() * static_cast<double>(multiplications_per_token);
}
double BenchReport::int8_macs_per_second() const {
  return MedianOf(prefill, [](const BenchSample& s) { return s.int8_macs_per_second; });
}
double BenchReport::prefill_share_of_peak() const {
  const double macs = static_cast<double>(multiplications_per_token);
  return MedianOf(prefill,
                  [&](const BenchSample& s) { return s.tokens_per_second * macs / s.int8_macs_per_second; });
}

int64_t BenchContext(const BenchOptions& options) {
  return std::max({options.prompt_tokens, options.depth + options.decode_tokens + 1, int64_t{64}});
}

Result<BenchReport> Bench(const Engine& engine, std::shared_ptr<const Model> model,
                          const BenchOptions& options, const std::function<bool()>& go_on) {
  SLUICE_TRY(CheckOptions(options));
  BenchReport report;
  report.weight_bytes_per_token = model->parts().weights().bytes_per_token;
  report.multiplications_per_token = model->parts().weights().multiplications_per_token;
  SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(engine, model, ConversationFor(options)));
  session::Session& session = conversation->session();
  if (options.trace != nullptr) options.trace->Begin(*model, session);
  std::optional<plan::Roof> roof;
  if (options.roofs) {
    const uint64_t room = engine.context().ledger->Snapshot().available_bytes();
    const uint64_t most = std::clamp(room / 2, kBenchReserveBytes, kLargestRoofBuffer);
    SLUICE_TRY_ASSIGN(roof, plan::Roof::Create(engine.context(), std::clamp(report.weight_bytes_per_token,
                                                                            kBenchReserveBytes, most)));
  }
  const auto reading = [&] { return roof ? roof->Measure() : plan::RoofReading(); };
  const Clock& clock = *engine.context().clock;
  const std::vector<TokenId> ids = IdsFor(options, model->config().vocab_size);

  // One round that doesn't count: pages are touched, clocks rise.
  SLUICE_TRY(session.Read(std::span(ids).first(std::min<size_t>(ids.size(), 16)), options.progress));
  WorkMeter meter(engine, session);
  WorkFigures prompt;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    if (!go_on()) return Fail(ErrorCode::kInterrupted, "stopped");
    if (options.prompt_tokens > 0) {
      const double before = plan::MeasurePeaks(engine.context()).int8_macs_per_second;
      static_cast<void>(meter.Lap());
      SLUICE_TRY_ASSIGN(const double seconds, SecondsOf(clock, [&] {
                          return ReadAnew(session,
                                          std::span(ids).first(static_cast<size_t>(options.prompt_tokens)));
                        }));
      prompt += meter.Lap();
      const double after = plan::MeasurePeaks(engine.context()).int8_macs_per_second;
      report.prefill.push_back({.tokens_per_second = static_cast<double>(options.prompt_tokens) / seconds,
                                .int8_macs_per_second = (before + after) / 2});
    }
    if (options.decode_tokens > 0) {
      session.Truncate(0);
      if (options.depth > 0)
        SLUICE_TRY(ReadAnew(session, std::span(ids).first(static_cast<size_t>(options.depth))));
      const plan::RoofReading before = reading();
      static_cast<void>(meter.Lap());
      SLUICE_TRY_ASSIGN(const double seconds,
                        SecondsOf(clock, [&] { return Decode(session, options, ids); }));
      report.decoding += meter.Lap();
      const plan::RoofReading after = reading();
      report.roof_pattern = before.pattern;
      report.decode.push_back(
          {.tokens_per_second = static_cast<double>(options.decode_tokens) / seconds,
           .roof_bytes_per_second = (before.bytes_per_second + after.bytes_per_second) / 2});
    }
  }
  prompt.tokens = options.prompt_tokens * options.repetitions;
  report.decoding.tokens = report.decoding.passes;
  report.stats = GatherStats(engine, *model, prompt, report.decoding);
  return report;
}

Result<std::vector<FusionReport>> BenchFusion(const Engine& engine, std::shared_ptr<const Model> model,
                                              const BenchOptions& options,
                                              const std::function<bool()>& go_on) {
  SLUICE_TRY(CheckOptions(options));
  const Clock& clock = *engine.context().clock;
  const std::vector<TokenId> ids = IdsFor(options, model->config().vocab_size);
  constexpr size_t kLevels = runtime::kFusionLevels.size();
  std::array<std::vector<double>, kLevels> prefill, decode;
  std::vector<FusionReport> reports(kLevels);
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (size_t level = 0; level < kLevels; ++level) {
      if (!go_on()) return Fail(ErrorCode::kInterrupted, "stopped");
      ConversationOptions conversation_options = ConversationFor(options);
      conversation_options.fusion = reports[level].fusion = runtime::kFusionLevels[level];
      SLUICE_TRY_ASSIGN(const auto conversation, Conversation::Create(engine, model, conversation_options));
      session::Session& session = conversation->session();
      reports[level].activation_bytes =
          engine.context().ledger->Snapshot().used(memory::Account::kActivations);
      // A round that doesn't count: its memory is touched for the first time.
      const auto prompt =
          std::span(ids).first(static_cast<size_t>(std::max<int64_t>(1, options.prompt_tokens)));
      SLUICE_TRY(ReadAnew(session, prompt));
      SLUICE_TRY_ASSIGN(const double prompt_seconds,
                        SecondsOf(clock, [&] { return ReadAnew(session, prompt); }));
      prefill[level].push_back(prompt_seconds);
      if (options.decode_tokens == 0) continue;
      session.Truncate(0);
      if (options.depth > 0)
        SLUICE_TRY(ReadAnew(session, std::span(ids).first(static_cast<size_t>(options.depth))));
      SLUICE_TRY_ASSIGN(const double seconds,
                        SecondsOf(clock, [&] { return Decode(session, options, ids); }));
      decode[level].push_back(seconds / static_cast<double>(options.decode_tokens));
    }
  }
  for (size_t level = 0; level < kLevels; ++level) {
    reports[level].prefill_seconds = Median(prefill[level]);
    reports[level].decode_seconds = Median(decode[level]);
  }
  return reports;
}

}  // namespace sluice
