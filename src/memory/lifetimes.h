// Lifetimes: buffers that are needed at different steps of a program, placed over one another in one block of
// memory.
//
// Add all of them, then Place. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::memory {

class Lifetimes {
 public:
  // A buffer of `bytes` that is needed from step `first` to step `last`, both included. Returns its number,
  // counted from 0.
  size_t Add(uint64_t bytes, int first, int last);

  // Gives every buffer its place, at a multiple of kCacheLineBytes: large ones first, each as low as those
  // that live at the same time let it. Returns the bytes of the block.
  uint64_t Place();

  size_t size() const { return buffers_.size(); }
  uint64_t bytes(size_t buffer) const { return buffers_[buffer].bytes; }
  // From the beginning of the block; known after Place.
  uint64_t offset(size_t buffer) const { return buffers_[buffer].offset; }

 private:
  struct Buffer {
    uint64_t bytes;
    int first, last;
    uint64_t offset = 0;
  };
  std::vector<Buffer> buffers_;
};

}  // namespace sluice::memory
