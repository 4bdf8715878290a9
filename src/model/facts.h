// What planning needs to know of a model (plan/facts.h), from its configuration and tensor directory alone:
// no weight is read, so it works on the first MiB of a file as well.
//
// Pure functions; any thread.
#pragma once

#include <span>

#include "base/result.h"
#include "gguf/tensor_info.h"
#include "kv/cache.h"
#include "model/config.h"
#include "plan/facts.h"

namespace sluice::model {

// The KV cache of a model.
kv::CacheConfig CacheConfigFor(const Config& config, const kv::Settings& settings);

// `tokenizer_bytes`: what vocabulary and header take. Errors: those of BindDirectory.
Result<plan::ModelFacts> FactsOf(const Config& config, std::span<const gguf::Tensor> tensors,
                                 uint64_t tokenizer_bytes);

}  // namespace sluice::model
