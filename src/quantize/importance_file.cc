#include "quantize/importance_file.h"

namespace sluice::quantize {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

}  // namespace

Result<ImportanceFile> ImportanceFile::Open(const std::string& path) {
  SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(path));
  return FromGguf(path, std::move(file));
}

Result<ImportanceFile> ImportanceFile::FromGguf(std::string origin, gguf::GgufFile file) {
  ImportanceFile result(std::move(origin), std::move(file));
  for (const gguf::Tensor& tensor : result.file_.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    result.names_.emplace_back(tensor.name.substr(0, tensor.name.size() - kSums.size()));
    const std::string& name = result.names_.back();
    const gguf::Tensor* counts = result.file_.Find(name + std::string(kCounts));
    if (counts == nullptr || counts->elements() != tensor.rows()) {
      return Fail(ErrorCode::kCorrupt, "{}: {} holds {} matrices, and {}{} {} counts", result.origin_,
                  tensor.name, tensor.rows(), name, kCounts, counts == nullptr ? 0 : counts->elements());
    }
  }
  if (result.names_.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "{}: holds no importance data (no tensor …{})", result.origin_,
                kSums);
  }
  return result;
}

Result<std::vector<float>> ImportanceFile::ReadFloats(const std::string& name) const {
  SLUICE_TRY_ASSIGN(const gguf::Tensor* tensor, file_.Require(name));
  if (tensor->traits->dtype != formats::DType::kF32) {
    return Fail(ErrorCode::kCorrupt, "{}: tensor {} is {}, expected F32", origin_, name,
                tensor->traits->name);
  }
  std::vector<float> values(tensor->elements());
  SLUICE_TRY(file_.Read(*tensor, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

Result<std::vector<float>> ImportanceFile::Load(const std::string& tensor) const {
  SLUICE_TRY_ASSIGN(std::vector<float> sums, ReadFloats(tensor + std::string(kSums)));
  SLUICE_TRY_ASSIGN(const std::vector<float> counts, ReadFloats(tensor + std::string(kCounts)));
  const size_t columns = sums.size() / counts.size();
  for (size_t i = 0; i < sums.size(); ++i) {
    const float count = counts[i / columns];
    sums[i] = count > 0 ? sums[i] / count : 0;
  }
  return sums;
}

}  // namespace sluice::quantize
