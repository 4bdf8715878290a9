// Where weights live changes no bit: the logits of a model whose weights are all in memory, and of the same
// streamed through a ring of a few slabs, in every residency, over both ways of reading, with the counters to
// prove it.
#include <gtest/gtest.h>

#include "model/golden_files.h"
#include "model/runner.h"

namespace sluice::model {
namespace {

struct Case {
  const char* name;
  weights::StoreOptions store;
  bool streams;
};

constexpr weights::StoreOptions Small(weights::Residency residency, uint64_t pinned, io::IoBackend backend,
                                      weights::PageCache page_cache) {
  return {.residency = residency,
          .pinned_bytes = pinned,
          .ring_bytes = 256 * 1024,
          .lru_blocks = 2,
          .slab_bytes = 24 * 1024,
          .depth = 3,
          .backend = backend,
          .page_cache = page_cache};
}

using enum weights::Residency;
using weights::PageCache;
const Case kCases[] = {
    {"pinned_in_part", Small(kPin, 400'000, io::IoBackend::kAuto, PageCache::kPassBy), true},
    {"nothing_pinned", Small(kPin, 0, io::IoBackend::kAuto, PageCache::kPassBy), true},
    {"threads", Small(kPin, 200'000, io::IoBackend::kPread, PageCache::kPassBy), true},
    {"buffered", Small(kPin, 200'000, io::IoBackend::kAuto, PageCache::kEmptyBehind), true},
    {"lru", Small(kLru, 0, io::IoBackend::kAuto, PageCache::kPassBy), true},
    {"mapped", Small(kMmap, 0, io::IoBackend::kAuto, PageCache::kPassBy), false},
};

class StreamingTest : public testing::TestWithParam<GoldenFile> {};

TEST_P(StreamingTest, LogitsAreThoseOfResidentWeights) {
  std::string missing;
  const std::string path = GetParam().Path(&missing);
  if (path.empty()) GTEST_SKIP() << missing;
  const std::vector<int> ids{1, 5, 3, 9, 2, 8, 4, 7, 6, 1, 5, 3, 9, 2, 8, 4, 7, 6, 11, 12, 13};
  const auto resident = Runner::Open(path);
  ASSERT_NE(resident, nullptr);
  const std::vector<float> expected = resident->Logits(ids);
  for (const Case& about : kCases) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(about.name);
      const auto streamed = Runner::Open(path, {.threads = threads, .store = about.store});
      ASSERT_NE(streamed, nullptr);
      for (const int64_t chunk : {1, 20}) EXPECT_EQ(streamed->Logits(ids, chunk), expected);
      const weights::StoreStats stats = streamed->model().store().stats();
      if (about.streams) {
        EXPECT_GT(stats.slabs_evicted, streamed->model().store().slabs().size());
        EXPECT_GT(stats.bytes_read, streamed->model().store().streamed_bytes() * ids.size());
      }
    }
  }
}

// Memory is wanted back again and again, before any operation.
class RestlessSystem final : public runtime::MemoryPressure {
 public:
  uint64_t WantedBytes() override { return ++operations_ % 7 == 0 ? 20'000 : 0; }

 private:
  int operations_ = 0;
};

TEST_P(StreamingTest, LogitsAreTheSameWhileMemoryIsGivenBack) {
  std::string missing;
  const std::string path = GetParam().Path(&missing);
  if (path.empty()) GTEST_SKIP() << missing;
  const std::vector<int> ids{1, 5, 3, 9, 2, 8, 4, 7, 6, 1, 5, 3, 9, 2, 8, 4, 7, 6, 11, 12, 13};
  const auto resident = Runner::Open(path);
  ASSERT_NE(resident, nullptr);
  const std::vector<float> expected = resident->Logits(ids);
  for (const weights::Residency residency : {kResident, kPin}) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(weights::ResidencyName(residency));
      RestlessSystem pressure;
      const auto runner =
          Runner::Open(path, {.threads = threads,
                              .store = Small(residency, 600'000, io::IoBackend::kAuto, PageCache::kPassBy),
                              .pressure = &pressure});
      ASSERT_NE(runner, nullptr);
      const weights::WeightStore& store = runner->model().store();
      const uint64_t pinned = store.pinned_bytes();
      EXPECT_EQ(runner->Logits(ids, 1), expected);
      EXPECT_LT(store.pinned_bytes(), pinned / 2);
      EXPECT_GT(store.stats().slabs_evicted, store.slabs().size());
    }
  }
}

// One type of each family of blocks; rows of an odd number of super-blocks lie at odd offsets.
INSTANTIATE_TEST_SUITE_P(Types, StreamingTest,
                         testing::Values(GoldenFile{"synth/Q4_K/256"}, GoldenFile{"synth/Q8_0/32"},
                                         GoldenFile{"synth/F16/32"}, GoldenFile{"synth/Q6_K/256"}),
                         [](const auto& test) { return test.param.TestName(); });

}  // namespace
}  // namespace sluice::model
