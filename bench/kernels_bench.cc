// The kernels' own speed, one thread. For each table of this build that the processor runs and each weight
// type:
//   gemv/<table>/<type>     one activation row against weights that stay in L2: bytes of weights per second
//   stream/<table>/<type>   the same from memory: more weights than any cache holds
//   gemm/<table>/<type>     a batch of 128: multiply-adds per second, as items
//   attention/<table>/…     tiles of 64 keys per second × heads
// Filter with --benchmark_filter=gemv/avx2/Q4_K and the like.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/made_up_inputs.h"
#include "formats/dtype.h"
#include "kernels/kv_rows.h"
#include "platform/cpu_features.h"

namespace sluice::kernels {
namespace {

using formats::DType;

constexpr int64_t kColumns = 2048;
constexpr size_t kL2Bytes = 384 * 1024;
constexpr size_t kStreamBytes = 1024ull * 1024 * 1024;

AlignedBuffer RandomBuffer(size_t size) {
  AlignedBuffer bytes(size);
  FillRandom(bytes.bytes());
  return bytes;
}

// A product of `rows` × kColumns weights with a batch.
class Product {
 public:
  Product(const Kernels& kernels, DType dtype, int64_t rows, int64_t batch)
      : matmul_(kernels.matmul[static_cast<size_t>(dtype)]),
        row_bytes_(formats::RowBytes(dtype, kColumns)),
        rows_(rows),
        weights_(RandomBuffer(static_cast<size_t>(rows) * row_bytes_)),
        scratch_(kMatmulScratchBytes),
        activations_(kernels, dtype, kColumns, batch),
        y_(static_cast<size_t>(batch * rows)) {}

  void Run() {
    matmul_({weights_.data(), row_bytes_, rows_, activations_.rows(), y_.data(), rows_, scratch_.bytes()});
    benchmark::DoNotOptimize(y_.data());
    benchmark::ClobberMemory();
  }
  int64_t weight_bytes() const { return static_cast<int64_t>(weights_.size()); }
  int64_t multiply_adds() const { return rows_ * kColumns * activations_.rows().batch; }

 private:
  MatmulFn matmul_;
  size_t row_bytes_;
  int64_t rows_;
  AlignedBuffer weights_;
  AlignedBuffer scratch_;
  Activations activations_;
  std::vector<float> y_;
};

int64_t RowsIn(DType dtype, size_t bytes) {
  return static_cast<int64_t>(bytes / formats::RowBytes(dtype, kColumns)) / 32 * 32;
}

void BenchBytes(benchmark::State& state, const Kernels& kernels, DType dtype, size_t bytes) {
  Product product(kernels, dtype, RowsIn(dtype, bytes), 1);
  for (auto _ : state) product.Run();
  state.SetBytesProcessed(state.iterations() * product.weight_bytes());
}

void BenchBatch(benchmark::State& state, const Kernels& kernels, DType dtype, int64_t batch) {
  Product product(kernels, dtype, 256, batch);
  for (auto _ : state) product.Run();
  state.SetItemsProcessed(state.iterations() * product.multiply_adds());
}

void BenchAttention(benchmark::State& state, const Kernels& kernels, KvType type, int heads) {
  constexpr int kDim = 128;
  const size_t row_bytes = KvRowBytes(type, kDim);
  const AlignedBuffer k = RandomBuffer(64 * row_bytes), v = RandomBuffer(64 * row_bytes);
  std::vector<float> q(heads * kDim, 0.25f), m(heads, 0.0f), l(heads, 0.0f), o(heads * kDim, 0.0f);
  const AttentionTileArgs args = {.q = q.data(),
                                  .q_stride = kDim,
                                  .heads = heads,
                                  .k_dim = kDim,
                                  .v_dim = kDim,
                                  .k_type = type,
                                  .v_type = type,
                                  .k = k.data(),
                                  .k_row_bytes = row_bytes,
                                  .v = v.data(),
                                  .v_row_bytes = row_bytes,
                                  .first = 0,
                                  .last = 64,
                                  .scale = 0.1f,
                                  .softcap = 0,
                                  .alibi_slopes = nullptr,
                                  .first_distance = 0,
                                  .m = m.data(),
                                  .l = l.data(),
                                  .o = o.data()};
  for (auto _ : state) {
    kernels.attention_tile(args);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * heads);
}

void Register() {
  const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
  for (const Kernels* kernels : AllKernels()) {
    if (!kernels->supported(cpu)) continue;
    const std::string table(kernels->name);
    const auto add = [&](const std::string& name, auto function) {
      benchmark::RegisterBenchmark(name.c_str(), function)->Unit(benchmark::kMicrosecond);
    };
    for (const formats::DTypeTraits& traits : formats::AllDTypes()) {
      const DType dtype = traits.dtype;
      if (kernels->matmul[static_cast<size_t>(dtype)] == nullptr) continue;
      const std::string name = table + "/" + std::string(traits.name);
      add("gemv/" + name, [=](benchmark::State& s) { BenchBytes(s, *kernels, dtype, kL2Bytes); });
      add("stream/" + name, [=](benchmark::State& s) { BenchBytes(s, *kernels, dtype, kStreamBytes); });
      add("gemm/" + name, [=](benchmark::State& s) { BenchBatch(s, *kernels, dtype, 128); });
      add("batch4/" + name, [=](benchmark::State& s) { BenchBatch(s, *kernels, dtype, 4); });
    }
    for (size_t type = 0; type < kKvTypeCount; ++type) {
      const auto kv_type = static_cast<KvType>(type);
      for (const int heads : {1, 8}) {
        add(fmt::format("attention/{}/{}/{} heads", table, Name(kv_type), heads),
            [=](benchmark::State& s) { BenchAttention(s, *kernels, kv_type, heads); });
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  sluice::kernels::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
