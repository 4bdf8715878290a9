#include "plan/roof.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/units.h"

namespace sluice::plan {

namespace {

// Each worker takes pieces of this size, so that a busy core holds nobody up.
constexpr uint64_t kPieceBytes = 4 * kMiB;
constexpr size_t kLine = 64;

// Sums `bytes` bytes that lie in `streams` equal parts, read side by side, each prefetched `ahead` bytes.
template <size_t streams>
uint64_t Read(const std::byte* data, size_t bytes, size_t ahead) {
  const size_t part = bytes / streams;
  std::array<uint64_t, 8> sums{};
  for (size_t offset = 0; offset < part; offset += kLine) {
    for (size_t s = 0; s < streams; ++s) {
      const std::byte* line = data + s * part + offset;
      __builtin_prefetch(line + ahead);
      std::array<uint64_t, 8> words;
      std::memcpy(words.data(), line, kLine);
      for (size_t i = 0; i < words.size(); ++i) sums[i] += words[i];
    }
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

struct Pattern {
  std::string_view name;
  uint64_t (*read)(const std::byte* data, size_t bytes, size_t ahead);
  size_t ahead;
};
constexpr Pattern kPatterns[] = {
    {"1 stream", Read<1>, 512},   {"1 stream, far prefetch", Read<1>, 4096},
    {"2 streams", Read<2>, 1024}, {"4 streams", Read<4>, 1024},
    {"8 streams", Read<8>, 512},
};

// The best of a few runs of a peak loop, each about kPeakSeconds.
constexpr double kPeakSeconds = 0.002;
constexpr int kPeakRuns = 3;

double PeakRate(const runtime::Context& context, int64_t (*loop)(int64_t rounds)) {
  std::atomic<int64_t> macs{0};
  const auto run = [&](int64_t rounds) {
    macs = 0;
    const double start = context.clock->NowSeconds();
    context.pool->Run([&](int) { macs += loop(rounds); });
    return context.clock->NowSeconds() - start;
  };
  int64_t rounds = 1024;
  while (run(rounds) < kPeakSeconds && rounds < int64_t{1} << 40) rounds *= 2;
  double best = 0;
  for (int i = 0; i < kPeakRuns; ++i) {
    const double seconds = run(rounds);
    best = std::max(best, static_cast<double>(macs) / seconds);
  }
  return best;
}

}  // namespace

Peaks MeasurePeaks(const runtime::Context& context) {
  return {PeakRate(context, context.kernels->int8_peak), PeakRate(context, context.kernels->f32_peak)};
}

Result<Roof> Roof::Create(const runtime::Context& context, uint64_t buffer_bytes) {
  Roof roof(context);
  const uint64_t size = AlignUp(buffer_bytes, kPieceBytes);
  SLUICE_TRY_ASSIGN(roof.arena_,
                    memory::Arena::Create(size, memory::Account::kReserve, *context.ledger,
                                          {.page_size = platform::PageSize::kHuge, .touch = true}));
  // Pages that were only touched may all be one page of zeros to a clever memory controller.
  const std::span<std::byte> bytes = roof.arena_.bytes();
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) std::memcpy(&bytes[i], &i, sizeof(i));
  return roof;
}

RoofReading Roof::Measure() {
  RoofReading best;
  const std::span<const std::byte> bytes = arena_.bytes();
  std::atomic<uint64_t> sink{0};
  for (const Pattern& pattern : kPatterns) {
    const double start = context_->clock->NowSeconds();
    context_->pool->ParallelFor(
        static_cast<int64_t>(bytes.size() / kPieceBytes), 1, [&](int64_t piece, int64_t, int) {
          sink += pattern.read(bytes.data() + static_cast<uint64_t>(piece) * kPieceBytes, kPieceBytes,
                               pattern.ahead);
        });
    const double rate = static_cast<double>(bytes.size()) / (context_->clock->NowSeconds() - start);
    if (rate > best.bytes_per_second) best = {rate, pattern.name};
  }
  return best;
}

}  // namespace sluice::plan
