// ModelFacts: what planning needs to know of a model, whatever it was read from: a file, a header without its
// data, a shape. model::FactsOf makes it; sizes come from the code that takes the memory later, so that plan
// and ledger agree.
//
// A value; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/dtype.h"
#include "kv/cache.h"
#include "runtime/fusion.h"
#include "weights/residency.h"

namespace sluice::plan {

// All matrices of one weight format that a token passes through.
struct SweptType {
  formats::DType dtype;
  uint64_t bytes = 0;
  uint64_t multiplications = 0;  // multiply-adds for one token
};

// Layers whose keys and values have the same shape.
struct KvLayers {
  int count = 0;
  int n_kv_heads = 0;
  int k_dim = 0, v_dim = 0;  // of one head
  int64_t window = 0;        // 0: every position is kept
};

struct ModelFacts {
  std::string name;
  std::string architecture;
  uint64_t parameters = 0;
  int64_t context_length = 0;    // that the model was trained for
  bool bounded_context = false;  // learned positions: nothing beyond context_length can be read

  uint64_t tensor_bytes = 0;     // of all tensors
  std::vector<SweptType> swept;  // the matrices that every token is multiplied with
  uint64_t embedding_bytes =
      0;  // token embeddings that are only looked up; 0 when they are the output matrix too

  std::vector<KvLayers> kv_layers;
  uint64_t attention_multiplications = 0;  // for one token and one held position
  uint64_t tokenizer_bytes = 0;            // vocabulary and header

  std::function<weights::Footprint(const weights::StoreOptions&)> weight_bytes;
  std::function<uint64_t(const kv::Settings&)> kv_bytes;
  std::function<uint64_t(const kv::Settings&, int workers, runtime::Fusion)> activation_bytes;

  // What one pass over the model reads.
  uint64_t swept_bytes() const {
    uint64_t total = 0;
    for (const SweptType& type : swept) total += type.bytes;
    return total;
  }
};

}  // namespace sluice::plan
