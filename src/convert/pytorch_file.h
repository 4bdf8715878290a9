// PytorchFile: the tensors of one file that torch.save wrote (since PyTorch 1.6): a zip whose data.pkl
// describes the tensors (pickle.h) and whose data/KEY are the storages that they are views of. Nothing of the
// file is run.
#pragma once

#include <vector>

#include "base/result.h"
#include "convert/source_tensor.h"
#include "platform/file.h"

namespace sluice::convert {

// In the order of the dictionary; tensors that share a storage (tied weights) share their bytes. Errors,
// naming the file: those of ReadZip and ReadStateDict; kUnsupported for files from before the zip format, for
// big-endian ones, and for a tensor whose elements don't lie in a row; kCorrupt for one that reaches beyond
// its storage.
Result<std::vector<SourceTensor>> ReadPytorchFile(const platform::File& file);

}  // namespace sluice::convert
