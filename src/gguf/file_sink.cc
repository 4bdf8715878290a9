#include "gguf/byte_sink.h"
#include "platform/atomic_writer.h"

namespace sluice::gguf {
namespace {

class FileSink final : public ByteSink {
 public:
  explicit FileSink(platform::AtomicWriter writer) : writer_(std::move(writer)) {}
  Status Write(std::span<const std::byte> bytes) override { return writer_.Write(bytes); }
  Status Rewrite(uint64_t offset, std::span<const std::byte> bytes) override {
    return writer_.Pwrite(offset, bytes);
  }
  Status Sync() override { return writer_.Sync(); }
  Status Commit() override { return writer_.Commit(); }

 private:
  platform::AtomicWriter writer_;
};

}  // namespace

Result<std::unique_ptr<ByteSink>> CreateFileSink(const std::string& path, uint64_t file_bytes,
                                                 std::span<const platform::FileIdentity> inputs) {
  SLUICE_TRY_ASSIGN(platform::AtomicWriter writer, platform::AtomicWriter::Create(path, file_bytes, inputs));
  return std::unique_ptr<ByteSink>(std::make_unique<FileSink>(std::move(writer)));
}

}  // namespace sluice::gguf
