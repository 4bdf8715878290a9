// The same tokens everywhere: one hash of the logits for each file, whatever the kernels, the threads, the way the
// prompt is cut, and the company in the batch. The hashes are frozen in data/golden_hashes.txt; they were made on x86
// and hold on ARM. A file that has no hash there yet fails, printing the line to add.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/hash.h"
#include "model/golden_files.h"
#include "model/runner.h"

namespace sluice::model {
namespace {

constexpr size_t kPromptTokens = 96;

const std::map<std::string, uint64_t>& Golden() {
  static const std::map<std::string, uint64_t> hashes = [] {
    std::map<std::string, uint64_t> read;
    std::ifstream in(SLUICE_SOURCE_DIR "/tests/model/data/golden_hashes.txt");
    std::string name, hash;
    while (in >> name >> hash) read[name] = std::stoull(hash, nullptr, 16);
    return read;
  }();
  return hashes;
}

// Ids that are the same everywhere and wander through the whole vocabulary.
std::vector<int> Ids(int64_t vocab_size, size_t count, uint64_t seed) {
  std::vector<int> ids;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<int>((seed >> 33) % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

class GoldenTest : public testing::TestWithParam<GoldenFile> {
 protected:
  void SetUp() override {
    std::string missing;
    path_ = GetParam().Path(&missing);
    if (path_.empty()) GTEST_SKIP() << missing;
  }

  uint64_t HashOf(const RunnerOptions& options, int64_t chunk, size_t tokens = kPromptTokens) {
    const auto runner = Runner::Open(path_, options);
    if (runner == nullptr) return 0;
    return HashFloats(runner->Logits(Ids(runner->model().config().vocab_size, tokens, 1), chunk));
  }

  std::string path_;
};

TEST_P(GoldenTest, OneHashForEveryTableOfKernels) {
  const auto golden = Golden().find(GetParam().name);
  int tables = 0;
  for (const kernels::Kernels* table : kernels::AllKernels()) {
    if (!table->supported(platform::DetectCpuFeatures())) continue;
    const uint64_t hash = HashOf({.threads = 2, .kernels = table->name}, 512);
    ASSERT_NE(golden, Golden().end()) << "no frozen hash; add this line:\n"
                                      << GetParam().name << " " << fmt::format("{:016x}", hash);
    EXPECT_EQ(hash, golden->second) << table->name << " gives " << fmt::format("{:016x}", hash);
    ++tables;
  }
  RecordProperty("tables", tables);
}

TEST_P(GoldenTest, OneHashHoweverThePromptIsCut) {
  const uint64_t expected = HashOf({.threads = 2}, 512);
  EXPECT_EQ(HashOf({.threads = 1}, 512), expected) << "one thread";
  EXPECT_EQ(HashOf({.threads = 3}, 64), expected) << "three threads, chunks of 64";
  EXPECT_EQ(HashOf({.threads = 2}, 7), expected) << "chunks of 7";
  EXPECT_EQ(HashOf({.threads = 2}, 1), expected) << "token by token";
}

// Quantised caches: one hash for each pair of types, over tables, threads and cuts. Their lines in
// golden_hashes.txt are those of the file with the pair behind it.
struct CachePair {
  std::string file;
  kv::KvType k_type, v_type;

  std::string Name() const { return fmt::format("{}@{}+{}", file, kv::Name(k_type), kv::Name(v_type)); }
};

void PrintTo(const CachePair& pair, std::ostream* out) { *out << pair.Name(); }

std::vector<CachePair> CachePairs() {
  std::vector<CachePair> pairs;
  using enum kv::KvType;
  for (const char* file : {"bundled/sluice-demo-f16.gguf", "quant/gemma3.Q4_0.gguf",
                           "quant/qwen2.Q4_K_M.gguf", "quant/llama.Q8_0.gguf", "quant/tiny.F16.gguf"}) {
    for (const auto& [k_type, v_type] :
         {std::pair{kQ8_0, kQ8_0}, {kQ8_0, kQ4_0}, {kQ4_0, kQ4_0}, {kF16, kQ5_0}})
      pairs.push_back({file, k_type, v_type});
  }
  return pairs;
}

class CacheTypesTest : public testing::TestWithParam<CachePair> {};

TEST_P(CacheTypesTest, OneHashEverywhere) {
  const CachePair& pair = GetParam();
  std::string missing;
  const std::string path = GoldenFile{pair.file}.Path(&missing);
  if (path.empty()) GTEST_SKIP() << missing;
  const auto golden = Golden().find(pair.Name());
  const auto check = [&](RunnerOptions options, int64_t chunk) {
    options.k_type = pair.k_type;
    options.v_type = pair.v_type;
    const auto runner = Runner::Open(path, options);
    ASSERT_NE(runner, nullptr);
    const uint64_t hash =
        HashFloats(runner->Logits(Ids(runner->model().config().vocab_size, kPromptTokens, 1), chunk));
    ASSERT_NE(golden, Golden().end()) << "no frozen hash; add this line:\n"
                                      << pair.Name() << " " << fmt::format("{:016x}", hash);
    EXPECT_EQ(hash, golden->second) << "gives " << fmt::format("{:016x}", hash);
  };
  for (const kernels::Kernels* table : kernels::AllKernels()) {
    if (!table->supported(platform::DetectCpuFeatures())) continue;
    SCOPED_TRACE(table->name);
    ASSERT_NO_FATAL_FAILURE(check({.threads = 2, .kernels = table->name}, 512));
  }
  ASSERT_NO_FATAL_FAILURE(check({.threads = 1}, 1));
  ASSERT_NO_FATAL_FAILURE(check({.threads = 3}, 7));
}

INSTANTIATE_TEST_SUITE_P(Files, CacheTypesTest, testing::ValuesIn(CachePairs()), [](const auto& test) {
  std::string name = test.param.Name();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// Past 512 positions attention works in several chunks, which batches and windows may cut anywhere.
TEST(LongPromptTest, OneHashHoweverItIsCut) {
  std::string missing;
  const std::string path = GoldenFile{"synth/Q8_0/256"}.Path(&missing);
  ASSERT_FALSE(path.empty()) << missing;
  std::map<int64_t, uint64_t> hashes;
  for (const int64_t chunk : {512, 64, 7, 1}) {
    const auto runner = Runner::Open(path, {.threads = chunk == 7 ? 1 : 2, .context_length = 1100, .sequences = 1});
    ASSERT_NE(runner, nullptr);
    hashes[chunk] = HashFloats(runner->Logits(Ids(runner->model().config().vocab_size, 1100, 3), chunk));
    EXPECT_EQ(hashes[chunk], hashes[512]) << "chunks of " << chunk;
  }
}

TEST_P(GoldenTest, TheSameLogitsInCompany) {
  const auto runner = Runner::Open(path_);
  ASSERT_NE(runner, nullptr);
  const int64_t vocab_size = runner->model().config().vocab_size;
  const std::vector<int> ids = Ids(vocab_size, kPromptTokens, 1);
  const std::vector<float> alone = runner->Logits(ids);

  // Two other sequences of other lengths read along, in one batch after another, rows mixed.
  kv::Sequence mine(runner->cache()), second(runner->cache()), third(runner->cache());
  const std::vector<int> other = Ids(vocab_size, 2 * kPromptTokens, 2);
  std::vector<float> together(alone.size());
  size_t next = 0, next_other = 0;
  while (next < ids.size()) {
    std::vector<BatchRow> rows;
    std::vector<size_t> position;  // of my rows in the prompt
    for (int i = 0; i < 13 && next < ids.size(); ++i) {
      if (i % 2 == 0) rows.push_back({other[next_other++], &second, false});
      position.resize(rows.size(), SIZE_MAX);
      position.push_back(next);
      rows.push_back({ids[next++], &mine, true});
      if (i % 5 == 0) rows.push_back({other[next_other++], &third, true});
      position.resize(rows.size(), SIZE_MAX);
    }
    ASSERT_TRUE(runner->forward().Run(rows, runner->cache(), [&](size_t row, std::span<const float> logits) {
      if (position[row] == SIZE_MAX) return;
      std::copy(logits.begin(), logits.end(), together.begin() + static_cast<ptrdiff_t>(position[row]) * vocab_size);
    }));
  }
  EXPECT_EQ(HashFloats(together), HashFloats(alone));
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(GoldenFiles()),
                         [](const auto& test) { return test.param.TestName(); });

}  // namespace
}  // namespace sluice::model
