// Importance from a GGUF file, as `imatrix` tools write it: for each tensor NAME, the sums of the squares of
// its columns' inputs (NAME.in_sum2, [columns, matrices], F32) and how often each matrix was used
// (NAME.counts, [1, matrices], F32). The importance of a column is the quotient; matrices that were never
// used have zeros.
//
// Source of the layout: llama.cpp's imatrix tool, as facts. One tensor is read at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gguf/reader.h"
#include "quantize/importance.h"

namespace sluice::quantize {

class ImportanceFile final : public Importance {
 public:
  // Errors: those of gguf::GgufFile::Open; kInvalidArgument for a GGUF file of another kind; kCorrupt for a
  // tensor without counts, or of another type or shape.
  static Result<ImportanceFile> Open(const std::string& path);
  static Result<ImportanceFile> FromGguf(std::string origin, gguf::GgufFile file);

  static constexpr std::string_view kSumsName = ".in_sum2", kCountsName = ".counts";  // behind a tensor's name

  const std::string& origin() const override { return origin_; }
  std::span<const std::string> tensors() const override { return names_; }
  Result<std::vector<float>> Load(const std::string& tensor) const override;

  // What Load's quotients are made of.
  struct Sums {
    std::vector<float> squares;  // [matrices, columns]
    std::vector<float> counts;   // [matrices]
  };
  // Error: kCorrupt for another type. Any numbers.
  Result<Sums> LoadSums(const std::string& tensor) const;

 private:
  ImportanceFile(std::string origin, gguf::GgufFile file)
      : origin_(std::move(origin)), file_(std::move(file)) {}
  Result<std::vector<float>> ReadFloats(const std::string& name) const;

  std::string origin_;
  gguf::GgufFile file_;
  std::vector<std::string> names_;
};

}  // namespace sluice::quantize
