// Convert: a model's folder as it was published (weights, config.json, tokenizer) → one GGUF file.
//
// Tensors stream through row by row, never more than one of them in memory, and are written in the order in
// which a pass uses them. Before a byte is written the result is bound like any model that is loaded: what is
// missing, odd or left over is named.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/dtype.h"
#include "parallel/thread_pool.h"

namespace sluice::convert {

struct ConvertOptions {
  // Of the matrices: F32, F16, BF16 or Q8_0. Unset: each keeps its own, F64 becoming F32, eight bits BF16 and
  // the four-bit codes of GPTQ and AWQ Q4_0 or Q4_1.
  std::optional<formats::DType> type;
  std::string name;  // general.name; empty: the folder's
  std::string pre;   // tokenizer.ggml.pre, where the tokenizer's own is not known
  // Called now and then with bytes of the checkpoint. False stops the work: kInterrupted, and no file is
  // left.
  std::function<bool(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

struct ConvertReport {
  std::string architecture;
  uint64_t tensors = 0;
  uint64_t parameters = 0;
  uint64_t file_bytes = 0;
  std::vector<std::string> warnings;  // each one sentence
};

// Errors: those of Checkpoint::Open, ReadHyperparameters, ConvertTokenizer, model::BindDirectory and
// gguf::CreateFileSink; kUnsupported for tensors that the family has no place for; kCorrupt for numbers that
// are NaN or infinite, naming tensor and place; those of ReadPackingConfig and PackedMatrix::Load.
Result<ConvertReport> ConvertFolder(const std::string& folder, const std::string& output,
                                    const ConvertOptions& options, parallel::ThreadPool& pool);

}  // namespace sluice::convert
