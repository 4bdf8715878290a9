#include "weights/weight_store.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/units.h"

namespace sluice::weights {

namespace {

constexpr uint64_t kPage = 4096;
// Large enough that a read costs little beside its bytes, small enough that all workers have some.
constexpr uint64_t kReadBytes = 4 * kMiB;

}  // namespace

Result<WeightStore> WeightStore::Open(const gguf::GgufFile& file, memory::Ledger& ledger) {
  WeightStore store;
  store.file_ = &file;
  store.extents_.assign(file.shards().size(), {UINT64_MAX, 0, nullptr});
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.traits == nullptr) continue;
    Extent& extent = store.extents_[tensor.shard];
    const uint64_t end = std::max(extent.size_bytes == 0 ? 0 : extent.file_offset + extent.size_bytes,
                                  tensor.offset + tensor.size_bytes);
    extent.file_offset = std::min(extent.file_offset, tensor.offset);
    extent.size_bytes = end - extent.file_offset;
  }
  uint64_t total = 0;
  for (const Extent& extent : store.extents_) total += AlignUp(extent.size_bytes, kPage) + kPage;
  SLUICE_TRY_ASSIGN(store.arena_, memory::Arena::Create(total, memory::Account::kWeightsPinned, ledger,
                                                        {.page_size = platform::PageSize::kHuge}));
  for (Extent& extent : store.extents_) {
    if (extent.size_bytes == 0) continue;
    const uint64_t into_page = extent.file_offset % kPage;
    extent.data = store.arena_.Allocate(into_page + extent.size_bytes, kPage).data() + into_page;
  }
  return store;
}

tensor::TensorView WeightStore::View(const gguf::Tensor& tensor) const {
  const Extent& extent = extents_[tensor.shard];
  return {.dtype = tensor.traits->dtype,
          .rows = static_cast<int64_t>(tensor.rows()),
          .columns = static_cast<int64_t>(tensor.columns()),
          .data = extent.data + (tensor.offset - extent.file_offset)};
}

Status WeightStore::Load(const runtime::Context& context, const Progress& progress) {
  struct Read {
    const gguf::Tensor* tensor;
    uint64_t offset, size;
  };
  std::vector<Read> reads;
  uint64_t total = 0, done = 0;
  for (const gguf::Tensor& tensor : file_->tensors()) {
    if (tensor.traits == nullptr) continue;
    total += tensor.size_bytes;
    for (uint64_t offset = 0; offset < tensor.size_bytes; offset += kReadBytes)
      reads.push_back({&tensor, offset, std::min(kReadBytes, tensor.size_bytes - offset)});
  }
  // In rounds, so that progress can be shown and a stop takes effect.
  const size_t round = static_cast<size_t>(context.pool->size()) * 8;
  for (size_t first = 0; first < reads.size(); first += round) {
    const std::span<const Read> batch = std::span(reads).subspan(first, std::min(round, reads.size() - first));
    std::mutex mutex;
    std::optional<Error> failure;
    context.pool->ParallelFor(static_cast<int64_t>(batch.size()), 1, [&](int64_t i, int64_t, int) {
      const Read& read = batch[static_cast<size_t>(i)];
      std::byte* address = const_cast<std::byte*>(View(*read.tensor).data) + read.offset;
      if (Status status = file_->Read(*read.tensor, read.offset, {address, static_cast<size_t>(read.size)}); !status) {
        const std::lock_guard lock(mutex);
        failure = std::move(status).error();
      }
    });
    if (failure) return *std::move(failure);
    for (const Read& read : batch) done += read.size;
    if (progress && !progress(done, total)) return Fail(ErrorCode::kInterrupted, "loading was stopped");
  }
  return {};
}

}  // namespace sluice::weights
