// Whether a model file is what it should be: all of it is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sluice/engine.h"

namespace sluice {

struct VerifyReport {
  uint64_t tensors = 0;
  uint64_t tensor_bytes = 0;
  uint64_t files = 1;
  bool checksums = false;             // the file has them
  std::vector<std::string> problems;  // what must not be: one sentence each, naming the tensor or the key
  std::vector<std::string> remarks;   // what is odd, but does no harm
};

// Looks at the header; at where the tensors lie; at every tensor's bytes: its checksum where there is one,
// and whether each weight is a number (a NaN or an infinity comes from a broken scale); at what the model's
// family needs; at the tokenizer. Memory stays at some MiB. `progress` is called now and then with bytes;
// false stops the work. Errors: the header can't be read at all; kInterrupted.
Result<VerifyReport> Verify(const Engine& engine, const std::string& path,
                            const std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>& progress);

}  // namespace sluice
