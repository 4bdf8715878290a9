#include "quantize/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>

#include "base/units.h"
#include "formats/unpack.h"
#include "quantize/allocation.h"
#include "quantize/quantizer.h"
#include "quantize/recode.h"
#include "quantize/tensor_role.h"

namespace sluice::quantize {

using formats::DType;

namespace {

constexpr DType kFitTypes[] = {DType::kIQ1_S, DType::kIQ1_M,  DType::kIQ2_XXS, DType::kIQ2_XS,
                               DType::kIQ2_S, DType::kQ2_K,   DType::kIQ3_XXS, DType::kIQ3_S,
                               DType::kQ3_K,  DType::kIQ4_XS, DType::kQ4_K,    DType::kIQ4_NL,
                               DType::kQ4_0,  DType::kQ4_1,   DType::kQ5_K,    DType::kQ5_0,
                               DType::kQ5_1,  DType::kQ6_K,   DType::kQ8_0};

constexpr DType kOneBitTypes[] = {DType::kIQ1_S, DType::kIQ1_M};

// Elements of a tensor whose errors in each type are looked at, at most.
constexpr uint64_t kSampledElements = 64 * kKiB;

// … in so many places of it.
constexpr uint64_t kStretches = 16;

// All matrices together may cost so many times the sum of what each costs by itself; more is not adding up.
constexpr double kAddsUp = 4.0 / 3;

// A tensor that there is a choice for.
struct Candidate {
  size_t index = 0;  // in the file
  std::vector<DType> types;
  std::vector<double> errors;  // squared, weighted by importance, in each type
  size_t probed = 0;           // which of the types it is measured in
  double probe_kl = 0;
};

class Fitter {
 public:
  Fitter(const gguf::GgufFile& source, const FitOptions& options, parallel::ThreadPool& pool)
      : source_(source), options_(options), recoder_(pool) {}

  Result<FitReport> Run() {
    SLUICE_TRY(FindCandidates());
    SLUICE_TRY(CheckBudget());
    SLUICE_TRY(MeasureErrors());
    ChooseProbes();
    Status probed = Probe();
    std::error_code ignored;
    std::filesystem::remove(options_.scratch, ignored);
    SLUICE_TRY(probed);
    return Choose();
  }

 private:
  std::span<const gguf::Tensor> tensors() const { return source_.tensors(); }
  uint64_t BytesIn(const Candidate& candidate, DType dtype) const {
    const gguf::Tensor& tensor = tensors()[candidate.index];
    return AlignUp(tensor.rows() * formats::RowBytes(dtype, tensor.columns()), source_.alignment());
  }

  Status Advance(std::string_view what, size_t done, size_t total) const {
    if (!options_.progress || options_.progress(what, static_cast<double>(done), static_cast<double>(total)))
      return {};
    return Fail(ErrorCode::kInterrupted, "stopped while {}", what);
  }

  Status FindCandidates() {
    SLUICE_TRY(CheckPatterns(tensors(), options_.types));
    const bool tied = source_.Find("output.weight") == nullptr;
    for (size_t i = 0; i < tensors().size(); ++i) {
      const gguf::Tensor& tensor = tensors()[i];
      SLUICE_TRY(gguf::RequireKnown(&tensor, tensor.name));
      TypeChoice& choice = choices_.emplace_back(TypeChoice{.dtype = tensor.traits->dtype});
      if (!IsQuantisable(tensor)) continue;
      if (formats::IsQuantised(tensor.traits->dtype)) {
        return Fail(ErrorCode::kInvalidArgument,
                    "tensor {} is {} already: --fit measures against the weights as they were trained; give "
                    "an F16, BF16 or "
                    "F32 file",
                    tensor.name, tensor.traits->name);
      }
      choice.quantisable = true;
      SLUICE_TRY_ASSIGN(const std::optional<DType> wish, WishFor(tensor, options_.types, tied));
      if (wish) {
        choice.dtype = *wish;
        continue;
      }
      Candidate candidate{.index = i, .types = {}, .errors = {}};
      for (const DType dtype : kFitTypes) {
        if (tensor.columns() % formats::Traits(dtype).block_length == 0) candidate.types.push_back(dtype);
      }
      if (candidate.types.empty()) candidate.types.push_back(DType::kF16);
      candidates_.push_back(std::move(candidate));
    }
    if (candidates_.empty())
      return Fail(ErrorCode::kInvalidArgument, "there is no matrix whose type could be chosen");
    return {};
  }

  // What each type does to each tensor, on rows from all over it.
  Status MeasureErrors() {
    for (size_t c = 0; c < candidates_.size(); ++c) {
      SLUICE_TRY(Advance("comparing types", c, candidates_.size()));
      Candidate& candidate = candidates_[c];
      const gguf::Tensor& tensor = tensors()[candidate.index];
      TensorImportance importance;
      if (options_.importance != nullptr) {
        SLUICE_TRY_ASSIGN(importance, ImportanceOf(*options_.importance, tensor));
      }
      const PieceLayout layout(tensor);
      const uint64_t sampled = std::min(layout.count(), layout.PiecesIn(kSampledElements));
      const uint64_t stretches = std::min(sampled, kStretches), pieces = sampled / stretches;
      candidate.errors.assign(candidate.types.size(), 0);
      for (uint64_t i = 0; i < stretches; ++i)
        SLUICE_TRY(AddErrors(candidate, {i * layout.count() / stretches, pieces}, importance));
      // Of the whole tensor, as far as the sample tells.
      const double part = static_cast<double>(stretches * pieces) / static_cast<double>(layout.count());
      for (double& error : candidate.errors) error /= part;
    }
    return {};
  }

  Status AddErrors(Candidate& candidate, PieceRange range, const TensorImportance& importance) {
    const gguf::Tensor& tensor = tensors()[candidate.index];
    const PieceLayout layout(tensor);
    const auto bytes = [&](DType dtype) {
      return layout.ByteOffset(dtype, range.first + range.count) - layout.ByteOffset(dtype, range.first);
    };
    in_.resize(bytes(tensor.traits->dtype));
    SLUICE_TRY(source_.Read(tensor, layout.ByteOffset(tensor.traits->dtype, range.first), in_));
    for (size_t t = 0; t < candidate.types.size(); ++t) {
      out_.resize(bytes(candidate.types[t]));
      SLUICE_TRY_ASSIGN(const ErrorSums sums,
                        recoder_.Recode(tensor, range, in_, candidate.types[t], importance, out_));
      candidate.errors[t] += importance.weights.empty() ? sums.error : sums.weighted_error;
    }
    return {};
  }

  // What the choices so far leave to the candidates.
  Result<uint64_t> Room() {
    std::vector<TypeChoice> smallest = choices_;
    uint64_t candidates = 0;
    for (const Candidate& candidate : candidates_) {
      smallest[candidate.index].dtype = candidate.types[0];
      candidates += BytesIn(candidate, candidate.types[0]);
    }
    SLUICE_TRY_ASSIGN(const uint64_t file, QuantizedBytes(source_, AllMixes()[0], smallest));
    const uint64_t rest = file - std::min(file, candidates);
    return options_.budget_bytes - std::min(options_.budget_bytes, rest);
  }

  // Says what is too little before anything is measured, and leaves out types of one bit where others fit:
  // their errors are as large as the weights, so that nothing follows from what was measured in other types.
  Status CheckBudget() {
    SLUICE_TRY_ASSIGN(room_, Room());
    SLUICE_TRY(Allocate(Sizes(), room_));
    std::vector<Candidate> all = candidates_;
    for (Candidate& candidate : candidates_) {
      if (candidate.types.size() > std::size(kOneBitTypes)) std::erase_if(candidate.types, IsOneBit);
    }
    if (!Allocate(Sizes(), room_)) candidates_ = std::move(all);
    return {};
  }

  static bool IsOneBit(DType dtype) {
    return std::ranges::find(kOneBitTypes, dtype) != std::end(kOneBitTypes);
  }

  // What each type of each candidate takes, without what it costs.
  std::vector<AllocationItem> Sizes() const {
    std::vector<AllocationItem> items;
    for (const Candidate& candidate : candidates_) {
      AllocationItem& item = items.emplace_back();
      for (const DType dtype : candidate.types) item.push_back({BytesIn(candidate, dtype), 0});
    }
    return items;
  }

  // A type of about the size that the budget allows on average, or the next smaller one: little is then left
  // to extrapolation.
  void ChooseProbes() {
    uint64_t elements = 0;
    for (const Candidate& candidate : candidates_) elements += tensors()[candidate.index].elements();
    const double bytes = static_cast<double>(room_) / static_cast<double>(elements);
    for (Candidate& candidate : candidates_) {
      candidate.probed = 0;
      for (size_t t = 0; t < candidate.types.size(); ++t) {
        const formats::DTypeTraits& traits = formats::Traits(candidate.types[t]);
        if (static_cast<double>(traits.block_bytes) / traits.block_length <= bytes &&
            candidate.errors[t] < candidate.errors[candidate.probed])
          candidate.probed = t;
      }
    }
  }

  // Candidates that are measured together: neighbouring layers' matrices of one kind.
  std::vector<std::vector<size_t>> Groups() const {
    std::map<std::string_view, std::vector<size_t>> kinds;
    for (size_t c = 0; c < candidates_.size(); ++c)
      kinds[SplitLayer(tensors()[candidates_[c].index].name).name].push_back(c);
    for (size_t together = 1;; ++together) {
      std::vector<std::vector<size_t>> groups;
      for (const auto& kind : kinds) {
        for (size_t i = 0; i < kind.second.size(); i += together) {
          const size_t end = std::min(kind.second.size(), i + together);
          groups.emplace_back(kind.second.begin() + static_cast<ptrdiff_t>(i),
                              kind.second.begin() + static_cast<ptrdiff_t>(end));
        }
      }
      if (groups.size() <= static_cast<size_t>(std::max(options_.most_probes, 1)) ||
          groups.size() <= kinds.size())
        return groups;
    }
  }

  Status Probe() {
    std::vector<TypeChoice> choices = choices_;
    for (const Candidate& candidate : candidates_)
      choices[candidate.index].dtype = candidate.types[candidate.probed];
    SLUICE_TRY(options_.make(choices, options_.scratch));
    const std::vector<std::vector<size_t>> groups = Groups();
    std::vector<double> costs;  // of each group
    for (size_t g = 0; g < groups.size(); ++g) {
      SLUICE_TRY(Advance("measuring matrices", g, groups.size()));
      SLUICE_TRY_ASSIGN(costs.emplace_back(), KlOf(groups[g]));
    }
    probes_ = static_cast<int>(groups.size());
    std::vector<size_t> all(candidates_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    SLUICE_TRY_ASSIGN(const double together, KlOf(all));
    const bool adds_up = together <= kAddsUp * std::accumulate(costs.begin(), costs.end(), 0.0);
    if (options_.independent && !adds_up) SLUICE_TRY(MeasureAmongOthers(groups, together, costs));
    const double sum = std::accumulate(costs.begin(), costs.end(), 0.0);
    if (sum > 0) together_ = together / sum;
    for (size_t g = 0; g < groups.size(); ++g) ShareOut(groups[g], costs[g]);
    return {};
  }

  // Where costs don't add up, what a matrix costs depends on what the others have lost already. Takes the
  // mean of what each costs alone, and of what it still costs when all others are in few bits, too.
  Status MeasureAmongOthers(std::span<const std::vector<size_t>> groups, double together,
                            std::vector<double>& costs) {
    for (size_t g = 0; g < groups.size(); ++g) {
      SLUICE_TRY(Advance("measuring matrices among the others", g, groups.size()));
      std::vector<size_t> others;
      for (size_t other = 0; other < groups.size(); ++other) {
        if (other != g) others.insert(others.end(), groups[other].begin(), groups[other].end());
      }
      SLUICE_TRY_ASSIGN(const double without, KlOf(others));
      costs[g] = 0.5 * (costs[g] + std::max(0.0, together - without));
    }
    probes_ *= 2;
    return {};
  }

  // What a group of matrices costs, by their errors.
  void ShareOut(std::span<const size_t> group, double cost) {
    double errors = 0;
    for (const size_t c : group) errors += candidates_[c].errors[candidates_[c].probed];
    for (const size_t c : group) {
      candidates_[c].probe_kl = errors > 0 ? cost * candidates_[c].errors[candidates_[c].probed] / errors
                                           : cost / static_cast<double>(group.size());
    }
  }

  // The KL divergence with these candidates as they were made for probing.
  Result<double> KlOf(std::span<const size_t> candidates) const {
    gguf::Replacement replacement{options_.scratch, {}};
    for (const size_t c : candidates) replacement.tensors.emplace_back(tensors()[candidates_[c].index].name);
    SLUICE_TRY_ASSIGN(const double kl, options_.measure(std::span(&replacement, 1)));
    if (kl >= 0 && std::isfinite(kl)) return kl;
    return Fail(ErrorCode::kCorrupt,
                "with {} in few bits the KL divergence is {}: the model computes nonsense",
                replacement.tensors[0], kl);
  }

  double KlIn(const Candidate& candidate, size_t type) const {
    const double probed = candidate.errors[candidate.probed];
    return probed > 0 ? together_ * candidate.probe_kl * candidate.errors[type] / probed : 0;
  }

  Result<FitReport> Choose() {
    std::vector<AllocationItem> items;
    for (const Candidate& candidate : candidates_) {
      AllocationItem& item = items.emplace_back();
      for (size_t t = 0; t < candidate.types.size(); ++t)
        item.push_back({BytesIn(candidate, candidate.types[t]), KlIn(candidate, t)});
    }
    SLUICE_TRY_ASSIGN(const Allocation allocation, Allocate(items, room_));
    FitReport report{.choices = choices_,
                     .probes = probes_,
                     .together = together_,
                     .predicted_kl = allocation.damage,
                     .bound_kl = allocation.bound,
                     .optimal = allocation.optimal};
    std::map<DType, uint64_t> weights;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const Candidate& candidate = candidates_[c];
      const size_t chosen = allocation.chosen[c];
      const gguf::Tensor& tensor = tensors()[candidate.index];
      const DType dtype = candidate.types[chosen];
      report.choices[candidate.index].dtype = dtype;
      weights[dtype] += tensor.elements();
      report.tensors.push_back({.name = std::string(tensor.name),
                                .dtype = dtype,
                                .bytes = tensor.rows() * formats::RowBytes(dtype, tensor.columns()),
                                .probed = candidate.types[candidate.probed],
                                .probe_kl = candidate.probe_kl,
                                .kl = KlIn(candidate, chosen)});
    }
    const DType most =
        std::ranges::max_element(weights, {}, [](const auto& entry) { return entry.second; })->first;
    report.name = &*std::ranges::find(AllMixes(), most, &Mix::base);
    SLUICE_TRY_ASSIGN(report.file_bytes, QuantizedBytes(source_, *report.name, report.choices));
    return report;
  }

  const gguf::GgufFile& source_;
  const FitOptions& options_;
  Recoder recoder_;
  std::vector<TypeChoice> choices_;
  std::vector<Candidate> candidates_;
  uint64_t room_ = 0;
  int probes_ = 0;
  double together_ = 1;
  std::vector<std::byte> in_, out_;
};

}  // namespace

std::span<const DType> FitTypes() { return kFitTypes; }

Result<FitReport> Fit(const gguf::GgufFile& source, const FitOptions& options, parallel::ThreadPool& pool) {
  return Fitter(source, options, pool).Run();
}

}  // namespace sluice::quantize
