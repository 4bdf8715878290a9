// WeightStore: the weights of a model, wherever they are: in memory for good, or passing through it.
//
// A forward pass takes the slabs in the order of the schedule: Acquire waits until a slab's bytes are in memory, Release
// says that its rows are done. Reading goes on ahead of the pass, also across its end into the next one, so that storage
// never waits for computing; slabs that stay are read on the first pass that comes by, there is no loading before it.
// There is no thread for reading: whoever waits collects what has arrived, whoever frees a slab starts the next read.
// Where weights live never changes a byte of them.
//
// One pass at a time, from BeginPass to EndPass. Within it, Acquire and Release may be called by all workers; in an
// operation with streamed slabs they take the slabs in order, or a slab that all wait for would have no room.
// The model's file must outlive the store.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "memory/arena.h"
#include "runtime/context.h"
#include "weights/mapped_files.h"
#include "weights/residency.h"
#include "weights/schedule.h"
#include "weights/slab_reader.h"

namespace sluice::weights {

// What has happened since the store was made.
struct StoreStats {
  uint64_t bytes_read = 0;      // from storage
  uint64_t reads = 0;
  uint64_t short_reads = 0;     // resumed
  uint64_t slabs_evicted = 0;   // that had to make room
  uint64_t slabs_streamed = 0;  // that came in and will go
  // Workers waiting for storage, the sum of all: those that wait for a slab, and those that have nothing to do
  // but wait for them.
  double stall_seconds = 0;
};

class WeightStore {
 public:
  // Takes the memory (PlanFootprint); reads nothing. Errors: kDoesNotFit when the ledger has no room, kInvalidArgument for a ring
  // that holds too few slabs, those of SlabReader::Create.
  static Result<std::unique_ptr<WeightStore>> Create(const runtime::Context& context, const gguf::GgufFile& file,
                                                     const Schedule& schedule, const StoreOptions& options);
  // The same over a queue of the caller's, for tests.
  static Result<std::unique_ptr<WeightStore>> Create(const runtime::Context& context, const gguf::GgufFile& file,
                                                     const Schedule& schedule, const StoreOptions& options,
                                                     std::unique_ptr<io::IoQueue> queue);
  ~WeightStore();
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  const gguf::GgufFile& file() const { return file_; }
  const StoreOptions& options() const { return options_; }
  std::string_view io_backend() const { return reader_->backend(); }

  std::span<const Slab> slabs() const { return slabs_; }
  // The slabs [first, second) of an operation.
  std::pair<int, int> SlabsOf(int operation) const { return operations_[static_cast<size_t>(operation)]; }

  // Whether the slabs of an operation must be taken in order: some of them are streamed.
  bool InOrder(int operation) const;

  // Called before each operation of a pass, while no slab is in use: the system may want memory back, which
  // then is given (GiveBack), in the middle of a pass as well as between two. Said in the log.
  void BeginOperation(int operation) {
    if (context_.pressure == nullptr) return;
    if (const uint64_t wanted = context_.pressure->WantedBytes(); wanted > 0) Relieve(wanted, operation);
  }

  // Begins a pass that runs the last operation `output_rounds` times. What an abandoned pass left behind is
  // dropped. Errors: kCorrupt when a mapped file has become shorter.
  Status BeginPass(int output_rounds);
  // Errors: kCorrupt when a mapped file has become shorter meanwhile. Zeros may have been multiplied with then.
  Status EndPass();

  // Where the extents of a slab are, once they are there; null when reading failed (see status()).
  const std::byte* const* Acquire(int slab) {
    const State& state = states_[static_cast<size_t>(slab)];
    if (state.phase.load(std::memory_order_acquire) == Phase::kReady && !is_cache()) return state.data.data();
    return AcquireSlowly(slab);
  }
  // `rows` > 0 of an acquired slab are done with, of Slab::rows in all.
  void Release(int slab, int64_t rows) {
    State& state = states_[static_cast<size_t>(slab)];
    if (state.stays) return KeepReading();
    const bool done = state.rows_left.fetch_sub(rows, std::memory_order_acq_rel) == rows;
    if (done || is_cache()) Free(slab, done);
  }
  // Collects what storage has delivered and starts the next reads, if there is something to stream. Workers that compute call
  // it now and then: storage would stand still while nobody waits for it. Any thread, at any time; costs little.
  void KeepReading() {
    if (ring_.size() > 0 && mutex_.try_lock()) {
      const std::lock_guard lock(mutex_, std::adopt_lock);
      CollectArrived();
    }
  }
  // Why Acquire returned null in this pass.
  Status status() const;

  // Begins to read a row that ReadRow is to be asked for soon: storage gives many at a time sooner than one
  // after another. Until then it takes page cache. Any thread.
  void ExpectRow(const Matrix& matrix, int64_t row) const { reader_->ExpectRow(matrix, row); }
  // One row of a matrix that is looked up, not multiplied with: read from storage. Any thread.
  Status ReadRow(const Matrix& matrix, int64_t row, std::span<std::byte> out) const {
    return reader_->ReadRow(matrix, row, out);
  }

  // Gives back at least `bytes` of pinned memory, or all there is, and streams those slabs from now on.
  // Between passes. Returns the bytes given back: 0 when nothing is left, or less than the ring that
  // streaming would take. Errors: kDoesNotFit when there is no room for that ring all the same.
  Result<uint64_t> GiveBack(uint64_t bytes);

  uint64_t pinned_bytes() const;    // now
  uint64_t streamed_bytes() const;  // weights that each pass reads
  // Share of the pinned weights that have been read: 1 when loading is over.
  double loaded_share() const;
  StoreStats stats() const;

 private:
  enum class Phase : uint8_t { kEmpty, kReading, kReady };
  struct State {
    std::atomic<Phase> phase{Phase::kEmpty};
    bool stays = true;                // pinned or mapped
    int extents_to_come = 0;
    int slot = -1;                    // in the ring
    int64_t last_use = 0;             // kLru: 0 since it was read
    int users = 0;                    // kLru: workers that have it
    std::atomic<int64_t> rows_left{0};
    std::array<const std::byte*, kMaxMatrices> data{};  // of each extent
  };
  // A place in the order of passes.
  struct Position {
    int64_t pass = 0;
    int round = 0;  // of the last operation
    int slab = 0;
  };

  WeightStore(const runtime::Context& context, const gguf::GgufFile& file, const Schedule& schedule,
              const StoreOptions& options)
      : context_(context), file_(file), schedule_(schedule), options_(options) {}
  // Whole blocks stay until they must make room: what is in use must not be dropped, so it is counted.
  bool is_cache() const { return options_.residency == Residency::kLru; }
  Status TakeMemory(const std::vector<bool>& pinned);
  Status TakeRing();
  Status MapFiles();

  // The bytes of all slabs that `counts` holds for.
  template <typename F>
  uint64_t BytesOf(F&& counts) const;

  const std::byte* const* AcquireSlowly(int slab);
  void CopyFromCache(int slab, State& state);
  void Free(int slab, bool done);

  void Relieve(uint64_t wanted, int operation);

  // All of these with mutex_ held.
  void ReadAhead();
  bool Begin(int slab, bool needed_now);
  int TakeSlot(bool needed_now);
  bool EvictBlock(bool also_unused);
  void Recycle(State& state);
  std::optional<Position> Next(Position position) const;
  void Collect(const io::IoCompletion& completion);
  void CollectOne(std::unique_lock<std::mutex>& lock);
  void CollectArrived();
  void Fail(Error error);
  void DropEverythingUnderWay(Position next);
  void StartReadingAt(Position position);
  Result<uint64_t> GiveBackAt(Position next, uint64_t bytes);
  std::vector<int> ChooseToGive(uint64_t bytes) const;
  uint64_t WholePagesOf(int slab) const;
  const gguf::Tensor& TensorOf(const Slab& slab, size_t extent) const;

  const runtime::Context& context_;
  const gguf::GgufFile& file_;
  const Schedule schedule_;
  const StoreOptions options_;
  std::vector<Slab> slabs_;
  std::vector<std::pair<int, int>> operations_;  // slabs of each
  std::vector<State> states_;                    // of each slab
  memory::Arena pinned_;
  MappedFiles mapped_;  // kMmap
  memory::Arena ring_;  // kPin: streamed slabs; kLru: the blocks that are held
  memory::Reservation page_cache_;  // that reads pass through, where it is emptied behind them
  uint64_t slot_bytes_ = 0;
  std::unique_ptr<SlabReader> reader_;
  bool copies_from_cache_ = false;  // the file is in the page cache: slabs that stay are copied by whoever needs them

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> free_slots_;
  Position next_read_;
  bool passed_ = false;             // next_read_ is seen to; the one after it is next, once it is known
  int64_t pass_ = -1;
  int output_rounds_ = 0;           // of pass_
  bool in_pass_ = false;
  int waiting_ = 0;                 // workers, for a slab
  bool somebody_waits_ = false;     // on the queue, with the mutex released
  std::optional<Error> failure_;    // of the pass under way
  int64_t uses_ = 0;                // kLru's clock
  std::vector<int64_t> block_uses_;  // kLru: scratch of EvictBlock, by block
  uint64_t relief_ = 0, relief_said_ = 0;  // bytes given under pressure; of which the log has been told
  bool no_relief_said_ = false;
  StoreStats stats_;
};

}  // namespace sluice::weights
