#include "gguf/split.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "gguf/tensor_copier.h"
#include "gguf/writer.h"
#include "platform/disk_room.h"

namespace sluice::gguf {
namespace {

// The writer of a part, without tensors yet. Other programs insist on the types of the split.* keys. `count`
// takes the same bytes whatever it is, so parts can be planned without it.
Writer MakePart(const GgufFile& source, size_t index, size_t count) {
  Metadata metadata;
  if (index == 0) {
    metadata = source.metadata().Copy();
  } else if (const Entry* alignment = source.metadata().Find(kAlignmentKey)) {
    metadata.Set(*alignment);
  }
  Writer writer(std::move(metadata));
  writer.metadata().SetU16(kSplitNo, static_cast<uint16_t>(index));
  writer.metadata().SetU16(kSplitCount, static_cast<uint16_t>(count));
  writer.metadata().SetI32(kSplitTensors, static_cast<int32_t>(source.tensors().size()));
  if (index == 0) ReserveChecksums(source.tensors().size(), writer.metadata());
  return writer;
}

// A part as it fills up.
class Filling {
 public:
  static Result<Filling> Create(const GgufFile& source, size_t index) {
    Filling filling(source.alignment());
    SLUICE_TRY_ASSIGN(filling.header_bytes_, MakePart(source, index, 1).HeaderBytes());
    return filling;
  }
  uint64_t FileBytes() const { return AlignUp(header_bytes_, alignment_) + data_bytes_; }
  void Add(const Tensor& tensor) {
    header_bytes_ += DirectoryBytes(tensor);
    data_bytes_ += AlignUp(tensor.size_bytes, alignment_);
  }

 private:
  explicit Filling(uint64_t alignment) : alignment_(alignment) {}
  uint64_t alignment_;
  uint64_t header_bytes_ = 0, data_bytes_ = 0;
};

Error TooSmall(std::string_view what, uint64_t bytes, uint64_t max_file_bytes) {
  return Fail(ErrorCode::kInvalidArgument, "parts of at most {} bytes: {} takes a part of {} bytes ({})",
              max_file_bytes, what, bytes, FormatBytes(bytes));
}

}  // namespace

Result<std::vector<Part>> PlanParts(const GgufFile& source, uint64_t max_file_bytes) {
  SLUICE_TRY_ASSIGN(Filling filling, Filling::Create(source, 0));
  if (filling.FileBytes() > max_file_bytes)
    return TooSmall("the metadata", filling.FileBytes(), max_file_bytes);
  std::vector<Part> parts{{.file_bytes = filling.FileBytes()}};
  for (const Tensor& tensor : source.tensors()) {
    Filling with = filling;
    with.Add(tensor);
    if (with.FileBytes() > max_file_bytes) {
      SLUICE_TRY_ASSIGN(with, Filling::Create(source, parts.size()));
      with.Add(tensor);
      if (with.FileBytes() > max_file_bytes)
        return TooSmall(fmt::format("tensor {}", tensor.name), with.FileBytes(), max_file_bytes);
      if (parts.size() == kMostParts) {
        return Fail(ErrorCode::kInvalidArgument, "parts of at most {} bytes: that makes more than {} of them",
                    max_file_bytes, kMostParts);
      }
      parts.emplace_back();
    }
    filling = with;
    parts.back().tensors.push_back(&tensor);
    parts.back().file_bytes = filling.FileBytes();
  }
  return parts;
}

Result<RepackReport> Split(const GgufFile& source, const std::vector<Part>& parts,
                           const CopyProgress& progress, const PartOpener& open) {
  SLUICE_TRY_ASSIGN(TensorCopier copier, TensorCopier::Create(source, progress));
  RepackReport report{
      .tensors = source.tensors().size(), .files = parts.size(), .compared = copier.compares()};
  std::vector<std::unique_ptr<ByteSink>> sinks;
  std::vector<Writer> writers;
  for (size_t i = 0; i < parts.size(); ++i) {
    Writer& writer = writers.emplace_back(MakePart(source, i, parts.size()));
    SLUICE_TRY(AddTensors(parts[i].tensors, writer));
    SLUICE_TRY_ASSIGN(const uint64_t file_bytes, writer.FileBytes());
    SLUICE_CHECK(file_bytes == parts[i].file_bytes);
    report.file_bytes += file_bytes;
    SLUICE_TRY_ASSIGN(sinks.emplace_back(), open(i, parts.size(), file_bytes));
    SLUICE_TRY(writer.Begin(*sinks.back()));
    for (const Tensor* tensor : parts[i].tensors) SLUICE_TRY(copier.Copy(*tensor, writer));
    SLUICE_TRY(sinks.back()->Sync());
  }
  SLUICE_TRY(copier.WriteChecksums(writers));
  SLUICE_TRY(sinks[0]->Sync());
  // The first comes last: without it the others are no model.
  for (size_t i = parts.size(); i-- > 0;) SLUICE_TRY(writers[i].Finish());
  return report;
}

Result<RepackReport> SplitFile(const GgufFile& source, uint64_t max_file_bytes, const CopyProgress& progress,
                               const std::string& prefix) {
  SLUICE_TRY_ASSIGN(const std::vector<Part> parts, PlanParts(source, max_file_bytes));
  const auto path_of = [&](size_t index) {
    return ShardPath(prefix, static_cast<uint32_t>(index + 1), static_cast<uint32_t>(parts.size()));
  };
  uint64_t largest = 0, total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    largest = std::max(largest, parts[i].file_bytes);
    total += parts[i].file_bytes;
    std::error_code ignored;
    if (std::filesystem::exists(path_of(i), ignored)) {
      return Fail(ErrorCode::kInvalidArgument,
                  "writing {}: it exists; parts are not written over, remove it first", path_of(i));
    }
  }
  SLUICE_TRY(platform::CheckRoom(prefix, largest, total));
  return Split(source, parts, progress, [&](size_t index, size_t, uint64_t file_bytes) {
    return CreateFileSink(path_of(index), file_bytes);
  });
}

}  // namespace sluice::gguf
