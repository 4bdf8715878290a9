#include "weights/weight_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace sluice::weights {

namespace {

constexpr uint64_t kPage = platform::File::kDirectAlignment;
// With fewer, workers wait for one another instead of for storage.
constexpr uint64_t kFewestSlots = 4;

}  // namespace

Result<std::unique_ptr<WeightStore>> WeightStore::Create(const runtime::Context& context, const gguf::GgufFile& file,
                                                         const Schedule& schedule, const StoreOptions& options) {
  SLUICE_TRY_ASSIGN(auto queue, io::CreateIoQueue(options.backend, options.depth));
  return Create(context, file, schedule, options, std::move(queue));
}

Result<std::unique_ptr<WeightStore>> WeightStore::Create(const runtime::Context& context, const gguf::GgufFile& file,
                                                         const Schedule& schedule, const StoreOptions& options,
                                                         std::unique_ptr<io::IoQueue> queue) {
  SLUICE_CHECK(schedule.operations.size() >= 2);
  std::unique_ptr<WeightStore> store(new WeightStore(context, file, schedule, options));
  store->slabs_ = CutSlabs(schedule, options.slab_bytes);
  if (store->is_cache()) store->block_uses_.resize(static_cast<size_t>(store->slabs_.back().block) + 1);
  store->operations_.assign(schedule.operations.size(), {0, 0});
  for (size_t i = 0; i < store->slabs_.size(); ++i) {
    auto& [first, end] = store->operations_[static_cast<size_t>(store->slabs_[i].operation)];
    if (end == 0) first = static_cast<int>(i);
    end = static_cast<int>(i) + 1;
  }
  store->states_ = std::vector<State>(store->slabs_.size());
  SLUICE_TRY_ASSIGN(store->reader_,
                    SlabReader::Create(file,
                                       {.block_bytes = options.read_bytes,
                                        .depth = options.depth,
                                        .page_cache = options.page_cache},
                                       std::move(queue)));
  if (options.residency == Residency::kMmap) {
    SLUICE_TRY(store->MapFiles());
    return store;
  }
  SLUICE_TRY_ASSIGN(store->page_cache_, memory::Reservation::Take(*context.ledger, memory::Account::kIo,
                                                                  BufferedBytes(store->slabs_, options)));
  SLUICE_TRY(store->TakeMemory(ChooseStaying(store->slabs_, options)));
  store->copies_from_cache_ = store->reader_->MostlyInPageCache(store->slabs_);
  // What opening the model has left there would stay charged to this process.
  if (!store->copies_from_cache_ && options.page_cache != PageCache::kLeave) store->reader_->DropFromPageCache();
  return store;
}

WeightStore::~WeightStore() {
  // Reads under way still write into the memory that is given back here.
  std::unique_lock lock(mutex_);
  while (reader_ != nullptr && reader_->reads_under_way() > 0) CollectOne(lock);
}

Status WeightStore::TakeMemory(const std::vector<bool>& pinned) {
  const ArenaLayout layout = LayOutArena(slabs_, pinned);
  SLUICE_TRY_ASSIGN(pinned_, memory::Arena::Create(layout.size_bytes, memory::Account::kWeightsPinned, *context_.ledger,
                                                   {.page_size = platform::PageSize::kHuge}));
  std::byte* const base = layout.size_bytes == 0 ? nullptr : pinned_.Allocate(layout.size_bytes, kPage).data();
  bool streams = false;
  for (size_t i = 0; i < slabs_.size(); ++i) {
    State& state = states_[i];
    state.stays = pinned[i];
    streams |= !state.stays;
    if (!state.stays) continue;
    for (size_t e = 0; e < static_cast<size_t>(slabs_[i].n_extents); ++e) state.data[e] = base + layout.offsets[i][e];
  }
  return streams ? TakeRing() : Status();
}

Status WeightStore::TakeRing() {
  slot_bytes_ = SlotBytes(slabs_);
  const uint64_t size = RingBytes(slabs_, options_);
  const uint64_t slots = size / slot_bytes_;
  if (slots < kFewestSlots) {
    return sluice::Fail(ErrorCode::kInvalidArgument, "a ring of {} has room for {} slabs of {}; it takes at least {}",
                        FormatBytes(options_.ring_bytes), slots, FormatBytes(slot_bytes_),
                        FormatBytes(kFewestSlots * slot_bytes_));
  }
  SLUICE_TRY_ASSIGN(ring_, memory::Arena::Create(size, memory::Account::kWeightsStream, *context_.ledger,
                                                 {.page_size = platform::PageSize::kHuge, .touch = true}));
  for (int slot = static_cast<int>(slots) - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  return {};
}

Status WeightStore::MapFiles() {
  SLUICE_TRY_ASSIGN(mapped_, MappedFiles::Open(file_));
  for (size_t i = 0; i < slabs_.size(); ++i) {
    for (size_t e = 0; e < static_cast<size_t>(slabs_[i].n_extents); ++e)
      states_[i].data[e] = mapped_.At(slabs_[i].extents[e]);
    states_[i].phase = Phase::kReady;
  }
  return {};
}

bool WeightStore::InOrder(int operation) const {
  const auto [first, end] = SlabsOf(operation);
  for (int slab = first; slab < end; ++slab) {
    if (!states_[static_cast<size_t>(slab)].stays) return true;
  }
  return false;
}

Status WeightStore::BeginPass(int output_rounds) {
  if (!mapped_.empty()) return mapped_.Check();
  const std::lock_guard lock(mutex_);
  if (in_pass_ || failure_) DropEverythingUnderWay({pass_ + 1, 0, 0});
  ++pass_;
  output_rounds_ = output_rounds;
  in_pass_ = true;
  if (next_read_.pass < pass_) StartReadingAt({pass_, 0, 0});
  ReadAhead();
  return {};
}

Status WeightStore::EndPass() {
  if (!mapped_.empty()) return mapped_.Check();
  const std::lock_guard lock(mutex_);
  in_pass_ = false;
  return {};
}

Status WeightStore::status() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? Status(*failure_) : Status();
}

const std::byte* const* WeightStore::AcquireSlowly(int slab) {
  State& state = states_[static_cast<size_t>(slab)];
  if (copies_from_cache_ && state.stays) {
    Phase empty = Phase::kEmpty;
    if (state.phase.compare_exchange_strong(empty, Phase::kReading)) CopyFromCache(slab, state);
  }
  std::unique_lock lock(mutex_);
  if (state.phase == Phase::kReady) {
    ++state.users;
    return state.data.data();
  }
  const double start = context_.clock->NowSeconds();
  const int idle_before = context_.pool->idle_workers();
  ++waiting_;
  while (state.phase != Phase::kReady && !failure_) {
    ReadAhead();
    // A cache may have dropped what was there when reading passed it by.
    if (is_cache() && state.phase == Phase::kEmpty && reader_->CanStart())
      static_cast<void>(Begin(slab, true));
    if (!somebody_waits_ && reader_->reads_under_way() > 0) {
      CollectOne(lock);
    } else {
      changed_.wait(lock);
    }
  }
  // Who has nothing left of an operation waits for its last slab, too; about so many did, for one of those that wait here.
  const double idle = (idle_before + context_.pool->idle_workers()) / 2.0 / waiting_--;
  stats_.stall_seconds += (context_.clock->NowSeconds() - start) * (1 + idle);
  ++state.users;
  return failure_ ? nullptr : state.data.data();
}

void WeightStore::CopyFromCache(int slab, State& state) {
  const Slab& about = slabs_[static_cast<size_t>(slab)];
  Status status;
  for (size_t e = 0; e < static_cast<size_t>(about.n_extents) && status; ++e) {
    status = reader_->Copy(about.extents[e], TensorOf(about, e), const_cast<std::byte*>(state.data[e]));
  }
  const std::lock_guard lock(mutex_);
  if (status) {
    state.phase.store(Phase::kReady, std::memory_order_release);
  } else {
    state.phase = Phase::kEmpty;
    Fail(std::move(status).error());
  }
  changed_.notify_all();
}

// Called when the last rows of a streamed slab are done with; of one that may stay (kLru) after all of them.
void WeightStore::Free(int slab, bool done) {
  const std::lock_guard lock(mutex_);
  State& state = states_[static_cast<size_t>(slab)];
  --state.users;
  if (done) {
    state.rows_left = slabs_[static_cast<size_t>(slab)].rows;
    state.last_use = ++uses_;
    if (!is_cache()) Recycle(state);
  }
  CollectArrived();
  changed_.notify_all();
}

// Starts reads in the order of the schedule, as long as the storage's queue and the ring have room.
void WeightStore::ReadAhead() {
  while (reader_->CanStart() && !failure_) {
    if (passed_) {
      const std::optional<Position> next = Next(next_read_);
      if (!next) return;
      next_read_ = *next;
      passed_ = false;
    }
    State& state = states_[static_cast<size_t>(next_read_.slab)];
    if (state.phase == Phase::kEmpty) {
      const bool by_copying = copies_from_cache_ && state.stays;
      if (!by_copying && !Begin(next_read_.slab, false)) return;
    } else if (!state.stays && !is_cache()) {
      return;  // still needed for what it was read for last
    }
    passed_ = true;
  }
}

// Nothing when it depends on a pass that has not begun.
std::optional<WeightStore::Position> WeightStore::Next(Position position) const {
  const auto [output, end] = operations_.back();
  ++position.slab;
  const int rounds = position.pass <= pass_ ? output_rounds_ : -1;
  if (position.slab == output) {
    if (rounds < 0) return std::nullopt;
    if (rounds == 0) return Position{position.pass + 1, 0, 0};
  }
  if (position.slab == end) {
    if (++position.round < rounds) return Position{position.pass, position.round, output};
    return Position{position.pass + 1, 0, 0};
  }
  return position;
}

// Starts reading a slab that is not there; false when the ring has no room.
bool WeightStore::Begin(int slab, bool needed_now) {
  const Slab& about = slabs_[static_cast<size_t>(slab)];
  State& state = states_[static_cast<size_t>(slab)];
  std::byte* next = nullptr;
  if (!state.stays) {
    state.slot = TakeSlot(needed_now);
    if (state.slot < 0) return false;
    next = ring_.bytes().data() + static_cast<size_t>(state.slot) * slot_bytes_;
  }
  state.phase = Phase::kReading;
  state.extents_to_come = about.n_extents;
  state.rows_left = about.rows;
  state.last_use = 0;
  state.users = 0;
  for (size_t e = 0; e < static_cast<size_t>(about.n_extents); ++e) {
    const Extent& extent = about.extents[e];
    const uint64_t into_page = extent.offset % kPage;
    const uint64_t size = AlignUp(into_page + extent.size_bytes, kPage);
    if (!state.stays) {
      state.data[e] = next + into_page;
      next += size;
    }
    reader_->Start(extent, TensorOf(about, e), {const_cast<std::byte*>(state.data[e]) - into_page, size},
                   slab * kMaxMatrices + static_cast<int>(e));
  }
  return true;
}

const gguf::Tensor& WeightStore::TensorOf(const Slab& slab, size_t extent) const {
  const Operation& operation = schedule_.operations[static_cast<size_t>(slab.operation)];
  return *operation.matrices[static_cast<size_t>(slab.extents[extent].matrix)].tensor;
}

int WeightStore::TakeSlot(bool needed_now) {
  // What was read ahead goes only when nothing else can, for a slab that somebody waits for.
  if (free_slots_.empty() && !(is_cache() &&
                               (EvictBlock(false) || (needed_now && EvictBlock(true))))) {
    return -1;
  }
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

// Drops the block that was used longest ago, of those with nothing in use or on the way, and with nothing that was read
// and not used yet, unless `also_unused`.
bool WeightStore::EvictBlock(bool also_unused) {
  std::vector<int64_t>& last_use = block_uses_;
  std::ranges::fill(last_use, 0);
  for (size_t i = 0; i < slabs_.size(); ++i) {
    const State& state = states_[i];
    if (state.phase == Phase::kEmpty) continue;
    int64_t& use = last_use[static_cast<size_t>(slabs_[i].block)];
    const bool idle = state.phase == Phase::kReady && state.users == 0 && (also_unused || state.last_use > 0);
    use = idle && use >= 0 ? std::max(use, state.last_use + 1) : -1;
  }
  int oldest = -1;
  for (int block = 0; block < static_cast<int>(last_use.size()); ++block) {
    const int64_t use = last_use[static_cast<size_t>(block)];
    if (use > 0 && (oldest < 0 || use < last_use[static_cast<size_t>(oldest)])) oldest = block;
  }
  if (oldest < 0) return false;
  for (size_t i = 0; i < slabs_.size(); ++i) {
    if (slabs_[i].block == oldest && states_[i].phase == Phase::kReady) Recycle(states_[i]);
  }
  return true;
}

void WeightStore::Recycle(State& state) {
  state.phase = Phase::kEmpty;
  free_slots_.push_back(std::exchange(state.slot, -1));
  ++stats_.slabs_evicted;
}

// Waits for a read, with the mutex released.
void WeightStore::CollectOne(std::unique_lock<std::mutex>& lock) {
  somebody_waits_ = true;
  lock.unlock();
  const io::IoCompletion completion = reader_->WaitForOne();
  lock.lock();
  somebody_waits_ = false;
  Collect(completion);
  changed_.notify_all();
}

// Collects what has arrived, unless somebody waits for it and will, and starts reading what there is room for.
void WeightStore::CollectArrived() {
  bool collected = false;
  while (!somebody_waits_ && reader_->reads_under_way() > 0) {
    const std::optional<io::IoCompletion> completion = reader_->Poll();
    if (!completion) break;
    Collect(*completion);
    collected = true;
  }
  ReadAhead();
  if (collected) changed_.notify_all();
}

void WeightStore::Collect(const io::IoCompletion& completion) {
  const Result<int> finished = reader_->Finish(completion);
  if (!finished) return Fail(finished.error());
  if (*finished < 0) return;
  const int slab = *finished / kMaxMatrices;
  State& state = states_[static_cast<size_t>(slab)];
  if (--state.extents_to_come > 0) return;
  if (!state.stays) ++stats_.slabs_streamed;
  state.phase.store(Phase::kReady, std::memory_order_release);
}

void WeightStore::Fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

// What is on the way arrives, what was streamed goes, and reading goes on at `next`. Nothing is in use.
void WeightStore::DropEverythingUnderWay(Position next) {
  while (reader_->reads_under_way() > 0) Collect(reader_->WaitForOne());
  for (State& state : states_) {
    if (state.phase == Phase::kReady && state.stays) continue;
    state.phase = Phase::kEmpty;
    if (state.slot >= 0) free_slots_.push_back(std::exchange(state.slot, -1));
  }
  failure_.reset();
  StartReadingAt(next);
}

void WeightStore::StartReadingAt(Position position) {
  next_read_ = position;
  passed_ = false;
}

void WeightStore::Relieve(uint64_t wanted, int operation) {
  const std::lock_guard lock(mutex_);
  // The output is run several times in a pass; and what has failed is about to end the pass.
  if (failure_ || operation + 1 == static_cast<int>(operations_.size())) return;
  const Result<uint64_t> given = GiveBackAt({pass_, 0, SlabsOf(operation).first}, wanted);
  if (given && *given > 0) {
    relief_ += *given;
    // Under pressure that goes on, as often as it doubles.
    if (relief_ < 2 * relief_said_) return;
    relief_said_ = relief_;
    context_.log.Warn(
        "memory is short on this system: {} of weights are given back and streamed from storage from now "
        "on, {} stay",
        FormatBytes(relief_), FormatBytes(BytesOf([](const State& s) { return s.stays; })));
  } else if (!std::exchange(no_relief_said_, true)) {
    context_.log.Warn("memory is short on this system, and there are no weights {} to give back",
                      relief_ > 0 ? "left" : "in memory that would be of use");
  }
}

Result<uint64_t> WeightStore::GiveBack(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  SLUICE_CHECK(!in_pass_ || failure_);
  return GiveBackAt({pass_ + 1, 0, 0}, bytes);
}

Result<uint64_t> WeightStore::GiveBackAt(Position next, uint64_t bytes) {
  if (!mapped_.empty()) return uint64_t{0};
  const uint64_t ring = ring_.size() == 0 ? RingBytes(slabs_, options_) : 0;
  if (ring > 0 && ring < kFewestSlots * SlotBytes(slabs_)) return uint64_t{0};
  const std::vector<int> chosen = ChooseToGive(bytes > UINT64_MAX - ring ? bytes : bytes + ring);
  uint64_t expected = 0;
  for (const int slab : chosen) expected += WholePagesOf(slab);
  if (expected <= ring) return uint64_t{0};
  DropEverythingUnderWay(next);
  uint64_t given = 0;
  for (const int slab : chosen) {
    const Slab& about = slabs_[static_cast<size_t>(slab)];
    State& state = states_[static_cast<size_t>(slab)];
    for (size_t e = 0; e < static_cast<size_t>(about.n_extents); ++e)
      given += pinned_.GiveBack({state.data[e], static_cast<size_t>(about.extents[e].size_bytes)});
    state.stays = false;
    state.phase = Phase::kEmpty;
  }
  // Memory is given before it is taken: there may be none left beside.
  if (ring > 0) SLUICE_TRY(TakeRing());
  return given - ring;
}

// Slabs that give `bytes`, or all that stay: spread over the pass, so that computing on the others hides
// their reads.
std::vector<int> WeightStore::ChooseToGive(uint64_t bytes) const {
  const int count = static_cast<int>(slabs_.size());
  const auto stays = [&](int slab) { return states_[static_cast<size_t>(slab)].stays; };
  uint64_t total = 0;
  for (int slab = 0; slab < count; ++slab) total += stays(slab) ? WholePagesOf(slab) : 0;
  const double share =
      total == 0 ? 1 : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(total));
  std::vector<int> chosen;
  uint64_t passed_by = 0, given = 0;
  for (int slab = 0; slab < count; ++slab) {
    if (!stays(slab)) continue;
    passed_by += WholePagesOf(slab);
    if (share < 1 && static_cast<double>(given) >= share * static_cast<double>(passed_by)) continue;
    chosen.push_back(slab);
    given += WholePagesOf(slab);
  }
  return chosen;
}

// What giving a pinned slab back frees: the pages that it has to itself.
uint64_t WeightStore::WholePagesOf(int slab) const {
  const Slab& about = slabs_[static_cast<size_t>(slab)];
  uint64_t bytes = 0;
  for (size_t e = 0; e < static_cast<size_t>(about.n_extents); ++e) {
    const uint64_t end = about.extents[e].offset + about.extents[e].size_bytes;
    const uint64_t first_page = AlignUp(about.extents[e].offset, kPage);
    if (end / kPage * kPage > first_page) bytes += end / kPage * kPage - first_page;
  }
  return bytes;
}

template <typename F>
uint64_t WeightStore::BytesOf(F&& counts) const {
  uint64_t total = 0;
  for (size_t i = 0; i < slabs_.size(); ++i) total += counts(states_[i]) ? slabs_[i].size_bytes() : 0;
  return total;
}

uint64_t WeightStore::pinned_bytes() const {
  const std::lock_guard lock(mutex_);
  return BytesOf([](const State& state) { return state.stays; });
}

uint64_t WeightStore::streamed_bytes() const {
  const std::lock_guard lock(mutex_);
  return BytesOf([](const State& state) { return !state.stays; });
}

double WeightStore::loaded_share() const {
  const std::lock_guard lock(mutex_);
  const uint64_t pinned = BytesOf([](const State& state) { return state.stays; });
  const uint64_t loaded = BytesOf([](const State& state) { return state.stays && state.phase == Phase::kReady; });
  return pinned == 0 ? 1.0 : static_cast<double>(loaded) / static_cast<double>(pinned);
}

StoreStats WeightStore::stats() const {
  const std::lock_guard lock(mutex_);
  StoreStats stats = stats_;
  stats.bytes_read = reader_->stats().bytes;
  stats.reads = reader_->stats().reads;
  stats.short_reads = reader_->stats().short_reads;
  return stats;
}

}  // namespace sluice::weights
