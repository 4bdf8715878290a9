#include "gguf/writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "gguf/checksums.h"

namespace sluice::gguf {
namespace {

// Collects little-endian values.
class Bytes {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    Put(std::as_bytes(std::span(&value, 1)));
  }
  void Put(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    bytes_.resize(bytes_.size() + bytes.size());
    std::memcpy(bytes_.data() + bytes_.size() - bytes.size(), bytes.data(), bytes.size());
  }
  void PutString(std::string_view text) {
    Put(uint64_t{text.size()});
    Put(std::as_bytes(std::span(text)));
  }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

uint64_t DirectoryBytes(const Tensor& tensor) {
  return sizeof(uint64_t) + tensor.name.size() + sizeof(uint32_t) + tensor.n_dims * sizeof(uint64_t) +
         sizeof(uint32_t) + sizeof(uint64_t);
}

Writer::Writer(Metadata metadata) : metadata_(std::move(metadata)) {
  for (const std::string_view key : {kSplitNo, kSplitCount, kSplitTensors}) metadata_.Remove(key);
  RemoveChecksums(metadata_);
  metadata_.SetString("sluice.writer.name", "sluice");
  metadata_.SetString("sluice.writer.version", SLUICE_VERSION);
}

Status Writer::AddTensor(std::string_view name, formats::DType dtype, std::span<const uint64_t> dims) {
  SLUICE_CHECK(sink_ == nullptr);
  if (dims.empty() || dims.size() > kMaxDims) {
    return Fail(ErrorCode::kInvalidArgument, "tensor {}: has {} dimensions, expected 1 to {}", name,
                dims.size(), kMaxDims);
  }
  if (auto status = CheckLabel(name, kMaxTensorNameBytes); !status) {
    return Annotate(std::move(status).error(), "a tensor name");
  }
  Tensor tensor;
  tensor.name = name;
  tensor.type_id = static_cast<uint32_t>(dtype);
  tensor.traits = &formats::Traits(dtype);
  tensor.n_dims = static_cast<uint32_t>(dims.size());
  std::ranges::copy(dims, tensor.dims.begin());
  SLUICE_TRY(ComputeSize(tensor));
  const auto [at, inserted] = names_.emplace(name);
  if (!inserted) return Fail(ErrorCode::kInvalidArgument, "tensor {}: was added before", name);
  tensor.name = *at;
  tensors_.push_back(tensor);
  return {};
}

Result<uint64_t> Writer::Alignment() const {
  SLUICE_TRY_ASSIGN(const uint32_t alignment, metadata_.GetU32Or(kAlignmentKey, kDefaultAlignment));
  const Entry* entry = metadata_.Find(kAlignmentKey);
  if (!std::has_single_bit(alignment) || (entry != nullptr && entry->type != ValueType::kU32)) {
    return Fail(ErrorCode::kInvalidArgument, "metadata key {}: must be a power of two in a u32",
                kAlignmentKey);
  }
  return uint64_t{alignment};
}

std::vector<std::byte> Writer::MakeHeader(uint64_t alignment) const {
  Bytes header;
  header.Put(std::as_bytes(std::span("GGUF", 4)));
  header.Put(uint32_t{3});
  header.Put(uint64_t{tensors_.size()});
  header.Put(uint64_t{metadata_.entries().size()});
  for (const Entry& entry : metadata_.entries()) {
    header.PutString(entry.key);
    header.Put(static_cast<uint32_t>(entry.type));
    if (entry.type == ValueType::kArray) {
      header.Put(static_cast<uint32_t>(entry.element_type));
      header.Put(entry.count);
    }
    header.Put(entry.payload);
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    header.PutString(tensor.name);
    header.Put(tensor.n_dims);
    for (uint32_t i = 0; i < tensor.n_dims; ++i) header.Put(tensor.dims[i]);
    header.Put(tensor.type_id);
    header.Put(offset);
    offset += AlignUp(tensor.size_bytes, alignment);
  }
  return header.Take();
}

Result<uint64_t> Writer::HeaderBytes() const {
  SLUICE_TRY_ASSIGN(const uint64_t alignment, Alignment());
  return uint64_t{MakeHeader(alignment).size()};
}

Result<uint64_t> Writer::FileBytes() const {
  SLUICE_TRY_ASSIGN(const uint64_t alignment, Alignment());
  SLUICE_TRY_ASSIGN(const uint64_t header_bytes, HeaderBytes());
  uint64_t size = AlignUp(header_bytes, alignment);
  for (const Tensor& tensor : tensors_) size += AlignUp(tensor.size_bytes, alignment);
  return size;
}

Status Writer::Begin(ByteSink& sink) {
  SLUICE_CHECK(sink_ == nullptr);
  SLUICE_TRY_ASSIGN(alignment_, Alignment());
  const std::vector<std::byte> header = MakeHeader(alignment_);
  header_bytes_ = header.size();
  sink_ = &sink;
  SLUICE_TRY(sink_->Write(header));
  position_ = header.size();
  return Pad();
}

Status Writer::WriteData(std::span<const std::byte> bytes) {
  SLUICE_CHECK(sink_ != nullptr && current_ < tensors_.size());
  const uint64_t left = tensors_[current_].size_bytes - written_;
  SLUICE_CHECK(bytes.size() <= left);
  SLUICE_TRY(sink_->Write(bytes));
  position_ += bytes.size();
  written_ += bytes.size();
  if (bytes.size() < left) return {};
  ++current_;
  written_ = 0;
  return Pad();
}

Status Writer::RewriteHeader() {
  const std::vector<std::byte> header = MakeHeader(alignment_);
  SLUICE_CHECK(sink_ != nullptr && header.size() == header_bytes_);
  return sink_->Rewrite(0, header);
}

Status Writer::Finish() {
  SLUICE_CHECK(sink_ != nullptr && done());
  return sink_->Commit();
}

Status Writer::Pad() {
  constexpr std::byte kZeros[4096] = {};
  uint64_t left = AlignUp(position_, alignment_) - position_;
  position_ += left;
  while (left > 0) {
    const size_t piece = std::min<uint64_t>(left, sizeof(kZeros));
    SLUICE_TRY(sink_->Write(std::span(kZeros, piece)));
    left -= piece;
  }
  return {};
}

}  // namespace sluice::gguf
