#include "quantize/importance_file.h"

namespace sluice::quantize {
Result<ImportanceFile> ImportanceFile::Open(const std::string& path) {
  SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(path));
  return FromGguf(path, std::move(file));
}

Result<ImportanceFile> ImportanceFile::FromGguf(std::string origin, gguf::GgufFile file) {
  ImportanceFile result(std::move(origin), std::move(file));
  for (const gguf::Tensor& tensor : result.file_.tensors()) {
    if (!tensor.name.ends_with(kSumsName)) continue;
    result.names_.emplace_back(tensor.name.substr(0, tensor.name.size() - kSumsName.size()));
    const std::string& name = result.names_.back();
    const gguf::Tensor* counts = result.file_.Find(name + std::string(kCountsName));
    if (counts == nullptr || counts->elements() != tensor.rows()) {
      return Fail(ErrorCode::kCorrupt, "{}: {} holds {} matrices, and {}{} {} counts", result.origin_,
                  tensor.name, tensor.rows(), name, kCountsName, counts == nullptr ? 0 : counts->elements());
    }
  }
  if (result.names_.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "{}: holds no importance data (no tensor …{})", result.origin_,
                kSumsName);
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

Result<ImportanceFile::Sums> ImportanceFile::LoadSums(const std::string& tensor) const {
  Sums sums;
  SLUICE_TRY_ASSIGN(sums.squares, ReadFloats(tensor + std::string(kSumsName)));
  SLUICE_TRY_ASSIGN(sums.counts, ReadFloats(tensor + std::string(kCountsName)));
  return sums;
}

Result<std::vector<float>> ImportanceFile::Load(const std::string& tensor) const {
  SLUICE_TRY_ASSIGN(Sums sums, LoadSums(tensor));
  const size_t columns = sums.squares.size() / sums.counts.size();
  for (size_t i = 0; i < sums.squares.size(); ++i) {
    const float count = sums.counts[i / columns];
    sums.squares[i] = count > 0 ? sums.squares[i] / count : 0;
  }
  return std::move(sums.squares);
}

}  // namespace sluice::quantize
