// Runner: what a test needs to run a model file: a context, the model, one cache, and Logits().
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/ledger.h"
#include "model/forward.h"
#include "model/model.h"
#include "parallel/thread_pool.h"

namespace sluice::model {

struct RunnerOptions {
  int threads = 2;
  std::string_view kernels;  // empty: the best
  kv::KvType k_type = kv::KvType::kF32;
  kv::KvType v_type = kv::KvType::kF32;
  int64_t context_length = 512;
  int64_t batch = 512;
  int sequences = 3;
  runtime::Fusion fusion = runtime::Fusion::kAll;
  kv::Overflow overflow = kv::Overflow::kStop;
  weights::StoreOptions store;
  runtime::MemoryPressure* pressure = nullptr;
};

class Runner {
 public:
  static std::unique_ptr<Runner> Open(const std::string& path, const RunnerOptions& options = {}) {
    auto runner = std::unique_ptr<Runner>(new Runner(options));
    auto model = Model::Open(runner->context_, path, {.store = options.store});
    if (!model) {
      ADD_FAILURE() << model.error().message;
      return nullptr;
    }
    runner->model_ = *std::move(model);
    const Config& config = runner->model_->config();
    auto made = kv::Cache::Create({.layers = CacheLayers(config),
                                   .k_type = options.k_type,
                                   .v_type = options.v_type,
                                   .context_length = options.context_length,
                                   .n_sequences = options.sequences,
                                   .overflow = options.overflow,
                                   .sinks = options.overflow == kv::Overflow::kStop ? 0 : 32,
                                   .max_batch = options.batch},
                                  runner->ledger_);
    auto forward = Forward::Create(
        runner->context_, config, runner->model_->weights(), runner->model_->store(),
        {.max_batch = options.batch, .context_length = options.context_length, .fusion = options.fusion});
    if (!made || !forward) {
      ADD_FAILURE() << "no memory";
      return nullptr;
    }
    runner->cache_ = *std::move(made);
    runner->forward_ = *std::move(forward);
    return runner;
  }

  const Model& model() const { return *model_; }
  Forward& forward() { return *forward_; }
  kv::Cache& cache() { return *cache_; }

  // The logits [ids, vocab_size] at every position of a fresh sequence, read in chunks of `chunk`.
  std::vector<float> Logits(std::span<const int> ids, int64_t chunk = 512) {
    kv::Sequence sequence(*cache_);
    return Continue(sequence, ids, chunk);
  }

  // The same for ids that follow what `sequence` holds.
  std::vector<float> Continue(kv::Sequence& sequence, std::span<const int> ids, int64_t chunk = 512) {
    const size_t vocab = static_cast<size_t>(model_->config().vocab_size);
    std::vector<float> logits(ids.size() * vocab);
    for (size_t first = 0; first < ids.size(); first += static_cast<size_t>(chunk)) {
      std::vector<BatchRow> rows;
      for (size_t i = first; i < std::min(ids.size(), first + static_cast<size_t>(chunk)); ++i)
        rows.push_back({ids[i], &sequence, true});
      const Status status = forward_->Run(rows, *cache_, [&](size_t row, std::span<const float> out) {
        std::copy(out.begin(), out.end(), logits.begin() + static_cast<ptrdiff_t>((first + row) * vocab));
      });
      EXPECT_TRUE(status) << status.error().message;
    }
    return logits;
  }

 private:
  explicit Runner(const RunnerOptions& options) : pool_(options.threads) {
    const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
    context_ = {.cpu = cpu,
                .kernels = options.kernels.empty() ? &kernels::BestKernels(cpu)
                                                   : kernels::FindKernels(options.kernels),
                .pool = &pool_,
                .ledger = &ledger_,
                .clock = &clock_,
                .pressure = options.pressure};
  }

  memory::Ledger ledger_{uint64_t{4} << 30};
  parallel::ThreadPool pool_;
  MonotonicClock clock_;
  runtime::Context context_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<kv::Cache> cache_;
  std::unique_ptr<Forward> forward_;
};

inline int Argmax(std::span<const float> row) {
  return static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace sluice::model
