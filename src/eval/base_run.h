// A base run: what a model predicted at every scored position of a text, kept in a file, so that other
// versions of the model can be compared with it (Divergence) without running it again.
//
// A row is the natural log-probabilities of a position in 16-bit codes, evenly spaced between the row's
// highest and its lowest: an error of at most half a step, a step being 1/65534 of that distance. The
// distance is 20 to 40 nats in most models: an error below 0.0003 nats. It is cut at kMostSpread (what lies
// deeper counts as lying there), so no error of what matters is above 0.0009. The file, little-endian
// (docs/eval.md):
//
//   Header · the model's name · ids i32[n_ids] · hash of all before, u64 ·
//   rows: { hash of the rest of the row, u64 · highest f32 · step f32 · codes u16[vocabulary_size] }
//
// Rows are streamed both ways; memory holds the ids and one row. The file is hostile: all sizes follow from
// the header and are compared with the file's first, every value is checked. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "eval/text_windows.h"
#include "gguf/byte_sink.h"
#include "gguf/byte_source.h"
#include "text/vocabulary.h"

namespace sluice::eval {

// What a run was made with. Two models can be compared if vocabulary and windows are the same.
struct BaseRun {
  std::string model;  // for people
  uint64_t vocabulary_size = 0;
  uint64_t vocabulary_hash = 0;  // HashVocabulary
  uint64_t text_hash = 0;        // HashText
  TextWindows windows;
};

// Of all tokens' texts, in order.
uint64_t HashVocabulary(const text::Vocabulary& vocabulary);
uint64_t HashText(std::string_view text);

// What keeps `other` from being compared with `base`, named: another vocabulary, another text, the same text
// in other tokens or windows. Errors: kInvalidArgument.
Status CheckComparable(const BaseRun& base, const BaseRun& other);

inline constexpr double kMostSpread = 120;  // nats: e^−120 is no probability that could be seen
inline constexpr size_t kMostModelNameBytes = 1024;

class BaseRunWriter {
 public:
  // Of the finished file.
  static uint64_t FileBytes(const BaseRun& run);
  // Writes what comes before the rows. The name is cut to kMostModelNameBytes. `sink` outlives the writer.
  static Result<BaseRunWriter> Begin(const BaseRun& run, gguf::ByteSink& sink);

  // The logits [vocabulary_size] at the next scored position.
  Status Add(std::span<const float> logits);
  // All rows must have been added.
  Status Finish();

 private:
  BaseRunWriter(const BaseRun& run, gguf::ByteSink& sink);

  gguf::ByteSink& sink_;
  uint64_t vocabulary_size_;
  int64_t rows_left_;
  std::vector<std::byte> row_;
};

class BaseRunReader {
 public:
  // Errors: kCorrupt, kUnsupported for another version, kIo.
  static Result<BaseRunReader> Open(std::unique_ptr<gguf::ByteSource> source);

  const BaseRun& run() const { return run_; }
  // The log-probabilities at scored position `index` of windows.scored(); −infinity for tokens that cannot
  // come. Valid until the next call. Errors: kCorrupt, kIo.
  Result<std::span<const float>> Row(int64_t index);

 private:
  explicit BaseRunReader(std::unique_ptr<gguf::ByteSource> source) : source_(std::move(source)) {}

  std::unique_ptr<gguf::ByteSource> source_;
  BaseRun run_;
  uint64_t first_row_ = 0;  // its offset
  std::vector<std::byte> row_;
  std::vector<float> log_probabilities_;
};

}  // namespace sluice::eval
