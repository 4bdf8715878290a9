#include "weights/slab_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "platform/os_error.h"
#include "weights/shard_file.h"

namespace sluice::weights {

namespace {

constexpr uint64_t kPage = platform::File::kDirectAlignment;

}  // namespace

SlabReader::SlabReader(const Reading& reading) : reading_(reading), page_cache_(reading.page_cache) {
  SLUICE_CHECK(reading.depth >= 1 && reading.block_bytes >= kPage && reading.block_bytes % kPage == 0);
  reads_.resize(static_cast<size_t>(reading.depth));
  for (size_t i = 0; i < reads_.size(); ++i) free_reads_.push_back(i);
  // Each that is not waiting has a read under way.
  transfers_.resize(reads_.size() + kMaxMatrices);
  for (size_t i = 0; i < transfers_.size(); ++i) free_transfers_.push_back(i);
}

Result<std::unique_ptr<SlabReader>> SlabReader::Create(const gguf::GgufFile& model, const Reading& reading,
                                                       std::unique_ptr<io::IoQueue> queue) {
  std::unique_ptr<SlabReader> reader(new SlabReader(reading));
  bool direct = reading.page_cache == PageCache::kPassBy;
  for (const gguf::Shard& shard : model.shards()) {
    SLUICE_TRY_ASSIGN(platform::File cached, OpenShard(shard, platform::File::Caching::kPageCache));
    cached.ExpectRandomReads();
    reader->cached_files_.push_back(std::move(cached));
    if (!direct) continue;
    auto file = OpenShard(shard, platform::File::Caching::kDirect);
    if (!file && file.error().code != ErrorCode::kUnsupported) return std::move(file).error();
    if (file) reader->files_.push_back(*std::move(file));
    direct = file.has_value();
  }
  if (!direct) {
    if (reading.page_cache == PageCache::kPassBy) reader->page_cache_ = PageCache::kEmptyBehind;
    reader->files_.clear();
    for (const gguf::Shard& shard : model.shards()) {
      SLUICE_TRY_ASSIGN(platform::File file, OpenShard(shard, platform::File::Caching::kPageCache));
      // What would be read ahead belongs to slabs that stay, or is dropped before its turn comes.
      file.ExpectRandomReads();
      reader->files_.push_back(std::move(file));
    }
  }
  reader->queue_ = std::move(queue);
  return reader;
}

void SlabReader::Start(const Extent& extent, const gguf::Tensor& tensor, std::span<std::byte> memory, int id) {
  SLUICE_CHECK(n_waiting_ < kMaxMatrices && !free_transfers_.empty());
  const size_t index = free_transfers_.back();
  free_transfers_.pop_back();
  const uint64_t before = extent.offset % kPage;
  transfers_[index] = {.tensor = &tensor,
                       .shard = extent.shard,
                       .offset = extent.offset - before,
                       .wanted = before + extent.size_bytes,
                       .block = BlockBytes(memory.size(), reading_.block_bytes),
                       .memory = memory,
                       .id = id};
  waiting_[static_cast<size_t>(n_waiting_++)] = index;
  StartWaiting();
}

// Puts as many blocks under way as the queue takes.
void SlabReader::StartWaiting() {
  while (n_waiting_ > 0 && reads_under_way_ < reading_.depth) {
    Transfer& transfer = transfers_[waiting_[0]];
    const size_t index = free_reads_.back();
    free_reads_.pop_back();
    const uint64_t end = std::min<uint64_t>(transfer.memory.size(), transfer.started + transfer.block);
    reads_[index] = {.transfer = waiting_[0], .begin = transfer.started, .end = end};
    transfer.started = end;
    ++transfer.reads;
    ++reads_under_way_;
    Submit(index);
    if (end < transfer.memory.size()) continue;
    --n_waiting_;
    std::copy_n(waiting_.begin() + 1, n_waiting_, waiting_.begin());
  }
}

void SlabReader::Submit(size_t index) {
  const Read& read = reads_[index];
  const Transfer& transfer = transfers_[read.transfer];
  queue_->Submit({.file = &files_[transfer.shard],
                  .offset = transfer.offset + read.begin + read.done,
                  .buffer = transfer.memory.subspan(read.begin + read.done, read.end - read.begin - read.done),
                  .tag = index});
  ++stats_.reads;
}

// Enters what a read has brought, or why it can't go on.
Status SlabReader::TakeIn(Read& read, const Transfer& transfer, int64_t result) {
  const std::string& path = files_[transfer.shard].path();
  const uint64_t place = transfer.offset + read.begin + read.done;
  if (result < 0) {
    return platform::OsError(static_cast<int>(-result), "reading tensor {} at byte {} of {}", transfer.tensor->name, place,
                             path);
  }
  stats_.bytes += static_cast<uint64_t>(result);
  read.done += static_cast<uint64_t>(result);
  if (read.begin + read.done >= std::min(read.end, transfer.wanted)) return {};
  // Direct reads go on at a whole page. A device that gives less than one again and again is not waited for.
  const bool direct = page_cache_ == PageCache::kPassBy;
  if (direct) read.done = read.done / kPage * kPage;
  if (result > 0 && (!direct || static_cast<uint64_t>(result) >= kPage)) return {};
  const uint64_t end = transfer.offset + transfer.wanted;
  const Result<uint64_t> size = files_[transfer.shard].Size();
  if (result == 0 || (size && *size < end)) {
    return Fail(ErrorCode::kCorrupt, "{} has become shorter: tensor {} ends at byte {}, the file at byte {}", path,
                transfer.tensor->name, end, place + static_cast<uint64_t>(result));
  }
  return Fail(ErrorCode::kIo, "reading tensor {} at byte {} of {}: only {} bytes came", transfer.tensor->name, place, path,
              result);
}

Result<int> SlabReader::Finish(const io::IoCompletion& completion) {
  Read& read = reads_[completion.tag];
  Transfer& transfer = transfers_[read.transfer];
  Status status = TakeIn(read, transfer, completion.result);
  if (status && read.begin + read.done < std::min(read.end, transfer.wanted)) {
    ++stats_.short_reads;
    Submit(completion.tag);
    return -1;
  }
  if (page_cache_ == PageCache::kEmptyBehind)
    files_[transfer.shard].DropFromPageCache(transfer.offset + read.begin, read.end - read.begin);
  free_reads_.push_back(completion.tag);
  --reads_under_way_;
  transfer.failed |= !status;
  const bool over = --transfer.reads == 0 && transfer.started == transfer.memory.size();
  if (over) free_transfers_.push_back(read.transfer);
  const int id = over && !transfer.failed ? transfer.id : -1;
  StartWaiting();
  if (!status) return std::move(status).error();
  return id;
}

Status SlabReader::Copy(const Extent& extent, const gguf::Tensor& tensor, std::byte* data) const {
  const platform::File& file = cached_files_[extent.shard];
  const std::span<std::byte> out(data, extent.size_bytes);
  const size_t cached = file.CopyFromPageCache(extent.offset, out);
  if (cached == out.size()) return {};
  if (Status status = file.PreadFull(extent.offset + cached, out.subspan(cached)); !status) {
    return Annotate(std::move(status).error(), "tensor " + std::string(tensor.name));
  }
  return {};
}

bool SlabReader::MostlyInPageCache(std::span<const Slab> slabs) const {
  constexpr size_t kLooks = 64;
  if (slabs.empty()) return false;
  size_t found = 0;
  for (size_t look = 0; look < kLooks; ++look) {
    const Extent& extent = slabs[look * slabs.size() / kLooks].extents[0];
    std::byte byte;
    found += cached_files_[extent.shard].CopyFromPageCache(extent.offset + extent.size_bytes / 2, {&byte, 1});
  }
  return found * 10 >= kLooks * 9;
}

void SlabReader::DropFromPageCache() const {
  for (const platform::File& file : cached_files_) {
    if (const auto size = file.Size()) file.DropFromPageCache(0, *size);
  }
}

void SlabReader::ExpectRow(const Matrix& matrix, int64_t row) const {
  cached_files_[matrix.tensor->shard].BeginReading(matrix.row_offset(row), matrix.row_bytes());
}

Status SlabReader::ReadRow(const Matrix& matrix, int64_t row, std::span<std::byte> out) const {
  const platform::File& file = cached_files_[matrix.tensor->shard];
  const uint64_t offset = matrix.row_offset(row);
  if (Status status = file.PreadFull(offset, out); !status) {
    return Annotate(std::move(status).error(), "tensor " + std::string(matrix.tensor->name));
  }
  // Rows must not gather in the page cache, which the budget doesn't know of.
  file.DropFromPageCache(offset, out.size());
  return {};
}

}  // namespace sluice::weights
