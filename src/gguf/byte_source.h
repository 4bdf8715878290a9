// ByteSource: random access to the bytes of a model file, so that parsers read files, memory and faulty test
// doubles alike.
//
// ReadAt may be called from any thread. Owners are whoever holds the unique_ptr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/result.h"

namespace sluice::gguf {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` with the bytes from `offset` on. offset + out.size() must be within size(); fewer bytes than
  // that (a file that shrank, a failing disk) are an error.
  virtual Status ReadAt(uint64_t offset, std::span<std::byte> out) const = 0;
};

// Bytes that somebody else owns.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return Fail(ErrorCode::kIo, "bytes {} + {} are outside of {} bytes of memory", offset, out.size(),
                  bytes_.size());
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace sluice::gguf
