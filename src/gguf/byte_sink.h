// ByteSink: where a written model file goes: a file that appears whole or not at all, or memory.
//
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "platform/file.h"

namespace sluice::gguf {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status Write(std::span<const std::byte> bytes) = 0;
  // Replaces bytes that were written before: offset + size is at most what was written. For what a header can
  // say only when the data is known.
  virtual Status Rewrite(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Makes what is written last, still without a name, and keeps no memory for more.
  virtual Status Sync() = 0;
  // Everything is written; makes it last. A sink that is destroyed before that leaves nothing behind.
  virtual Status Commit() = 0;
};

// A file that replaces `path` on Commit (platform::AtomicWriter, whose errors these are). `file_bytes` is
// compared with the free space at once; `inputs` are files that must not be overwritten.
Result<std::unique_ptr<ByteSink>> CreateFileSink(const std::string& path, uint64_t file_bytes,
                                                 std::span<const platform::FileIdentity> inputs = {});

// Opens what a file is written to, told its size.
using SinkOpener = std::function<Result<std::unique_ptr<ByteSink>>(uint64_t file_bytes)>;

// Appends to a vector that outlives the sink.
class MemorySink final : public ByteSink {
 public:
  explicit MemorySink(std::vector<std::byte>* bytes) : bytes_(bytes) {}
  Status Write(std::span<const std::byte> bytes) override {
    bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
    return {};
  }
  Status Rewrite(uint64_t offset, std::span<const std::byte> bytes) override {
    SLUICE_CHECK(offset <= bytes_->size() && bytes.size() <= bytes_->size() - offset);
    std::ranges::copy(bytes, bytes_->begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  Status Sync() override { return {}; }
  Status Commit() override { return {}; }

 private:
  std::vector<std::byte>* bytes_;
};

}  // namespace sluice::gguf
