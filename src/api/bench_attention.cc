#include "sluice/bench_attention.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/median.h"
#include "memory/arena.h"
#include "model/facts.h"
#include "ops/attention.h"
#include "plan/roof.h"

namespace sluice {

namespace {

constexpr uint64_t kRoofBytes = 256 << 20;
constexpr int64_t kFillBatch = 512;  // positions that the cache grows by
constexpr int64_t kMostDepth = int64_t{1} << 24;
constexpr std::pair<kv::KvType, kv::KvType> kTypes[] = {{kv::KvType::kF16, kv::KvType::kF16},
                                                        {kv::KvType::kQ8_0, kv::KvType::kQ8_0},
                                                        {kv::KvType::kQ8_0, kv::KvType::kQ4_0}};

template <typename F>
double MedianOf(const AttentionReport& report, F&& figure) {
  std::vector<double> values;
  for (const AttentionSample& sample : report.samples) values.push_back(figure(sample));
  return Median(std::move(values));
}

Status CheckOptions(const AttentionBenchOptions& options) {
  for (const int64_t depth : options.depths) {
    if (depth < 1 || depth > kMostDepth)
      return Fail(ErrorCode::kInvalidArgument, "attention at depth {}: expected 1 to {}", depth, kMostDepth);
  }
  if (options.depths.empty() || options.prompt_tokens < 0 || options.prompt_tokens > kMostDepth ||
      options.repetitions < 1 || options.repetitions > 1000)
    return Fail(ErrorCode::kInvalidArgument, "{} depths, prompt {} tokens, {} repetitions: out of range",
                options.depths.size(), options.prompt_tokens, options.repetitions);
  return {};
}

int Group(const model::LayerConfig& layer) { return layer.n_heads / layer.n_kv_heads; }

// Numbers from −1 to 1, as of a generator that anybody can write down.
std::vector<float> MadeUp(size_t count) {
  std::vector<float> values(count);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

// All of a model's attention over a cache of made-up keys and values, and what it takes beside.
class AttentionAlone {
 public:
  static Result<std::unique_ptr<AttentionAlone>> Create(const Engine& engine, const model::Config& config,
                                                        const AttentionReport& report) {
    auto alone = std::unique_ptr<AttentionAlone>(new AttentionAlone(engine, config, report));
    SLUICE_TRY(alone->TakeMemory(engine));
    SLUICE_TRY(alone->FillCache());
    return alone;
  }

  uint64_t kv_bytes() const {
    uint64_t bytes = 0;
    for (int i = 0; i < layers(); ++i) {
      const auto positions = static_cast<uint64_t>(depth_ - FirstVisible(i));
      bytes += positions * static_cast<uint64_t>(layer(i).n_kv_heads) *
               (cache_->k_row_bytes(i) + cache_->v_row_bytes(i));
    }
    return bytes;
  }
  uint64_t scratch_bytes() const { return ops::AttentionScratch::Bytes(context_.pool->size(), size()); }
  uint64_t score_bytes(int64_t rows) const {
    return static_cast<uint64_t>(rows * most_heads_ * ops::MostTiles(depth_) * kernels::kTileSlots) *
           sizeof(float);
  }

  // Seconds that the newest `rows` rows take, all layers.
  double Measure(int64_t rows, bool stored) {
    const std::span<const ops::AttentionRow> newest = std::span(rows_).last(static_cast<size_t>(rows));
    const double start = context_.clock->NowSeconds();
    for (int i = 0; i < layers(); ++i) {
      const ops::AttentionSpec spec{.layer = i,
                                    .n_heads = layer(i).n_heads,
                                    .n_kv_heads = layer(i).n_kv_heads,
                                    .k_dim = config_.k_dim,
                                    .v_dim = config_.v_dim,
                                    .view = cache_->view(i),
                                    .scale = config_.attention_scale,
                                    .softcap = config_.attention_softcap,
                                    .scores = stored ? scores_.data() : nullptr,
                                    .score_tiles = ops::MostTiles(depth_)};
      ops::Attention(context_, scratch_, spec, *cache_, newest, queries_.data(), outputs_.data());
    }
    return context_.clock->NowSeconds() - start;
  }

 private:
  AttentionAlone(const Engine& engine, const model::Config& config, const AttentionReport& report)
      : context_(engine.context()), config_(config), report_(report), depth_(report.depth) {
    for (const model::LayerConfig& layer : config.layers) {
      most_group_ = std::max(most_group_, Group(layer));
      most_heads_ = std::max<int64_t>(most_heads_, layer.n_heads);
    }
  }

  ops::AttentionSize size() const { return {most_group_, config_.k_dim, config_.v_dim, report_.prompt_rows}; }
  int layers() const { return static_cast<int>(config_.layers.size()); }
  const model::LayerConfig& layer(int i) const { return config_.layers[static_cast<size_t>(i)]; }
  int64_t FirstVisible(int i) const {
    const int64_t window = layer(i).window;
    return window > 0 ? std::max<int64_t>(0, depth_ - window) : 0;
  }

  Status TakeMemory(const Engine& engine) {
    const int64_t rows = std::max<int64_t>(1, report_.prompt_rows);
    SLUICE_TRY_ASSIGN(cache_,
                      kv::Cache::Create(model::CacheConfigFor(config_, {.context_length = depth_,
                                                                        .k_type = report_.k_type,
                                                                        .v_type = report_.v_type,
                                                                        .batch = std::max(rows, kFillBatch),
                                                                        .checkpoint_positions = 0}),
                                        *engine.context().ledger));
    sequence_ = std::make_unique<kv::Sequence>(*cache_);
    const auto floats = [&](int dim) { return static_cast<size_t>(rows * most_heads_ * dim); };
    const size_t q = floats(config_.k_dim), out = floats(config_.v_dim);
    const size_t scores = score_bytes(rows) / sizeof(float);
    const size_t scratch = scratch_bytes();
    SLUICE_TRY_ASSIGN(arena_, memory::Arena::Create(
                                  (q + out + scores) * sizeof(float) + scratch + 4 * memory::kCacheLineBytes,
                                  memory::Account::kActivations, *engine.context().ledger));
    queries_ = arena_.AllocateArray<float>(q);
    outputs_ = arena_.AllocateArray<float>(out);
    scores_ = arena_.AllocateArray<float>(scores);
    scratch_ = ops::AttentionScratch(size(), arena_.Allocate(scratch));
    std::ranges::copy(MadeUp(q), queries_.begin());
    return {};
  }

  Status FillCache() {
    constexpr int64_t kShift = 61;  // a position's rows begin so far behind those of the one before
    size_t widest = 0;
    for (const model::LayerConfig& layer : config_.layers)
      widest =
          std::max(widest, static_cast<size_t>(layer.n_kv_heads * std::max(config_.k_dim, config_.v_dim)));
    const std::vector<float> numbers = MadeUp(widest + kShift * 1024);
    while (sequence_->length() < depth_) {
      const int64_t from = sequence_->length();
      const int64_t count = std::min(depth_ - from, kFillBatch);
      SLUICE_TRY(sequence_->Append(count));
      context_.pool->ParallelFor(count, 1, [&](int64_t i, int64_t, int) {
        const float* const row = numbers.data() + (from + i) % 1024 * kShift;
        for (int l = 0; l < layers(); ++l)
          ops::StoreKeyValue(context_, *cache_, l, {sequence_.get(), from + i}, row, row);
      });
      sequence_->Commit();
    }
    for (int64_t p = depth_ - std::max<int64_t>(1, report_.prompt_rows); p < depth_; ++p)
      rows_.push_back({sequence_.get(), p});
    return {};
  }

  const runtime::Context& context_;
  const model::Config& config_;
  const AttentionReport& report_;
  const int64_t depth_;
  int most_group_ = 1;
  int64_t most_heads_ = 1;
  std::unique_ptr<kv::Cache> cache_;
  std::unique_ptr<kv::Sequence> sequence_;
  memory::Arena arena_;
  std::span<float> queries_;  // [rows, most_heads · k_dim]
  std::span<float> outputs_;  // [rows, most_heads · v_dim]
  std::span<float> scores_;   // AttentionSpec::scores
  ops::AttentionScratch scratch_;
  std::vector<ops::AttentionRow> rows_;
};

// A reading of the roof comes right before a token in the product's own way and right after it, so that
// nothing of the cache is left nearer than memory.
AttentionSample Sample(AttentionAlone& alone, plan::Roof* roof, int64_t prompt_rows) {
  const auto reading = [&] { return roof != nullptr ? roof->Measure().bytes_per_second : 0.0; };
  AttentionSample sample;
  const double before = reading();
  sample.seconds = alone.Measure(1, false);
  sample.roof_bytes_per_second = (before + reading()) / 2;
  sample.stored_seconds = alone.Measure(1, true);
  if (prompt_rows == 0) return sample;
  sample.prompt_seconds = alone.Measure(prompt_rows, false);
  sample.prompt_stored_seconds = alone.Measure(prompt_rows, true);
  return sample;
}

}  // namespace

double AttentionReport::seconds() const {
  return MedianOf(*this, [](const AttentionSample& s) { return s.seconds; });
}
double AttentionReport::bytes_per_second() const {
  return MedianOf(*this, [&](const AttentionSample& s) { return static_cast<double>(kv_bytes) / s.seconds; });
}
double AttentionReport::share_of_roof() const {
  return MedianOf(*this, [&](const AttentionSample& s) {
    return s.roof_bytes_per_second > 0 ? static_cast<double>(kv_bytes) / s.seconds / s.roof_bytes_per_second
                                       : 0;
  });
}
double AttentionReport::stored_ratio() const {
  return MedianOf(*this, [](const AttentionSample& s) { return s.stored_seconds / s.seconds; });
}
double AttentionReport::prompt_seconds() const {
  return MedianOf(*this, [](const AttentionSample& s) { return s.prompt_seconds; });
}
double AttentionReport::prompt_stored_ratio() const {
  return MedianOf(*this, [](const AttentionSample& s) {
    return s.prompt_seconds > 0 ? s.prompt_stored_seconds / s.prompt_seconds : 0;
  });
}

Result<std::vector<AttentionReport>> BenchAttention(const Engine& engine, const Model& model,
                                                    const AttentionBenchOptions& options,
                                                    const std::function<bool()>& go_on) {
  SLUICE_TRY(CheckOptions(options));
  std::optional<plan::Roof> roof;
  if (options.roofs) {
    SLUICE_TRY_ASSIGN(roof, plan::Roof::Create(engine.context(), kRoofBytes));
  }
  std::vector<AttentionReport> reports;
  for (const int64_t depth : options.depths) {
    for (const auto& [k_type, v_type] : kTypes) {
      AttentionReport report{.k_type = k_type, .v_type = v_type, .depth = depth};
      report.prompt_rows = std::min(depth, options.prompt_tokens);
      auto alone = AttentionAlone::Create(engine, model.config(), report);
      if (!alone) {
        if (alone.error().code != ErrorCode::kDoesNotFit) return alone.error();
        report.left_out = alone.error().message;
        reports.push_back(std::move(report));
        continue;
      }
      report.kv_bytes = (*alone)->kv_bytes();
      report.scratch_bytes = (*alone)->scratch_bytes();
      report.score_bytes = (*alone)->score_bytes(1);
      static_cast<void>(Sample(**alone, nullptr, report.prompt_rows));  // doesn't count: pages are touched
      for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        if (!go_on()) return Fail(ErrorCode::kInterrupted, "stopped");
        report.samples.push_back(Sample(**alone, roof ? &*roof : nullptr, report.prompt_rows));
      }
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

}  // namespace sluice
