// SlabReader: brings extents of files into memory, several reads at a time, and sees to it that all their
// bytes come.
//
// Extents are read in blocks of about the size that storage likes best, so that as much is under way whatever
// slabs look like. Those of an extent are equally long: a short one at its end would take as long as the
// others. Short reads are resumed; a failing read, and a file that has become shorter, are errors that name
// the tensor. Owns the files that it reads from. Not thread-safe, except that WaitForOne may run beside the
// others (IoQueue).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "gguf/reader.h"
#include "io/io_queue.h"
#include "weights/residency.h"
#include "weights/schedule.h"

namespace sluice::weights {

class SlabReader {
 public:
  struct Stats {
    uint64_t bytes = 0;        // that storage delivered, page rounding included
    uint64_t reads = 0;
    uint64_t short_reads = 0;  // that had to be resumed
  };

  // How files are read.
  struct Reading {
    uint64_t block_bytes = kMiB;  // of a read, about (BlockBytes); whole pages
    int depth = 8;                // reads under way at most: what the queue is made for
    PageCache page_cache = PageCache::kPassBy;
  };
  // Opens the files of the model, past the page cache where that is wanted and possible. Errors: those of
  // File::Open; kCorrupt when a file is not the size that it had when its header was read.
  static Result<std::unique_ptr<SlabReader>> Create(const gguf::GgufFile& model, const Reading& reading,
                                                    std::unique_ptr<io::IoQueue> queue);

  std::string_view backend() const { return queue_->name(); }
  const Stats& stats() const { return stats_; }

  // Whether there is room for the extents of one more slab: all before them are under way.
  bool CanStart() const { return n_waiting_ == 0 && reads_under_way_ < reading_.depth; }
  // More than 0 as long as an extent is not complete.
  int reads_under_way() const { return reads_under_way_; }

  // Starts the reading of an extent. Precondition: CanStart() was true before the first extent of its slab. `memory` is
  // where its whole pages go: from the file offset rounded down to a page to its end rounded up. `id` comes back when it
  // is done.
  void Start(const Extent& extent, const gguf::Tensor& tensor, std::span<std::byte> memory, int id);

  // Waits for a completion. The one part that may run beside the rest: Finish is to be called with what it returns.
  // Precondition: reads_under_way() > 0.
  io::IoCompletion WaitForOne() { return queue_->Wait(); }
  // The same without waiting: nothing when none has arrived. Not while somebody waits.
  std::optional<io::IoCompletion> Poll() { return queue_->Poll(); }
  // The id of an extent that is now complete, or −1 when there is more to come of it. Starts what has been waiting.
  Result<int> Finish(const io::IoCompletion& completion);

  // Copies an extent out of the page cache, and reads from storage what is not there. Thread-safe.
  Status Copy(const Extent& extent, const gguf::Tensor& tensor, std::byte* data) const;
  // Whether the page cache holds nearly all of these slabs, judged by looking at some places.
  bool MostlyInPageCache(std::span<const Slab> slabs) const;
  // Drops what the page cache holds of the files: their headers, and what was read along with small tensors.
  void DropFromPageCache() const;

  // Begins to read a row that ReadRow is to be asked for soon: its pages come into the page cache meanwhile.
  // Thread-safe.
  void ExpectRow(const Matrix& matrix, int64_t row) const;
  // One row of a matrix. Thread-safe.
  Status ReadRow(const Matrix& matrix, int64_t row, std::span<std::byte> out) const;

 private:
  // An extent on its way.
  struct Transfer {
    const gguf::Tensor* tensor = nullptr;
    uint32_t shard = 0;
    uint64_t offset = 0;            // in the file, of the first byte of `memory`
    uint64_t wanted = 0;            // bytes of `memory` that must come; the rest is rounding
    uint64_t block = 0;             // bytes of a read
    std::span<std::byte> memory;
    uint64_t started = 0;           // of `memory`
    int reads = 0;                  // under way
    bool failed = false;            // one of them has
    int id = 0;
  };
  // A block of it.
  struct Read {
    size_t transfer = 0;
    uint64_t begin = 0, end = 0;    // in the transfer's memory
    uint64_t done = 0;              // so far, from `begin`
  };

  explicit SlabReader(const Reading& reading);
  void StartWaiting();
  void Submit(size_t index);
  Status TakeIn(Read& read, const Transfer& transfer, int64_t result);

  const Reading reading_;
  PageCache page_cache_;  // kEmptyBehind instead of kPassBy where the file system has no direct reads
  std::vector<platform::File> files_;         // by shard, direct where possible
  std::vector<platform::File> cached_files_;  // by shard, through the page cache
  std::unique_ptr<io::IoQueue> queue_;        // destroyed before the files
  std::vector<Transfer> transfers_;
  std::vector<Read> reads_;
  std::vector<size_t> free_transfers_, free_reads_;
  std::array<size_t, kMaxMatrices> waiting_{};  // transfers with blocks that are not under way yet, in order
  int n_waiting_ = 0;
  int reads_under_way_ = 0;
  Stats stats_;
};

}  // namespace sluice::weights
