#include "sluice/verify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "base/units.h"
#include "base/xxh64.h"
#include "formats/decode.h"
#include "gguf/checksums.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/vocabulary.h"
#include "model/weights.h"
#include "parallel/thread_pool.h"

namespace sluice {

namespace {

using Progress = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

constexpr uint64_t kPieceElements = kMiB;
constexpr uint64_t kSliceElements = 4096;  // whole blocks of every type

// What a worker found in its slices.
struct BadWeights {
  uint64_t count = 0;
  uint64_t first = UINT64_MAX;  // element of the tensor

  void Add(uint64_t element) {
    ++count;
    first = std::min(first, element);
  }
  void Add(const BadWeights& other) {
    count += other.count;
    first = std::min(first, other.first);
  }
};

// Reads tensors whole.
class TensorChecker {
 public:
  TensorChecker(const gguf::GgufFile& file, parallel::ThreadPool& pool, const Progress& progress)
      : file_(file), pool_(pool), progress_(progress), total_(file.tensor_bytes()) {}

  // Adds what is wrong with a tensor of known type to `problems`. Errors: kInterrupted alone.
  Status Check(const gguf::Tensor& tensor, std::optional<uint64_t> expected,
               std::vector<std::string>& problems) {
    const formats::DTypeTraits& traits = *tensor.traits;
    Xxh64 hash;
    BadWeights bad;
    for (uint64_t first = 0; first < tensor.elements(); first += kPieceElements) {
      const uint64_t count = std::min(kPieceElements, tensor.elements() - first);
      piece_.resize(count / traits.block_length * traits.block_bytes);
      const Status read = file_.Read(tensor, first / traits.block_length * traits.block_bytes, piece_);
      if (!read) {
        problems.push_back(read.error().message);
        return {};
      }
      hash.Add(piece_);
      bad.Add(FindBad(traits.dtype, first, count));
      SLUICE_TRY(Advance(piece_.size()));
    }
    if (expected) {
      const Status same = gguf::CompareChecksum(tensor.name, hash.digest(), *expected);
      if (!same) problems.push_back(same.error().message);
    }
    if (bad.count > 0) {
      problems.push_back(fmt::format(
          "tensor {}: {} weights are NaN or infinite, the first at row {}, column {} ({})", tensor.name,
          bad.count, bad.first / tensor.columns(), bad.first % tensor.columns(), traits.name));
    }
    return {};
  }

 private:
  // Among the piece's `count` elements, of which the first is `first` of its tensor.
  BadWeights FindBad(formats::DType dtype, uint64_t first, uint64_t count) {
    std::vector<BadWeights> found(static_cast<size_t>(pool_.size()));
    pool_.ParallelFor(static_cast<int64_t>(count), static_cast<int64_t>(kSliceElements),
                      [&](int64_t begin, int64_t end, int worker) {
                        float values[kSliceElements];
                        const auto slice = std::span(values).first(static_cast<size_t>(end - begin));
                        formats::DecodeRow(
                            dtype, piece_.data() + formats::RowBytes(dtype, static_cast<uint64_t>(begin)),
                            slice);
                        for (size_t i = 0; i < slice.size(); ++i) {
                          if (!std::isfinite(slice[i]))
                            found[static_cast<size_t>(worker)].Add(first + static_cast<uint64_t>(begin) + i);
                        }
                      });
    BadWeights bad;
    for (const BadWeights& of_worker : found) bad.Add(of_worker);
    return bad;
  }

  Status Advance(uint64_t bytes) {
    done_ += bytes;
    if (!progress_ || progress_(done_, total_)) return {};
    return Fail(ErrorCode::kInterrupted, "stopped at {} of {}", FormatBytes(done_), FormatBytes(total_));
  }

  const gguf::GgufFile& file_;
  parallel::ThreadPool& pool_;
  const Progress& progress_;
  std::vector<std::byte> piece_;
  uint64_t done_ = 0;
  const uint64_t total_;
};

// An error of something that this program need not know how to do is no fault of the file.
void Note(const Error& error, VerifyReport& report) {
  (error.code == ErrorCode::kUnsupported ? report.remarks : report.problems).push_back(error.message);
}

// What a language model must have beside its weights.
void CheckModel(const gguf::GgufFile& file, VerifyReport& report) {
  const auto kind = file.metadata().GetStringOr("general.type", "model");
  if (kind && *kind != "model") {
    report.remarks.push_back(fmt::format(
        "no language model but of type \"{}\": neither family nor tokenizer was looked at", *kind));
    return;
  }
  auto config = model::ReadConfig(file.metadata());
  if (!config) {
    Note(config.error(), report);
  } else if (const auto weights = model::BindDirectory(*config, file.tensors()); !weights) {
    Note(weights.error(), report);
  }
  const auto tokenizer = model::ReadTokenizer(file.metadata());
  if (!tokenizer) {
    Note(tokenizer.error(), report);
    return;
  }
  report.remarks.insert(report.remarks.end(), tokenizer->warnings().begin(), tokenizer->warnings().end());
}

}  // namespace

Result<VerifyReport> Verify(const Engine& engine, const std::string& path, const Progress& progress) {
  SLUICE_TRY_ASSIGN(const gguf::GgufFile file, gguf::GgufFile::Open(path, gguf::Purpose::kInspect));
  VerifyReport report{
      .tensors = file.tensors().size(), .tensor_bytes = file.tensor_bytes(), .files = file.shards().size()};
  for (const gguf::Problem& problem : file.problems()) report.problems.push_back(problem.message);

  std::optional<gguf::Checksums> expected;
  if (auto read = gguf::ReadChecksums(file.metadata(), file.tensors().size())) {
    expected = *std::move(read);
  } else {
    Note(read.error(), report);
  }
  report.checksums = expected.has_value();
  TensorChecker checker(file, *engine.context().pool, progress);
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const gguf::Tensor& tensor = file.tensors()[i];
    if (tensor.traits == nullptr) continue;  // a problem already
    SLUICE_TRY(checker.Check(tensor, expected ? std::optional(expected->tensors[i]) : std::nullopt,
                             report.problems));
  }
  // Tensors have been compared: what can differ here is the rest.
  if (expected &&
      gguf::ModelChecksum(file.metadata(), file.tensors(), expected->tensors) != expected->model) {
    report.problems.push_back(
        "metadata, or the tensors' names, types or shapes, have changed since the checksums were made");
  }
  CheckModel(file, report);
  return report;
}

}  // namespace sluice
