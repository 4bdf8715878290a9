#include "quantize/hessian.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/units.h"

namespace sluice::quantize {
namespace {

constexpr int64_t kBlockStep = 256;
// Columns whose products with the others are computed in one go.
constexpr int64_t kColumnsAtOnce = 32;
// Inputs that are added in one go.
constexpr int64_t kRowsAtOnce = 512;

int64_t BlockWidth(int64_t columns, int64_t widest) {
  const int64_t blocks = (columns + widest - 1) / widest;
  const int64_t width = (columns + blocks - 1) / blocks;
  return std::min(columns, (width + kBlockStep - 1) / kBlockStep * kBlockStep);
}

// Σ a[i] b[i] in four chains.
double Dot(const float* a, const float* b, int64_t n) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int l = 0; l < 4; ++l) sums[l] += double{a[i + l]} * double{b[i + l]};
  }
  for (; i < n; ++i) sums[0] += double{a[i]} * double{b[i]};
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

// Overwrites the upper triangle of a [n, n] by its factor; false when it is not positive definite.
bool Factor(float* a, int64_t n) {
  for (int64_t j = n - 1; j >= 0; --j) {
    float* const row = a + j * n;
    const double pivot = double{row[j]} - Dot(row + j + 1, row + j + 1, n - j - 1);
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    row[j] = static_cast<float>(std::sqrt(pivot));
    for (int64_t i = 0; i < j; ++i) {
      float* const other = a + i * n;
      const double rest = double{other[j]} - Dot(other + j + 1, row + j + 1, n - j - 1);
      other[j] = static_cast<float>(rest / double{row[j]});
    }
    std::fill(row, row + j, 0.0f);
  }
  return true;
}

}  // namespace

uint64_t BlockDiagonal::Bytes(int64_t columns, int64_t widest) {
  return static_cast<uint64_t>(columns) * static_cast<uint64_t>(BlockWidth(columns, widest)) * sizeof(float);
}

Result<BlockDiagonal> BlockDiagonal::Create(const runtime::Context& context, int64_t columns,
                                            int64_t widest) {
  SLUICE_CHECK(columns > 0 && widest >= kBlockStep);
  BlockDiagonal matrix;
  matrix.columns_ = columns;
  matrix.width_ = BlockWidth(columns, widest);
  const uint64_t bytes = Bytes(columns, widest);
  SLUICE_TRY_ASSIGN(matrix.arena_,
                    memory::Arena::Create(bytes, memory::Account::kActivations, *context.ledger,
                                          {.page_size = platform::PageSize::kHuge}));
  matrix.data_ = reinterpret_cast<float*>(matrix.arena_.Allocate(bytes, 64).data());
  std::memset(matrix.data_, 0, bytes);
  return matrix;
}

namespace {

// Bytes of the pieces of Hessian's working memory.
uint64_t TurnedBytes(int64_t columns) {
  return AlignUp(static_cast<uint64_t>(columns * kRowsAtOnce) * sizeof(float), memory::kCacheLineBytes);
}
uint64_t ProductBytes(int64_t columns, int64_t widest) {
  return static_cast<uint64_t>(kColumnsAtOnce * BlockWidth(columns, widest)) * sizeof(float);
}

}  // namespace

uint64_t Hessian::WorkingBytes(int64_t columns, int64_t widest, int workers) {
  return TurnedBytes(columns) +
         static_cast<uint64_t>(workers) * (kernels::kMatmulScratchBytes + ProductBytes(columns, widest));
}

Result<Hessian> Hessian::Create(const runtime::Context& context, int64_t columns, int64_t widest) {
  Hessian hessian;
  SLUICE_TRY_ASSIGN(hessian.sums_, BlockDiagonal::Create(context, columns, widest));
  const int workers = context.pool->size();
  SLUICE_TRY_ASSIGN(hessian.working_, memory::Arena::Create(WorkingBytes(columns, widest, workers),
                                                            memory::Account::kActivations, *context.ledger));
  memory::Arena& working = hessian.working_;
  hessian.turned_ = reinterpret_cast<float*>(working.Allocate(TurnedBytes(columns)).data());
  for (int w = 0; w < workers; ++w) {
    Worker& worker = hessian.workers_.emplace_back();
    worker.scratch = working.Allocate(kernels::kMatmulScratchBytes);
    worker.products = reinterpret_cast<float*>(working.Allocate(ProductBytes(columns, widest)).data());
  }
  return hessian;
}

void Hessian::Add(const runtime::Context& context, const float* inputs, int64_t count) {
  for (int64_t first = 0; first < count; first += kRowsAtOnce)
    AddSome(context, inputs + first * columns(), std::min(kRowsAtOnce, count - first));
}

void Hessian::AddSome(const runtime::Context& context, const float* inputs, int64_t count) {
  count_ += count;
  context.pool->ParallelFor(columns(), kColumnsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t c = begin; c < end; ++c) turned_[c * count + row] = inputs[row * columns() + c];
    }
  });
  const kernels::MatmulFn multiply = context.kernels->matmul[static_cast<size_t>(formats::DType::kF32)];
  const auto row_bytes = static_cast<size_t>(count) * sizeof(float);
  for (int block = 0; block < sums_.blocks(); ++block) {
    const int64_t width = sums_.width(block);
    const float* const turned = turned_ + sums_.first(block) * count;
    // The lower triangle: each column with those up to its own stretch.
    context.pool->ParallelFor(width, kColumnsAtOnce, [&](int64_t begin, int64_t end, int index) {
      const Worker& worker = workers_[static_cast<size_t>(index)];
      multiply({.weights = reinterpret_cast<const std::byte*>(turned),
                .row_bytes = row_bytes,
                .rows = end,
                .x = {.batch = end - begin, .columns = count, .f32 = turned + begin * count},
                .y = worker.products,
                .y_stride = end,
                .scratch = worker.scratch});
      for (int64_t i = begin; i < end; ++i) {
        float* const sums = sums_.data(block) + i * width;
        for (int64_t j = 0; j <= i; ++j) sums[j] += worker.products[(i - begin) * end + j];
      }
    });
  }
}

Status Hessian::Finish(double damping) {
  const double scale = count_ > 0 ? 1.0 / static_cast<double>(count_) : 0.0;
  double trace = 0;
  for (int64_t c = 0; c < columns(); ++c) trace += double{sums_.at(c)} * scale;
  const double mean = trace / static_cast<double>(columns());
  if (!std::isfinite(mean))
    return Fail(ErrorCode::kCorrupt, "an input is NaN or infinite: the model computes nonsense");
  const auto more = static_cast<float>(mean > 0 ? damping * mean : 1.0);
  for (int block = 0; block < sums_.blocks(); ++block) {
    const int64_t width = sums_.width(block);
    float* const data = sums_.data(block);
    for (int64_t i = 0; i < width; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        const auto value = static_cast<float>(double{data[i * width + j]} * scale);
        data[i * width + j] = data[j * width + i] = value;
      }
      data[i * width + i] += more;
    }
  }
  return {};
}

Result<BlockDiagonal> FactorOf(const runtime::Context& context, Hessian hessian) {
  BlockDiagonal factor = std::move(hessian).TakeMatrix();
  std::atomic<bool> definite{true};
  context.pool->ParallelFor(factor.blocks(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t b = begin; b < end; ++b) {
      const int block = static_cast<int>(b);
      if (!Factor(factor.data(block), factor.width(block))) definite = false;
    }
  });
  if (!definite) return Fail(ErrorCode::kCorrupt, "the inputs' correlations are not those of finite numbers");
  return factor;
}

std::vector<float> OwnWeights(const BlockDiagonal& factor) {
  std::vector<float> weights;
  for (int block = 0; block < factor.blocks(); ++block) {
    const int64_t width = factor.width(block);
    for (int64_t c = 0; c < width; ++c) {
      const float* const row = factor.data(block) + c * width;
      weights.push_back(static_cast<float>(Dot(row + c, row + c, width - c)));
    }
  }
  return weights;
}

}  // namespace sluice::quantize
