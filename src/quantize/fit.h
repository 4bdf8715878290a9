// Fit: which type each matrix of a model gets, so that the file takes no more bytes than it may and the
// model's predictions change as little as they can.
//
// How much a matrix matters is measured: the model runs with that one matrix in few bits, and the KL
// divergence of its predictions from the original's is what the matrix costs there. In other types it is
// scaled by the squared error that they make, weighted by importance: for small errors KL is quadratic in
// them, and what several matrices cost adds up. How far that is from the truth is measured, with all matrices
// in few bits: where it is far, each matrix is measured among the others, too; predictions are scaled to it.
// Then allocation.h chooses.
//
// One thread at a time; what the options point to outlives the call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/reader.h"
#include "parallel/thread_pool.h"
#include "quantize/importance.h"
#include "quantize/type_choice.h"

namespace sluice::quantize {

struct FitOptions {
  uint64_t budget_bytes = 0;               // of the file, header and all
  TypeWishes types;                        // wishes for single tensors are kept; the mix counts for nothing
  const Importance* importance = nullptr;  // null: all columns count alike
  // Measurements of single matrices at most (each one run of the model, or two where costs don't add up):
  // where there are more matrices, those of the same kind in neighbouring layers are measured together.
  int most_probes = 64;
  // Whether `make` encodes each matrix by itself. Where errors make up for those of other matrices (error
  // feedback), a matrix is not measured among the others: without its errors theirs would have no
  // counterpart.
  bool independent = true;
  // Writes the model with these types, as the result will be written. A file at `path` is made or replaced.
  std::function<Status(std::span<const TypeChoice> choices, const std::string& path)> make;
  // The mean KL divergence, in nats, of the model's predictions with these matrices in the place of its own.
  std::function<Result<double>(std::span<const gguf::Replacement>)> measure;
  // A file for the matrices in few bits, which is removed at the end.
  std::string scratch;
  // Told what is being done and how far that is; false stops: kInterrupted.
  std::function<bool(std::string_view what, double done, double total)> progress;
};

struct FitTensor {
  std::string name;
  formats::DType dtype;
  uint64_t bytes = 0;
  formats::DType probed = formats::DType::kF32;
  // Measured with the matrix in that type, alone and perhaps among the others; its part where several were
  // measured together.
  double probe_kl = 0;
  double kl = 0;  // predicted in the type that was chosen
};

struct FitReport {
  std::vector<TypeChoice> choices;  // one for each tensor of the file
  const Mix* name = nullptr;        // the mix whose base most weights have
  std::vector<FitTensor> tensors;   // those that there was a choice for
  uint64_t file_bytes = 0;
  int probes = 0;
  double together =
      1;  // what all matrices cost at once, over the sum of what each costs by itself, as measured
  double predicted_kl = 0;
  double bound_kl = 0;   // no other choice is predicted to do better than this
  bool optimal = false;  // none does better than the one chosen
};

// Types that are chosen from, by bytes.
std::span<const formats::DType> FitTypes();

// Errors: kDoesNotFit when even the smallest types are too large, with both numbers; those of WishFor,
// ImportanceOf, Recoder, reading, and of the functions in the options; kInvalidArgument for tensors that are
// quantised already.
Result<FitReport> Fit(const gguf::GgufFile& source, const FitOptions& options, parallel::ThreadPool& pool);

}  // namespace sluice::quantize
