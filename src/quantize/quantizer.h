// Quantiser: a model file → the same model in other weight types.
//
// Weights stream through in pieces of rows, so that memory stays at some MiB whatever the size of the file;
// all threads of the pool work. The same input gives the same file, whatever their number. Everything else in
// the file stays: metadata, order, what is no weight matrix. general.file_type, general.quantization_version
// and sluice.writer.* are set; a split model becomes one file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/byte_sink.h"
#include "gguf/reader.h"
#include "parallel/thread_pool.h"
#include "quantize/importance.h"
#include "quantize/recode.h"
#include "quantize/type_choice.h"

namespace sluice::quantize {

struct QuantizeOptions {
  TypeWishes types;
  // What each tensor of the file becomes, where that was decided already; empty: as `types` says. The mix
  // then only says what the file calls itself.
  std::vector<TypeChoice> choices;
  // Weights that are quantised already lose once more when they change their type: only if this allows it.
  // Those that keep it are copied as they are.
  bool allow_requantize = false;
  const Importance* importance = nullptr;  // outlives the call; null: all columns count alike
  // The same model in which some tensors have been encoded already: they are taken as they are there, where
  // they have the type that is chosen. Outlives the call; null: none.
  const gguf::GgufFile* encoded = nullptr;
  // Files that must not be written over, besides those of the source: where the importance comes from.
  std::vector<std::string> other_inputs;
  // Called now and then with bytes of the source, and at the end with both equal. False stops the work:
  // kInterrupted, and no file is left.
  std::function<bool(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

struct TensorReport {
  std::string name;
  formats::DType source, dtype;
  uint64_t elements = 0;
  uint64_t source_bytes = 0, bytes = 0;
  bool recoded = false;     // false: copied as it was, without error
  bool substitute = false;  // its rows are no whole blocks of the type that the mix wanted
  ErrorSums errors;
  bool by_importance = false;    // importance was known
  uint64_t unseen_matrices = 0;  // experts that the importance data knows nothing of
  bool deserves_more = false;    // its relative error stands out among the tensors of its type
};

struct QuantizeReport {
  std::vector<TensorReport> tensors;
  uint64_t source_bytes = 0, bytes = 0;  // of all tensors
  uint64_t file_bytes = 0;
  uint64_t requantized = 0;  // tensors that were quantised before
  uint64_t without_importance =
      0;  // recoded tensors that the importance data doesn't know, where there is any
};

// A relative error this many times the median of its type deserves more bits, among at least three of a type.
inline constexpr double kDeservesMore = 1.5;

// Errors: those of ChooseTypes, ImportanceOf, Recoder::Recode, `open` and reading; kInvalidArgument for
// quantised sources without allow_requantize.
Result<QuantizeReport> Quantize(const gguf::GgufFile& source, const QuantizeOptions& options,
                                parallel::ThreadPool& pool, const gguf::SinkOpener& open);

// Bytes of the file that would be written. Errors: as Quantize before it begins.
Result<uint64_t> QuantizedBytes(const gguf::GgufFile& source, const Mix& mix,
                                std::span<const TypeChoice> choices);

// The same from file to file. Also refuses to write over any of the files that are read (kInvalidArgument),
// and to begin without space for all of the result (kIo); what fails leaves no file, and an old one as it
// was.
Result<QuantizeReport> QuantizeFile(const std::string& input, const std::string& output,
                                    const QuantizeOptions& options, parallel::ThreadPool& pool);

}  // namespace sluice::quantize
