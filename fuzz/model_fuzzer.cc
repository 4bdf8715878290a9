// Reads a model that an attacker has touched: configuration, tokenizer and weights, and two tokens through it where it
// loads. An input is either a GGUF file or a list of changes to one of two sound tiny models:
//   which model (1 byte), then: offset (2 bytes), length 1 … 8 (1 byte), the bytes to put there, again and again
#include <algorithm>
#include <array>

#include "gguf/reader.h"
#include "memory/ledger.h"
#include "model/forward.h"
#include "model/model.h"
#include "model/vocabulary.h"
#include "parallel/thread_pool.h"
#include "whole/tiny_model.h"

namespace sluice::model {
namespace {

using gguf::testing::Bytes;

Bytes Changed(std::span<const uint8_t> changes) {
  static const std::array<Bytes, 2> kSound{whole::TinyLlama(16).Build(), whole::ScriptedModel({}, "z", "", 16).Build()};
  Bytes file = kSound[changes.empty() ? 0 : changes[0] % 2];
  if (!changes.empty()) changes = changes.subspan(1);
  while (changes.size() >= 3) {
    const size_t offset = changes[0] | changes[1] << 8;
    const size_t length = std::min<size_t>(1 + changes[2] % 8, changes.size() - 3);
    for (size_t i = 0; i < length && offset + i < file.size(); ++i) file[offset + i] = std::byte{changes[3 + i]};
    changes = changes.subspan(3 + length);
  }
  return file;
}

// Small enough for a fuzzer's patience.
bool IsSmall(const Config& config) {
  return config.layers.size() <= 8 && config.d_model <= 1024 && config.vocab_size <= 4096 && config.k_dim <= 256 &&
         config.v_dim <= 256 && std::ranges::all_of(config.layers, [](const LayerConfig& layer) {
           return layer.d_ff <= 4096 && layer.n_heads <= 64;
         });
}

Status Use(gguf::GgufFile& file) {
  SLUICE_TRY_ASSIGN(Config config, ReadConfig(file.metadata()));
  SLUICE_TRY_ASSIGN(const text::Tokenizer tokenizer, ReadTokenizer(file.metadata()));
  (void)tokenizer.Encode("ab <s> c\xff", {.add_special = true, .parse_special = true});

  static parallel::ThreadPool pool(1);
  memory::Ledger ledger(64 << 20);
  const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
  runtime::Context context{.cpu = cpu, .kernels = &kernels::BestKernels(cpu), .pool = &pool, .ledger = &ledger};
  const MonotonicClock clock;
  context.clock = &clock;
  SLUICE_TRY_ASSIGN(const Weights weights, BindWeights(config, file));
  if (!IsSmall(config)) return {};
  SLUICE_TRY_ASSIGN(const auto store, weights::WeightStore::Create(context, file, weights.schedule,
                                                                   {.backend = io::IoBackend::kPread, .depth = 1}));
  SLUICE_TRY_ASSIGN(const auto cache,
                    kv::Cache::Create({.layers = CacheLayers(config), .context_length = 16, .max_batch = 2}, ledger));
  SLUICE_TRY_ASSIGN(const auto forward, Forward::Create(context, config, weights, *store,
                                                        {.max_batch = 2, .context_length = 16}));
  kv::Sequence sequence(*cache);
  const std::array<BatchRow, 2> rows{{{0, &sequence, true}, {static_cast<int32_t>(config.vocab_size - 1), &sequence, true}}};
  return forward->Run(rows, *cache, [](size_t, std::span<const float>) {});
}

}  // namespace
}  // namespace sluice::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const std::span<const uint8_t> input(data, size);
  const bool is_file = size >= 4 && std::equal(data, data + 4, "GGUF");
  const auto whole = std::as_bytes(input);
  auto file = gguf::testing::OpenBytes(is_file ? gguf::testing::Bytes(whole.begin(), whole.end()) : model::Changed(input));
  if (file) (void)model::Use(*file);
  return 0;
}
