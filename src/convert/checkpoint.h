// Checkpoint: the tensors of a model as it was trained, in a folder of safetensors files (one, or several
// with an index), or of files that torch.save wrote (pytorch_model.bin). Where both are there, safetensors. A
// single safetensors file may have any name where none has the usual one.
//
// Owns the open files; immutable after Open, so any thread may read.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "convert/source_tensor.h"
#include "platform/file.h"

namespace sluice::convert {

class Checkpoint {
 public:
  // Errors: kNotFound when the folder has no such files (what it has instead is said) or lacks one that the
  // index names; kCorrupt for an index that disagrees with the files, listing the tensors; and those of
  // ReadSafetensors and ReadPytorchFile.
  static Result<Checkpoint> Open(const std::string& folder);

  std::span<const SourceTensor> tensors() const { return tensors_; }
  const SourceTensor* Find(std::string_view name) const;  // null when there is none
  const std::string& file_of(const SourceTensor& tensor) const { return files_[tensor.file].path(); }
  std::vector<platform::FileIdentity> identities() const;

  // All of its bytes, as stored; bytes.size() is tensor.size_bytes. Errors: as Read.
  Status ReadBytes(const SourceTensor& tensor, std::span<std::byte> bytes) const;
  // Elements [first, first + out.size()) as floats. Errors: kIo, kCorrupt for a file that has become shorter.
  Status Read(const SourceTensor& tensor, uint64_t first, std::span<float> out) const;

 private:
  using ReadTensors = Result<std::vector<SourceTensor>> (*)(const platform::File& file);
  Status AddFile(const std::string& path, ReadTensors read);
  Status CheckIndex(const std::map<std::string, std::string, std::less<>>& index) const;

  std::vector<platform::File> files_;
  std::vector<SourceTensor> tensors_;
  std::map<std::string_view, size_t> by_name_;
};

}  // namespace sluice::convert
