#include "weights/slab_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "platform/os_error.h"

namespace sluice::weights {

namespace {

constexpr uint64_t kPage = platform::File::kDirectAlignment;

Result<platform::File> OpenShard(const gguf::Shard& shard, platform::File::Caching caching) {
  SLUICE_TRY_ASSIGN(platform::File file, platform::File::Open(shard.path, caching));
  SLUICE_TRY_ASSIGN(const uint64_t size, file.Size());
  if (size != shard.file_bytes) {
    return Fail(ErrorCode::kCorrupt, "{} has changed while it was opened: {} bytes, before {}", shard.path, size,
                shard.file_bytes);
  }
  return file;
}

}  // namespace

Result<std::unique_ptr<SlabReader>> SlabReader::Create(const gguf::GgufFile& model, int depth, bool direct,
                                                       std::unique_ptr<io::IoQueue> queue) {
  SLUICE_CHECK(depth >= 1);
  std::unique_ptr<SlabReader> reader(new SlabReader(depth));
  reader->direct_ = direct;
  for (const gguf::Shard& shard : model.shards()) {
    SLUICE_TRY_ASSIGN(platform::File cached, OpenShard(shard, platform::File::Caching::kPageCache));
    cached.ExpectRandomReads();
    reader->cached_files_.push_back(std::move(cached));
    if (!reader->direct_) continue;
    auto file = OpenShard(shard, platform::File::Caching::kDirect);
    if (!file && file.error().code != ErrorCode::kUnsupported) return std::move(file).error();
    if (file) reader->files_.push_back(*std::move(file));
    reader->direct_ = file.has_value();
  }
  if (!reader->direct_) {
    reader->files_.clear();
    for (const gguf::Shard& shard : model.shards()) {
      SLUICE_TRY_ASSIGN(platform::File file, OpenShard(shard, platform::File::Caching::kPageCache));
      // What would be read ahead belongs to slabs that stay, or is dropped before its turn comes.
      file.ExpectRandomReads();
      reader->files_.push_back(std::move(file));
    }
  }
  reader->queue_ = std::move(queue);
  reader->reads_.resize(static_cast<size_t>(QueueDepth(depth)));
  for (size_t i = 0; i < reader->reads_.size(); ++i) reader->free_reads_.push_back(i);
  return reader;
}

void SlabReader::Start(const Extent& extent, const gguf::Tensor& tensor, std::span<std::byte> memory, int id) {
  SLUICE_CHECK(!free_reads_.empty());
  const size_t index = free_reads_.back();
  free_reads_.pop_back();
  const uint64_t before = extent.offset % kPage;
  reads_[index] = {.tensor = &tensor,
                   .shard = extent.shard,
                   .offset = extent.offset - before,
                   .wanted = before + extent.size_bytes,
                   .done = 0,
                   .memory = memory,
                   .id = id};
  ++reads_under_way_;
  Submit(index);
}

void SlabReader::Submit(size_t index) {
  const Read& read = reads_[index];
  queue_->Submit({.file = &files_[read.shard],
                  .offset = read.offset + read.done,
                  .buffer = read.memory.subspan(read.done),
                  .tag = index});
  ++stats_.reads;
}

Result<int> SlabReader::Finish(const io::IoCompletion& completion) {
  Read& read = reads_[completion.tag];
  const auto close = [&] {
    free_reads_.push_back(completion.tag);
    --reads_under_way_;
  };
  const auto fail = [&](Error error) {
    close();
    return error;
  };
  const std::string& path = files_[read.shard].path();
  if (completion.result < 0) {
    return fail(platform::OsError(static_cast<int>(-completion.result), "reading tensor {} at byte {} of {}",
                                  read.tensor->name, read.offset + read.done, path));
  }
  stats_.bytes += static_cast<uint64_t>(completion.result);
  read.done += static_cast<uint64_t>(completion.result);
  if (read.done >= read.wanted) {
    if (!direct_) files_[read.shard].DropFromPageCache(read.offset, read.memory.size());
    close();
    return read.id;
  }
  if (completion.result == 0) {
    return fail(Fail(ErrorCode::kCorrupt, "{} has become shorter: tensor {} ends at byte {}, the file at byte {}", path,
                     read.tensor->name, read.offset + read.wanted, read.offset + read.done));
  }
  // Direct reads go on at a whole page. A device that gives less than one again and again is not waited for.
  if (direct_) read.done = read.done / kPage * kPage;
  if (direct_ && static_cast<uint64_t>(completion.result) < kPage) {
    return fail(Fail(ErrorCode::kIo, "reading tensor {} at byte {} of {}: only {} bytes came", read.tensor->name,
                     read.offset + read.done, path, completion.result));
  }
  ++stats_.short_reads;
  Submit(completion.tag);
  return -1;
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

Status SlabReader::CheckSizes(const gguf::GgufFile& model) const {
  for (size_t i = 0; i < cached_files_.size(); ++i) {
    SLUICE_TRY_ASSIGN(const uint64_t size, cached_files_[i].Size());
    const gguf::Shard& shard = model.shards()[i];
    if (size < shard.file_bytes) {
      return Fail(ErrorCode::kCorrupt, "{} has become shorter: {} bytes, before {}", shard.path, size, shard.file_bytes);
    }
  }
  return {};
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
