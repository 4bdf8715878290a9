// Pickle: the state dict that torch.save pickled (protocol 2), read without running anything.
//
// A pickle is a program for a stack machine that may call any function there is. This reader is such a
// machine with nothing to call: it knows the opcodes and the five kinds of object that a dictionary of
// tensors is made of (OrderedDict, a storage's type, a storage, a tensor from a storage, a parameter from a
// tensor), and refuses everything else by name and place. Source of the opcodes: the pickletools module of
// Python.
//
// The bytes are hostile: time and memory grow with their number and no faster, and are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/source_tensor.h"

namespace sluice::convert {

// A tensor as the pickle describes it: a view of a storage, which is a file entry of its own.
struct PickledTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::string storage;            // its key
  uint64_t storage_elements = 0;  // that the storage has
  uint64_t first = 0;             // element of the storage
  std::vector<uint64_t> shape;    // the last varies fastest
  std::vector<uint64_t> strides;  // elements from one to the next, for each dimension
};

inline constexpr uint64_t kMaxPickleBytes = 32u << 20;

// The tensors of a pickled state dict, in its order. Errors, with the byte where they are: kUnsupported for
// an opcode, a global or a value that no dictionary of tensors needs; kCorrupt for bytes that break the
// format, and a name that comes twice; kResourceExhausted for more objects than any model has.
Result<std::vector<PickledTensor>> ReadStateDict(std::span<const std::byte> pickle);

}  // namespace sluice::convert
