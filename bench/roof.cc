// The machine's roofs and what the kernels reach of them, for each weight type, with one thread and with all.
//
// usage: roof [KERNELS [TYPE…]]     a table's name, default the fastest that this processor has; weight
// types, default all
//
//   decode    one activation row against weights in memory on huge pages: GB of weights per second, and the
//             share of what memory reads; then the same weights over and over, which each worker finds in its
//             second-level cache: what the kernel could do if memory were no limit, and the share of that
//
//   prefill   a batch of 512 against weights in the cache: GMAC per second, and the share of the arithmetic
//             peak
//
// Every figure is the median of kRepetitions, each beside the mean of two readings of its roof, right before
// and right after: what a core may do depends on what it has just done.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/median.h"
#include "kernels/made_up_inputs.h"
#include "memory/arena.h"
#include "parallel/thread_pool.h"
#include "plan/roof.h"
#include "platform/affinity.h"
#include "runtime/context.h"
#include "weights/schedule.h"

namespace sluice {
namespace {

using formats::DType;
using kernels::ActivationKind;
using weights::kPanelRows;

// The roof's reading before each timing of the weights leaves none of them in a cache.
constexpr uint64_t kRoofBytes = uint64_t{1} << 30;
constexpr uint64_t kWeightBytes = uint64_t{1} << 29;
constexpr int64_t kUnitBytes = 512 * 1024;  // as ops/linear.cc cuts them
constexpr int64_t kColumns = 4096;
constexpr int64_t kPrefillRows = 256;
constexpr int64_t kPrefillBatch = 512;
constexpr uint64_t kBatchBytes = kPrefillBatch * kColumns * sizeof(float);  // of activations; of results less
constexpr int kPrefillCalls = 8;                                            // for each worker
constexpr int kCachedCalls = 16;  // over a unit that is in the cache
constexpr int kRepetitions = 15;
constexpr double kGiga = 1e9;

struct Figure {
  double rate, share;
};

// The medians of amount / (time of work) and of its share of the roof's readings around it.
template <typename Roof, typename Work>
Figure Compare(const Clock& clock, double amount, Roof&& roof, Work&& work) {
  std::vector<double> rates, shares;
  work();  // warms up
  double before = roof();
  for (int i = 0; i < kRepetitions; ++i) {
    const double start = clock.NowSeconds();
    work();
    rates.push_back(amount / (clock.NowSeconds() - start));
    const double after = roof();
    shares.push_back(rates.back() / ((before + after) / 2));
    before = after;
  }
  return {Median(rates), Median(shares)};
}

class Bench {
 public:
  // scratch: kMatmulScratchBytes for each worker. batch: kBatchBytes for each, and once more.
  Bench(const runtime::Context& context, plan::Roof& roof, std::span<const std::byte> weights,
        std::span<std::byte> scratch, std::span<std::byte> batch)
      : context_(context),
        roof_(roof),
        weights_(weights),
        scratch_(scratch),
        batch_(batch),
        workers_(context.pool->size()) {}

  Figure Decode(DType dtype) {
    const size_t row_bytes = formats::RowBytes(dtype, kColumns);
    const auto rows = static_cast<int64_t>(weights_.size() / row_bytes);
    const kernels::Activations x(*context_.kernels, dtype, kColumns, 1);
    std::vector<float> y(static_cast<size_t>(rows));
    return Compare(
        *context_.clock, static_cast<double>(rows) * static_cast<double>(row_bytes),
        [&] { return roof_.Measure().bytes_per_second; },
        [&] {
          context_.pool->ParallelFor(rows, UnitRows(dtype), [&](int64_t begin, int64_t end, int worker) {
            Multiply(dtype, begin, end - begin, x.rows(), y.data() + begin, rows, worker);
          });
        });
  }

  // Bytes per second of all workers, each with a unit of its own that its cache holds.
  double DecodeCached(DType dtype) {
    const int64_t rows = UnitRows(dtype);
    const kernels::Activations x(*context_.kernels, dtype, kColumns, 1);
    std::vector<float> y(static_cast<size_t>(rows * workers_));
    const auto work = [&](int calls) {
      context_.pool->Run([&](int worker) {
        const int64_t first = worker * rows;
        for (int call = 0; call < calls; ++call)
          Multiply(dtype, first, rows, x.rows(), y.data() + first, rows, worker);
      });
    };
    std::vector<double> rates;
    work(1);
    for (int i = 0; i < kRepetitions; ++i) {
      const double start = context_.clock->NowSeconds();
      work(kCachedCalls);
      rates.push_back(static_cast<double>(kCachedCalls * workers_ * rows) *
                      static_cast<double>(formats::RowBytes(dtype, kColumns)) /
                      (context_.clock->NowSeconds() - start));
    }
    return Median(rates);
  }

  // Each worker multiplies weights of its own, all the same times.
  Figure Prefill(DType dtype) {
    const kernels::Activations made(*context_.kernels, dtype, kColumns, kPrefillBatch);
    const kernels::ActivationRows x = OnHugePages(made.rows());
    const auto y = [this](int worker) {
      return reinterpret_cast<float*>(batch_.data() + static_cast<size_t>(worker + 1) * kBatchBytes);
    };
    const bool floats = kernels::ActivationKindFor(dtype) == ActivationKind::kF32;
    return Compare(
        *context_.clock,
        static_cast<double>(kPrefillCalls * workers_ * kPrefillRows * kPrefillBatch * kColumns),
        [&] {
          const plan::Peaks peaks = plan::MeasurePeaks(context_);
          return floats ? peaks.f32_macs_per_second : peaks.int8_macs_per_second;
        },
        [&] {
          context_.pool->Run([&](int worker) {
            for (int call = 0; call < kPrefillCalls; ++call) {
              Multiply(dtype, worker * kPrefillRows, kPrefillRows, x, y(worker), kPrefillRows, worker);
            }
          });
        });
  }

 private:
  static int64_t UnitRows(DType dtype) {
    const auto row_bytes = static_cast<int64_t>(formats::RowBytes(dtype, kColumns));
    return std::max<int64_t>(kUnitBytes / row_bytes / kPanelRows * kPanelRows, kPanelRows);
  }

  // A copy at the beginning of batch_.
  kernels::ActivationRows OnHugePages(kernels::ActivationRows rows) const {
    std::byte* to = batch_.data();
    const auto copy = [&to](auto& from, int64_t count) {
      if (from == nullptr) return;
      const size_t bytes = static_cast<size_t>(count) * sizeof(*from);
      std::memcpy(to, from, bytes);
      from = reinterpret_cast<std::remove_reference_t<decltype(from)>>(to);
      to += bytes;
    };
    const int64_t count = rows.batch * rows.columns;
    if (rows.kind == ActivationKind::kF32) {
      copy(rows.f32, count);
    } else {
      copy(rows.q, count);
      copy(rows.scale, count / kernels::BlockLength(rows.kind));
      copy(rows.sums, count / 16);
      copy(rows.reach, count / 256);
    }
    return rows;
  }

  void Multiply(DType dtype, int64_t first, int64_t rows, const kernels::ActivationRows& x, float* y,
                int64_t stride, int worker) {
    const size_t row_bytes = formats::RowBytes(dtype, kColumns);
    context_.kernels->matmul[static_cast<size_t>(dtype)](
        {.weights = weights_.data() + static_cast<size_t>(first) * row_bytes,
         .row_bytes = row_bytes,
         .rows = rows,
         .x = x,
         .y = y,
         .y_stride = stride,
         .scratch = scratch_.subspan(static_cast<size_t>(worker) * kernels::kMatmulScratchBytes,
                                     kernels::kMatmulScratchBytes)});
  }

  const runtime::Context& context_;
  plan::Roof& roof_;
  std::span<const std::byte> weights_;
  std::span<std::byte> scratch_;
  std::span<std::byte> batch_;
  int workers_;
};

Status RunWith(int threads, const kernels::Kernels& table, std::span<const std::string_view> types) {
  memory::Ledger ledger(memory::Ledger::kUnlimited);
  parallel::ThreadPool pool({.threads = threads, .cores = platform::CurrentThreadCores()});
  const MonotonicClock clock;
  const runtime::Context context = {.kernels = &table, .pool = &pool, .ledger = &ledger, .clock = &clock};
  SLUICE_TRY_ASSIGN(plan::Roof roof, plan::Roof::Create(context, kRoofBytes));
  // On huge pages, as a model has them.
  const auto take = [&ledger](uint64_t bytes) {
    return memory::Arena::Create(bytes, memory::Account::kReserve, ledger,
                                 {.page_size = platform::PageSize::kHuge, .touch = true});
  };
  SLUICE_TRY_ASSIGN(memory::Arena arena, take(kWeightBytes));
  SLUICE_TRY_ASSIGN(memory::Arena scratch,
                    take(static_cast<uint64_t>(pool.size()) * kernels::kMatmulScratchBytes));
  SLUICE_TRY_ASSIGN(memory::Arena batch, take(static_cast<uint64_t>(pool.size() + 1) * kBatchBytes));
  kernels::FillRandom(arena.bytes());
  const plan::RoofReading memory = roof.Measure();
  const plan::Peaks peaks = plan::MeasurePeaks(context);
  std::printf("%.*s, %d threads: memory reads %.1f GB/s (%.*s); int8 %.0f GMAC/s, f32 %.0f GMAC/s\n",
              static_cast<int>(table.name.size()), table.name.data(), pool.size(),
              memory.bytes_per_second / kGiga, static_cast<int>(memory.pattern.size()), memory.pattern.data(),
              peaks.int8_macs_per_second / kGiga, peaks.f32_macs_per_second / kGiga);
  std::printf("%-8s %12s %8s %10s %8s %15s %8s\n", "", "decode GB/s", "of roof", "from L2", "of that",
              "prefill GMAC/s", "of peak");
  Bench bench(context, roof, arena.bytes(), scratch.bytes(), batch.bytes());
  for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
    const bool wanted = types.empty() || std::find(types.begin(), types.end(), traits.name) != types.end();
    if (!wanted || table.matmul[static_cast<size_t>(traits.dtype)] == nullptr) continue;
    const Figure decode = bench.Decode(traits.dtype);
    const double cached = bench.DecodeCached(traits.dtype);
    const Figure prefill = bench.Prefill(traits.dtype);
    std::printf("%-8.*s %12.1f %8.2f %10.1f %8.2f %15.1f %8.2f\n", static_cast<int>(traits.name.size()),
                traits.name.data(), decode.rate / kGiga, decode.share, cached / kGiga, decode.rate / cached,
                prefill.rate / kGiga, prefill.share);
    std::fflush(stdout);
  }
  return {};
}

int Main(int argc, char** argv) {
  const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
  const kernels::Kernels* table = argc > 1 ? kernels::FindKernels(argv[1]) : &kernels::BestKernels(cpu);
  if (table == nullptr || !table->supported(cpu)) {
    std::fprintf(stderr, "usage: roof [KERNELS [TYPE…]], kernels that this processor has\n");
    return 2;
  }
  const std::vector<std::string_view> types(argv + std::min(argc, 2), argv + argc);
  const int cores = std::max<int>(1, static_cast<int>(platform::CurrentThreadCores().size()));
  for (int threads = 1;; threads = cores) {
    if (const Status status = RunWith(threads, *table, types); !status) {
      std::fprintf(stderr, "%s\n", status.error().message.c_str());
      return 1;
    }
    if (threads == cores) return 0;
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
