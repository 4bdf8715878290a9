#include "plan/probe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>

#include "base/aligned_buffer.h"
#include "base/hash.h"
#include "base/median.h"
#include "base/units.h"
#include "io/io_queue.h"
#include "kernels/kv_rows.h"
#include "kernels/made_up_inputs.h"
#include "memory/arena.h"
#include "plan/roof.h"
#include "platform/cpu_topology.h"
#include "platform/file.h"
#include "platform/memory_info.h"
#include "platform/system_files.h"

namespace sluice::plan {

namespace {

using formats::DType;

constexpr uint64_t kBufferBytes = 256 * kMiB;  // more than usual caches hold
constexpr uint64_t kSmallestBuffer = 16 * kMiB;
constexpr int64_t kColumns = 4096;
constexpr int64_t kPrefillRows = 128;  // tokens of the batch
constexpr double kSecondsEach = 0.01;  // for each reading, slow kernels take longer
constexpr int64_t kRowsAtATime = 96;   // of a call: as many as kernels go through side by side

// The middle of three readings: another program may have been at work during one of them.
template <typename Reading>
double MiddleOfThree(Reading&& reading) {
  return Median({reading(), reading(), reading()});
}

class ComputeProbe {
 public:
  ComputeProbe(const runtime::Context& context, std::span<const std::byte> weights)
      : context_(context),
        weights_(weights),
        workers_(context.pool->size()),
        y_(static_cast<size_t>(workers_)) {
    for (int worker = 0; worker < workers_; ++worker) scratch_.emplace_back(kernels::kMatmulScratchBytes);
    for (auto& y : y_) y.resize(kPrefillRows * kRowsAtATime);
  }

  // Multiply-adds a second, over batches of `batch` tokens.
  double Measure(DType dtype, const kernels::ActivationRows& all, int64_t batch) {
    const size_t row_bytes = formats::RowBytes(dtype, kColumns);
    const int64_t pieces = static_cast<int64_t>(weights_.size() / (row_bytes * kRowsAtATime));
    kernels::ActivationRows x = all;
    x.batch = batch;
    const auto run = [&](int64_t first, int64_t count) {
      context_.pool->ParallelFor(count, 1, [&](int64_t piece, int64_t, int worker) {
        const size_t w = static_cast<size_t>(worker);
        const size_t place = static_cast<size_t>((first + piece) % pieces) * row_bytes * kRowsAtATime;
        context_.kernels->matmul[static_cast<size_t>(dtype)](
            {.weights = weights_.data() + place,
             .row_bytes = row_bytes,
             .rows = kRowsAtATime,
             .x = x,
             .y = y_[w].data(),
             .y_stride = kRowsAtATime,
             .scratch = scratch_[w].bytes()});
      });
    };
    int64_t done = 0, step = batch == 1 ? 8 * workers_ : workers_;
    const double start = context_.clock->NowSeconds();
    double elapsed = 0;
    while (elapsed < kSecondsEach) {
      run(done, step);
      done += step;
      elapsed = context_.clock->NowSeconds() - start;
      step = std::min<int64_t>(step * 2, pieces);
    }
    return static_cast<double>(done * kRowsAtATime * kColumns * batch) / elapsed;
  }

 private:
  const runtime::Context& context_;
  std::span<const std::byte> weights_;
  const int workers_;
  std::vector<AlignedBuffer> scratch_;
  std::vector<std::vector<float>> y_;
};

// Attention of groups of 4 query heads with 128 elements over full tiles, as most models have it.
double MeasureAttention(const runtime::Context& context, kv::KvType type, std::span<const std::byte> rows) {
  constexpr int kHeads = 4, kDim = 128;
  constexpr int64_t kTiles = 64;
  const size_t row_bytes = kernels::KvRowBytes(type, kDim);
  int64_t done = 0;
  const double start = context.clock->NowSeconds();
  double elapsed = 0;
  while (elapsed < kSecondsEach) {
    context.pool->ParallelFor(kTiles, 1, [&](int64_t tile, int64_t, int) {
      std::array<float, kHeads * kDim> q, o{};
      std::array<float, kHeads> m, l{};
      q.fill(0.01f);
      m.fill(-std::numeric_limits<float>::infinity());
      const std::byte* k = rows.data() + static_cast<size_t>(tile) * 128 * row_bytes;
      context.kernels->attention_tile({.q = q.data(),
                                       .q_stride = kDim,
                                       .heads = kHeads,
                                       .k_dim = kDim,
                                       .v_dim = kDim,
                                       .k_type = type,
                                       .v_type = type,
                                       .k = k,
                                       .k_row_bytes = row_bytes,
                                       .v = k + 64 * row_bytes,
                                       .v_row_bytes = row_bytes,
                                       .first = 0,
                                       .last = 64,
                                       .scale = 0.1f,
                                       .softcap = 0,
                                       .alibi_slopes = nullptr,
                                       .first_distance = -64,
                                       .m = m.data(),
                                       .l = l.data(),
                                       .o = o.data()});
    });
    done += kTiles;
    elapsed = context.clock->NowSeconds() - start;
  }
  return static_cast<double>(done) * 64 * kHeads * 2 * kDim / elapsed;
}

// Reads a file, in order and around its end, in the ways that a StorageRate describes.
class StorageProbe {
 public:
  static constexpr uint64_t kEach = 64 * kMiB, kLargestBlock = 4 * kMiB, kSmallestFile = 2 * kEach;
  static constexpr int kMostDepth = 16;
  static constexpr uint64_t kBufferBytes = kMostDepth * kLargestBlock;

  static std::optional<StorageProbe> Create(const runtime::Context& context, const std::string& path) {
    auto file = platform::File::Open(path, platform::File::Caching::kDirect);
    if (!file) return std::nullopt;
    const auto size = file->Size();
    if (!size || *size < kSmallestFile) return std::nullopt;
    auto buffers = memory::Arena::Create(kBufferBytes, memory::Account::kReserve, *context.ledger,
                                         {.page_size = platform::PageSize::kHuge, .touch = true});
    if (!buffers) return std::nullopt;
    return StorageProbe(context, *std::move(file), *size / kLargestBlock, *std::move(buffers));
  }

  // Fills in bytes_per_second, from reading so many bytes. False when a read fails or the backend is not
  // there.
  bool Measure(uint64_t bytes, StorageRate& rate) {
    const auto queue = io::CreateIoQueue(rate.backend, rate.depth);
    if (!queue) return false;
    const uint64_t end = place_ + bytes;
    const uint64_t begin = place_;
    uint64_t under_way = 0;
    const auto start_read = [&](uint64_t slot) {
      (*queue)->Submit({.file = &file_,
                        .offset = place_ % (blocks_ * kLargestBlock),
                        .buffer = buffers_.bytes().subspan(slot * kLargestBlock, rate.block_bytes),
                        .tag = slot});
      place_ += rate.block_bytes;
      ++under_way;
    };
    const double start = context_->clock->NowSeconds();
    for (int slot = 0; slot < rate.depth; ++slot) start_read(static_cast<uint64_t>(slot));
    bool failed = false;
    for (; under_way > 0; --under_way) {
      const io::IoCompletion done = (*queue)->Wait();
      failed |= done.result != static_cast<int64_t>(rate.block_bytes);
      if (place_ < end) start_read(done.tag);
    }
    rate.bytes_per_second = static_cast<double>(place_ - begin) / (context_->clock->NowSeconds() - start);
    return !failed;
  }

 private:
  StorageProbe(const runtime::Context& context, platform::File file, uint64_t blocks, memory::Arena buffers)
      : context_(&context), file_(std::move(file)), blocks_(blocks), buffers_(std::move(buffers)) {}

  const runtime::Context* context_;
  platform::File file_;
  uint64_t blocks_;  // of the largest size, whole ones
  memory::Arena buffers_;
  uint64_t place_ = 0;  // in the file, counting on beyond its end
};

}  // namespace

Result<DeviceProfile> ProbeCompute(const runtime::Context& context) {
  DeviceProfile device{.name = "this device", .source = "measured here", .threads = context.pool->size()};
  if (const auto memory = platform::ReadSystemMemory()) device.total_bytes = memory->total_bytes;
  const uint64_t room = context.ledger->Snapshot().available_bytes();
  const uint64_t size = std::clamp(room / 4, kSmallestBuffer, kBufferBytes);
  {
    SLUICE_TRY_ASSIGN(Roof roof, Roof::Create(context, size));
    device.memory_bytes_per_second = roof.Measure().bytes_per_second;
  }
  SLUICE_TRY_ASSIGN(memory::Arena arena,
                    memory::Arena::Create(size, memory::Account::kReserve, *context.ledger,
                                          {.page_size = platform::PageSize::kHuge, .touch = true}));
  kernels::FillRandom(arena.bytes());
  ComputeProbe probe(context, arena.bytes());
  for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
    if (context.kernels->matmul[static_cast<size_t>(traits.dtype)] == nullptr) continue;
    const kernels::Activations activations(*context.kernels, traits.dtype, kColumns, kPrefillRows);
    TypeRate rate{.dtype = traits.dtype};
    const auto measure = [&](int64_t batch) {
      return MiddleOfThree([&] { return probe.Measure(traits.dtype, activations.rows(), batch); });
    };
    rate.decode_bytes_per_second = measure(1) * traits.block_bytes / traits.block_length;
    rate.prefill_multiplications_per_second = measure(kPrefillRows);
    device.types.push_back(rate);
  }
  for (const kv::KvType type :
       {kv::KvType::kF32, kv::KvType::kF16, kv::KvType::kQ8_0, kv::KvType::kQ5_0, kv::KvType::kQ4_0})
    device.attention.push_back(
        {type, MiddleOfThree([&] { return MeasureAttention(context, type, arena.bytes()); })});
  return device;
}

std::vector<StorageRate> ProbeStorage(const runtime::Context& context, const std::string& path) {
  auto probe = StorageProbe::Create(context, path);
  if (!probe) return {};
  std::vector<StorageRate> rates;
  for (const io::IoBackend backend : {io::IoBackend::kUring, io::IoBackend::kPread}) {
    for (const int depth : {1, 2, 4, 8, StorageProbe::kMostDepth}) {
      for (uint64_t block = 256 * kKiB; block <= StorageProbe::kLargestBlock; block *= 2) {
        StorageRate rate{block, depth, backend};
        if (probe->Measure(StorageProbe::kEach, rate)) rates.push_back(rate);
      }
    }
  }
  return rates;
}

Result<StorageReport> MeasureStorage(const runtime::Context& context, const std::string& path,
                                     uint64_t read_bytes) {
  constexpr size_t kBest = 3;
  StorageReport report{.table = ProbeStorage(context, path), .best = {}, .read_bytes = read_bytes};
  std::vector<StorageRate> best = report.table;
  std::ranges::sort(best, std::greater(), &StorageRate::bytes_per_second);
  best.resize(std::min(best.size(), kBest));
  auto probe = StorageProbe::Create(context, path);
  if (best.empty() || !probe) {
    return Fail(ErrorCode::kUnsupported,
                "how fast {} can be read was not measured: it takes a file of {} on a file system "
                "with direct reads, and {} of memory",
                path, FormatBytes(StorageProbe::kSmallestFile), FormatBytes(StorageProbe::kBufferBytes));
  }
  for (StorageRate& rate : best) {
    if (probe->Measure(read_bytes, rate) && rate.bytes_per_second > report.best.bytes_per_second)
      report.best = rate;
  }
  return report;
}

std::string Fingerprint(const runtime::Context& context) {
  const std::string processor = platform::ReadSystemFile("/proc/cpuinfo").value_or("");
  std::string_view model = "processor";
  for (const char* field : {"model name", "Hardware", "CPU part"}) {
    for (const std::string_view line : platform::Split(processor, '\n')) {
      if (!line.starts_with(field)) continue;
      model = line;
      break;
    }
    if (model != "processor") break;
  }
  const std::string text = fmt::format("{}|{}|{}|{}", model, platform::ReadCpuTopology().cores.size(),
                                       context.kernels->name, context.pool->size());
  return fmt::format("{:016x}", HashBytes(std::as_bytes(std::span(text)), kHashSeed));
}

}  // namespace sluice::plan
