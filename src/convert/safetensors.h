// Safetensors: the directory of one file of a checkpoint. Eight bytes with the length of a JSON object, the
// object
// ("name": {"dtype", "shape", "data_offsets"}, and "__metadata__" with strings), then the tensors' bytes
// without gaps. Source of the format: the README of github.com/huggingface/safetensors.
//
// The header is hostile: nothing is allocated by what it says, and every field is checked against the file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "convert/source_tensor.h"
#include "platform/file.h"

namespace sluice::convert {

inline constexpr uint64_t kMaxSafetensorsHeader = 512u << 20;  // bytes; real ones reach 126 MB

// The tensors of a header, by ascending place; offsets count from the first byte behind the header, of
// `data_bytes` in all. Errors: kCorrupt naming the tensor (or the byte of the header) and what is wrong: a
// type that is not known, sizes that disagree, tensors that overlap or leave a hole, names that come twice.
Result<std::vector<SourceTensor>> ParseSafetensorsHeader(std::string_view json, uint64_t data_bytes);

// Those of a file, with offsets from its beginning. Errors: kCorrupt, naming the file, too; kIo.
Result<std::vector<SourceTensor>> ReadSafetensors(const platform::File& file);

}  // namespace sluice::convert
