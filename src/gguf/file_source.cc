#include "gguf/file_source.h"

#include "platform/file.h"

namespace sluice::gguf {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(platform::File file, uint64_t size) : file_(std::move(file)), size_(size) {}
  uint64_t size() const override { return size_; }
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    return file_.PreadFull(offset, out);
  }

 private:
  platform::File file_;
  uint64_t size_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path) {
  SLUICE_TRY_ASSIGN(platform::File file, platform::File::Open(path));
  SLUICE_TRY_ASSIGN(const uint64_t size, file.Size());
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(std::move(file), size));
}

}  // namespace sluice::gguf
