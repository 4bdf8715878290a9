// The weight store under every residency, over storage that behaves and storage that does not: what Acquire gives is
// what the file holds, and the counters show that reading and making room really happened.
#include "weights/weight_store.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <random>

#include "base/clock.h"
#include "weights/small_model.h"

namespace sluice::weights {
namespace {

using testing::HasSubstr;

// Storage as a test wants it: reads come back in another order, in pieces, or not at all.
struct FaultyStorage {
  bool arrives_early = false;  // reads may be over before anybody waits for them
  bool reorder = false;
  uint64_t longest_read = UINT64_MAX;  // in whole pages
  int failing_read = -1;               // the read with this number gives EIO
};

class FaultyQueue final : public io::IoQueue {
 public:
  explicit FaultyQueue(const FaultyStorage& storage) : storage_(storage) {}
  std::string_view name() const override { return "faulty"; }
  void Submit(const io::IoRead& read) override {
    const std::lock_guard lock(mutex_);
    reads_.push_back(read);
    arrived_.notify_one();
  }
  io::IoCompletion Wait() override {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !reads_.empty(); });
    return Complete();
  }
  std::optional<io::IoCompletion> Poll() override {
    const std::lock_guard lock(mutex_);
    if (!storage_.arrives_early || reads_.empty() || random_() % 2 == 0) return std::nullopt;
    return Complete();
  }

 private:
  io::IoCompletion Complete() {
    const size_t which = storage_.reorder ? random_() % reads_.size() : 0;
    const io::IoRead read = reads_[which];
    reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(which));
    if (count_++ == storage_.failing_read) return {read.tag, -EIO};
    const size_t size = std::min<uint64_t>(read.buffer.size(), storage_.longest_read);
    return {read.tag, read.file->PreadOnce(read.offset, read.buffer.first(size))};
  }

  const FaultyStorage storage_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<io::IoRead> reads_;
  std::mt19937 random_{1};
  int count_ = 0;
};

// A system that wants memory back before the operations with these numbers, counted over all passes.
class FakePressure final : public runtime::MemoryPressure {
 public:
  std::map<int, uint64_t> wants;  // bytes, by operation

  uint64_t WantedBytes() override {
    const auto found = wants.find(operations_++);
    return found == wants.end() ? 0 : found->second;
  }

 private:
  int operations_ = 0;
};

// A second passes with each look.
class SteppingClock final : public Clock {
 public:
  double NowSeconds() const override { return ++looks_; }
  int looks() const { return looks_; }

 private:
  mutable int looks_ = 0;
};

class WeightStoreTest : public testing::Test {
 protected:
  explicit WeightStoreTest(int threads = 3) : pool_(threads) {
    context_ = {.pool = &pool_, .ledger = &ledger_, .clock = &clock_};
  }

  // Small slabs and a ring of few of them, so that everything happens often.
  static StoreOptions Small(Residency residency, uint64_t pinned = 0) {
    return {.residency = residency, .pinned_bytes = pinned, .ring_bytes = 5 * 32'768, .lru_blocks = 2, .slab_bytes = 12'000,
            .read_bytes = 8192, .depth = 3};
  }

  // The same with slabs that are mostly pages of their own, which can be given back.
  StoreOptions Large(Residency residency) const {
    StoreOptions options = Small(residency, model_.size_bytes() * 4 / 5);
    options.slab_bytes = 48'000;
    options.ring_bytes = 5 * 65'536;
    return options;
  }

  std::unique_ptr<WeightStore> Make(const StoreOptions& options, const FaultyStorage* storage = nullptr) {
    auto store = storage == nullptr
                     ? WeightStore::Create(context_, model_.file(), model_.schedule(), options)
                     : WeightStore::Create(context_, model_.file(), model_.schedule(), options,
                                           std::make_unique<FaultyQueue>(*storage));
    EXPECT_TRUE(store) << store.error().message;
    return store ? *std::move(store) : nullptr;
  }

  // Walks through a pass with all workers, comparing every byte. `stop_at`: the operation before which it is abandoned.
  Status Pass(WeightStore& store, int output_rounds = 1, int stop_at = INT32_MAX) {
    SLUICE_TRY(store.BeginPass(output_rounds));
    const int output = static_cast<int>(model_.schedule().operations.size()) - 1;
    for (int operation = 0; operation < output + output_rounds; ++operation) {
      if (operation == stop_at) return {};
      SLUICE_TRY(Compute(store, std::min(operation, output)));
    }
    return store.EndPass();
  }

  Status Compute(WeightStore& store, int operation) {
    store.BeginOperation(operation);
    const int first = store.SlabsOf(operation).first, end = store.SlabsOf(operation).second;
    std::atomic<bool> failed{false};
    const auto work = [&](int64_t index, int64_t, int) {
      const int slab = first + static_cast<int>(index / 2);
      const Slab& about = store.slabs()[static_cast<size_t>(slab)];
      // Each slab is worked on in two parts.
      const int64_t half = about.rows / 2;
      const int64_t rows = index % 2 == 0 ? half : about.rows - half;
      if (rows == 0) return;
      const std::byte* const* extents = store.Acquire(slab);
      if (extents == nullptr) {
        failed = true;
        return;
      }
      for (int e = 0; e < about.n_extents; ++e) {
        const Extent& extent = about.extents[static_cast<size_t>(e)];
        EXPECT_EQ(std::memcmp(extents[e], model_.Expected(about, extent), extent.size_bytes), 0) << slab;
      }
      store.Release(slab, rows);
    };
    if (store.InOrder(operation)) {
      pool_.ParallelForInOrder(2 * (end - first), 1, work);
    } else {
      pool_.ParallelFor(2 * (end - first), 1, work);
    }
    return failed ? store.status() : Status();
  }

  void PassesHold(WeightStore& store) {
    for (const int rounds : {1, 0, 0, 3, 1, 2}) {
      const Status status = Pass(store, rounds);
      ASSERT_TRUE(status) << status.error().message;
    }
  }

  SmallModel model_{8};
  memory::Ledger ledger_{uint64_t{1} << 30};
  parallel::ThreadPool pool_;
  MonotonicClock clock_;
  runtime::Context context_;
};

TEST_F(WeightStoreTest, ResidentReadsEverythingOnce) {
  for (const PageCache page_cache : {PageCache::kPassBy, PageCache::kEmptyBehind, PageCache::kLeave}) {
    StoreOptions options = Small(Residency::kResident);
    options.page_cache = page_cache;
    const FaultyStorage storage;
    const auto store = Make(options, &storage);
    PassesHold(*store);
    EXPECT_EQ(store->loaded_share(), 1.0);
    EXPECT_EQ(store->streamed_bytes(), 0u);
    EXPECT_EQ(store->stats().slabs_evicted, 0u);
    EXPECT_LE(store->stats().bytes_read, model_.size_bytes() + store->slabs().size() * 3 * 8192);
  }
}

TEST_F(WeightStoreTest, WorkersWithNothingToDoWaitForStorageToo) {
  const SteppingClock clock;
  context_.clock = &clock;
  const FaultyStorage storage;  // whose reads arrive when somebody waits
  const auto store = Make(Small(Residency::kPin), &storage);
  ASSERT_TRUE(store->BeginPass(1));
  for (int slab = 0; slab < static_cast<int>(store->slabs().size()); ++slab) {
    ASSERT_NE(store->Acquire(slab), nullptr);
    store->Release(slab, store->slabs()[static_cast<size_t>(slab)].rows);
  }
  ASSERT_TRUE(store->EndPass());
  // This thread looks at the clock when it begins to wait and when it is done; the other two had nothing to do meanwhile.
  const int waits = clock.looks() / 2;
  EXPECT_GT(waits, 10);
  EXPECT_EQ(store->stats().stall_seconds, 3 * waits);
}

TEST_F(WeightStoreTest, PinReadsOnlyWhatIsNotPinned) {
  const auto store = Make(Small(Residency::kPin, model_.size_bytes() / 2));
  ASSERT_TRUE(Pass(*store));
  const uint64_t first = store->stats().bytes_read;
  PassesHold(*store);
  const uint64_t streamed = store->streamed_bytes();
  EXPECT_GT(streamed, model_.size_bytes() / 3);
  EXPECT_LT(streamed, model_.size_bytes() * 3 / 4);
  const StoreStats stats = store->stats();
  EXPECT_GT(stats.slabs_evicted, 0u);
  // Five passes have the output, one once, two twice or thrice: at most ten sweeps with page rounding.
  EXPECT_GT(stats.bytes_read - first, 5 * streamed / 2);
  EXPECT_LT(stats.bytes_read - first, 14 * streamed);
}

TEST_F(WeightStoreTest, EveryResidencyAndBackendGivesTheBytesOfTheFile) {
  for (const Residency residency : {Residency::kResident, Residency::kPin, Residency::kLru, Residency::kMmap}) {
    for (const io::IoBackend backend : {io::IoBackend::kAuto, io::IoBackend::kPread}) {
      for (const uint64_t pinned : {uint64_t{0}, model_.size_bytes() / 3, model_.size_bytes() * 9 / 10}) {
        for (const PageCache page_cache : {PageCache::kPassBy, PageCache::kEmptyBehind, PageCache::kLeave}) {
          SCOPED_TRACE(fmt::format("{} {} {}", ResidencyName(residency), pinned, static_cast<int>(page_cache)));
          StoreOptions options = Small(residency, pinned);
          options.backend = backend;
          options.page_cache = page_cache;
          const auto store = Make(options);
          PassesHold(*store);
          if (residency == Residency::kLru || (residency == Residency::kPin && pinned < model_.size_bytes() / 2)) {
            EXPECT_GT(store->stats().slabs_evicted, 0u);
            EXPECT_GT(store->stats().slabs_streamed, store->slabs().size());
          }
        }
      }
    }
  }
}

TEST_F(WeightStoreTest, AnLruThatHoldsAllBlocksReadsThemOnce) {
  StoreOptions options = Small(Residency::kLru);
  options.lru_blocks = 20;
  const auto store = Make(options);
  ASSERT_TRUE(Pass(*store));
  const uint64_t read = store->stats().bytes_read;
  PassesHold(*store);
  EXPECT_EQ(store->stats().bytes_read, read);
}

TEST_F(WeightStoreTest, StorageMayReorderAndGiveLess) {
  for (const Residency residency : {Residency::kResident, Residency::kPin, Residency::kLru}) {
    for (const bool early : {false, true}) {
      const FaultyStorage storage{.arrives_early = early, .reorder = true, .longest_read = 4096};
      const auto store = Make(Small(residency, model_.size_bytes() / 3), &storage);
      PassesHold(*store);
      if (residency != Residency::kResident) {
        EXPECT_GT(store->stats().short_reads, 0u);
      }
    }
  }
}

TEST_F(WeightStoreTest, AFailingReadNamesTheTensorAndTheNextPassTriesAgain) {
  const FaultyStorage storage{.failing_read = 20};
  const auto store = Make(Small(Residency::kPin, model_.size_bytes() / 3), &storage);
  Status status;
  for (int i = 0; i < 5 && status; ++i) status = Pass(*store);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_THAT(status.error().message, HasSubstr("reading tensor"));
  PassesHold(*store);
}

TEST_F(WeightStoreTest, AFileThatBecomesShorterIsAnError) {
  for (const Residency residency : {Residency::kPin, Residency::kMmap}) {
    SmallModel model(2);
    auto store = WeightStore::Create(context_, model.file(), model.schedule(), Small(residency));
    ASSERT_TRUE(store) << store.error().message;
    std::filesystem::resize_file(model.path(), std::filesystem::file_size(model.path()) / 2);
    Status status = (*store)->BeginPass(1);
    for (int slab = 0; status && slab < static_cast<int>((*store)->slabs().size()); ++slab) {
      if ((*store)->Acquire(slab) == nullptr) status = (*store)->status();
      if (status) (*store)->Release(slab, (*store)->slabs()[static_cast<size_t>(slab)].rows);
    }
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(status.error().message, HasSubstr("shorter"));
  }
}

TEST_F(WeightStoreTest, AMappedFileThatBecomesShorterInTheMiddleOfAPassIsAnError) {
  SmallModel model(2);
  auto store = WeightStore::Create(context_, model.file(), model.schedule(), Small(Residency::kMmap));
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->BeginPass(1));
  std::filesystem::resize_file(model.path(), std::filesystem::file_size(model.path()) / 2);
  unsigned sum = 0;
  for (int slab = 0; slab < static_cast<int>((*store)->slabs().size()); ++slab) {
    const Slab& about = (*store)->slabs()[static_cast<size_t>(slab)];
    const std::byte* const* extents = (*store)->Acquire(slab);
    ASSERT_NE(extents, nullptr);
    for (int e = 0; e < about.n_extents; ++e) {
      for (uint64_t i = 0; i < about.extents[static_cast<size_t>(e)].size_bytes; ++i)
        sum += std::to_integer<unsigned>(extents[e][i]);
    }
    (*store)->Release(slab, about.rows);
  }
  EXPECT_GT(sum, 0u);
  for (const Status& status : {(*store)->EndPass(), (*store)->BeginPass(1)}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(status.error().message, HasSubstr("shorter"));
  }
}

TEST_F(WeightStoreTest, WorkersThatComputeKeepStorageBusy) {
  const FaultyStorage storage{.arrives_early = true};
  const auto store = Make(Small(Residency::kPin, model_.size_bytes() / 2), &storage);
  ASSERT_TRUE(Pass(*store));
  // Nobody takes a slab, and yet those to come arrive until the ring is full.
  for (int i = 0; i < 100; ++i) store->KeepReading();
  const uint64_t slots = ledger_.Snapshot().used(memory::Account::kWeightsStream) /
                         SlotBytes({store->slabs().begin(), store->slabs().end()});
  EXPECT_EQ(store->stats().slabs_streamed - store->stats().slabs_evicted, slots);
}

TEST_F(WeightStoreTest, AnAbandonedPassLeavesNothingBehind) {
  for (const Residency residency : {Residency::kResident, Residency::kPin, Residency::kLru}) {
    const auto store = Make(Small(residency, model_.size_bytes() / 3));
    for (int stop = 0; stop < 12; ++stop) {
      ASSERT_TRUE(Pass(*store, 1, stop));
      ASSERT_TRUE(Pass(*store, stop % 3));
    }
  }
}

TEST_F(WeightStoreTest, PinnedMemoryIsGivenBackAndStreamedInstead) {
  for (const Residency residency : {Residency::kResident, Residency::kPin}) {
    const auto store = Make(Small(residency, model_.size_bytes() * 4 / 5));
    ASSERT_TRUE(Pass(*store));
    const uint64_t used = ledger_.Snapshot().total_bytes();
    const uint64_t pinned = store->pinned_bytes();
    const auto given = store->GiveBack(model_.size_bytes() / 3);
    ASSERT_TRUE(given) << given.error().message;
    EXPECT_GE(*given, model_.size_bytes() / 4);
    EXPECT_EQ(ledger_.Snapshot().total_bytes(), used - *given);
    EXPECT_LT(store->pinned_bytes(), pinned);
    PassesHold(*store);
    ASSERT_TRUE(store->GiveBack(UINT64_MAX));
    EXPECT_EQ(store->pinned_bytes(), 0u);
    PassesHold(*store);
  }
}

TEST_F(WeightStoreTest, UnderPressureMemoryIsGivenBackBeforeAnyOperationOfAPass) {
  const int operations = static_cast<int>(model_.schedule().operations.size());
  std::vector<std::string> said;
  context_.log = Logger([&](LogLevel, const std::string& text) { said.push_back(text); });
  for (const Residency residency : {Residency::kResident, Residency::kPin}) {
    // In the first pass, which also fills the memory, and in the one after it.
    for (int when = 0; when < 2 * operations; when += 5) {
      SCOPED_TRACE(fmt::format("{} {}", ResidencyName(residency), when));
      FakePressure pressure;
      pressure.wants = {{when, model_.size_bytes() / 8}, {when + 3, model_.size_bytes() / 8}};
      context_.pressure = &pressure;
      said.clear();
      const auto store = Make(Large(residency));
      const uint64_t pinned = store->pinned_bytes();
      PassesHold(*store);
      // Before the output nothing is given: it may be one of several rounds.
      if (when % operations == operations - 1) continue;
      EXPECT_LE(store->pinned_bytes(), pinned - model_.size_bytes() / 8);
      EXPECT_GE(store->pinned_bytes(), pinned - model_.size_bytes() / 2);
      EXPECT_GT(store->stats().slabs_evicted, 0u);
      ASSERT_FALSE(said.empty());
      EXPECT_THAT(said[0], HasSubstr("streamed from storage from now on"));
    }
  }
  context_.pressure = nullptr;
}

TEST_F(WeightStoreTest, PressureThatGoesOnTakesAllAndIsSaidAFewTimes) {
  FakePressure pressure;
  for (int operation = 0; operation < 1000; ++operation) pressure.wants[operation] = 20'000;
  std::vector<std::string> said;
  context_.pressure = &pressure;
  context_.log = Logger([&](LogLevel, const std::string& text) { said.push_back(text); });
  const auto store = Make(Large(Residency::kPin));
  for (int i = 0; i < 6; ++i) PassesHold(*store);
  EXPECT_EQ(store->pinned_bytes(), 0u);
  ASSERT_GE(said.size(), 2u);
  EXPECT_LE(said.size(), 10u);
  EXPECT_THAT(said.back(), HasSubstr("no weights left"));
  // Streaming goes on undisturbed: nothing is read twice in a pass.
  const uint64_t before = store->stats().slabs_streamed;
  ASSERT_TRUE(Pass(*store));
  EXPECT_LE(store->stats().slabs_streamed - before, store->slabs().size() + 5);
  context_.pressure = nullptr;
}

TEST_F(WeightStoreTest, NothingIsGivenBackWhereItIsOfNoUse) {
  FakePressure pressure;
  for (int operation = 0; operation < 1000; ++operation) pressure.wants[operation] = UINT64_MAX;
  context_.pressure = &pressure;
  for (const Residency residency : {Residency::kResident, Residency::kLru, Residency::kMmap}) {
    StoreOptions options = Small(residency);
    // Streaming would take a larger ring than all weights are.
    if (residency == Residency::kResident) options.ring_bytes = 2 * model_.size_bytes();
    const auto store = Make(options);
    const uint64_t used = ledger_.Snapshot().total_bytes(), pinned = store->pinned_bytes();
    PassesHold(*store);
    EXPECT_EQ(ledger_.Snapshot().total_bytes(), used);
    EXPECT_EQ(store->pinned_bytes(), pinned);
  }
  context_.pressure = nullptr;
}

TEST_F(WeightStoreTest, TheFootprintIsWhatTheLedgerIsCharged) {
  for (const Residency residency : {Residency::kResident, Residency::kPin, Residency::kLru, Residency::kMmap}) {
    for (const PageCache page_cache : {PageCache::kPassBy, PageCache::kEmptyBehind, PageCache::kLeave}) {
      StoreOptions options = Small(residency, model_.size_bytes() / 3);
      options.page_cache = page_cache;
      const Footprint footprint = PlanFootprint(model_.schedule(), options);
      const auto store = Make(options);
      const memory::LedgerSnapshot ledger = ledger_.Snapshot();
      EXPECT_EQ(ledger.used(memory::Account::kWeightsPinned), footprint.pinned_bytes);
      EXPECT_EQ(ledger.used(memory::Account::kWeightsStream), footprint.ring_bytes);
      EXPECT_EQ(ledger.used(memory::Account::kIo), footprint.io_bytes);
      EXPECT_EQ(store->streamed_bytes(), footprint.streamed_bytes);
    }
  }
}

TEST_F(WeightStoreTest, ARingForTooFewSlabsIsRefused) {
  StoreOptions options = Small(Residency::kPin);
  options.ring_bytes = 40'000;
  const auto store = WeightStore::Create(context_, model_.file(), model_.schedule(), options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(WeightStoreTest, TooSmallABudgetIsRefused) {
  memory::Ledger small(100'000);
  runtime::Context context = context_;
  context.ledger = &small;
  const auto store = WeightStore::Create(context, model_.file(), model_.schedule(), Small(Residency::kResident));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(small.Snapshot().total_bytes(), 0u);
}

}  // namespace
}  // namespace sluice::weights
