// ByteSink: where a written model file goes: a file that appears whole or not at all, or memory.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "platform/file.h"

namespace sluice::gguf {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status Write(std::span<const std::byte> bytes) = 0;
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
  Status Commit() override { return {}; }

 private:
  std::vector<std::byte>* bytes_;
};

}  // namespace sluice::gguf
