#include "gguf/reader.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/units.h"
#include "gguf/file_source.h"

namespace sluice::gguf {
namespace {

constexpr std::string_view kArchitecture = "general.architecture";
constexpr uint32_t kMaxShards = 9999;

// What a file says about the split model that it is a part of. count 1: it is whole.
struct SplitInfo {
  uint32_t no = 0;
  uint32_t count = 1;
  uint64_t tensors = 0;  // in all parts
};

Result<SplitInfo> ReadSplitInfo(const Metadata& metadata) {
  SplitInfo split;
  if (!metadata.Has(kSplitCount)) return split;
  SLUICE_TRY_ASSIGN(split.count, metadata.GetU32(kSplitCount));
  if (split.count <= 1) return SplitInfo{};
  SLUICE_TRY_ASSIGN(split.no, metadata.GetU32(kSplitNo));
  SLUICE_TRY_ASSIGN(split.tensors, metadata.GetU64(kSplitTensors));
  if (split.count > kMaxShards || split.no >= split.count) {
    return Fail(ErrorCode::kCorrupt, "metadata says part {} of {} ({} and {})", split.no, split.count,
                kSplitNo, kSplitCount);
  }
  return split;
}

// The name without "-0000N-of-0000M.gguf", or nothing when it does not end like that.
std::string_view ShardPrefix(std::string_view path, uint32_t part, uint32_t count) {
  const std::string ending = ShardPath("", part, count);
  if (!path.ends_with(ending)) return {};
  return path.substr(0, path.size() - ending.size());
}

Result<Header> ReadHeaderFor(const ByteSource& source, Purpose purpose) {
  SLUICE_TRY_ASSIGN(Header header, ReadHeader(source));
  if (purpose == Purpose::kInspect) return header;
  for (const Problem& problem : header.problems) {
    if (problem.code != ErrorCode::kUnsupported) return problem;
  }
  return header;
}

}  // namespace

std::string ShardPath(std::string_view prefix, uint32_t part, uint32_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, part, count);
}

Result<GgufFile> GgufFile::Open(const std::string& path, Purpose purpose) {
  return Open(path, purpose, OpenFileSource);
}

Result<GgufFile> GgufFile::Open(const std::string& path, Purpose purpose, const Opener& opener) {
  GgufFile file;
  SLUICE_TRY_ASSIGN(std::unique_ptr<ByteSource> source, opener(path));
  const auto open = [&]() -> Status {
    SLUICE_TRY_ASSIGN(Header header, ReadHeaderFor(*source, purpose));
    file.version_ = header.version;
    file.alignment_ = header.alignment;
    SLUICE_TRY(file.AddShard(path, std::move(source), std::move(header)));
    SLUICE_TRY(file.OpenOtherShards(purpose, opener));
    return file.IndexTensors();
  };
  if (auto status = open(); !status) return Annotate(std::move(status).error(), path);
  return file;
}

Status GgufFile::AddShard(std::string path, std::unique_ptr<ByteSource> source, Header header) {
  const auto index = static_cast<uint32_t>(shards_.size());
  for (Tensor& tensor : header.tensors) tensor.shard = index;
  tensors_.insert(tensors_.end(), header.tensors.begin(), header.tensors.end());
  if (tensors_.size() > kMaxTensors) {
    return Fail(ErrorCode::kCorrupt, "more than {} tensors in the first {} parts", kMaxTensors, index + 1);
  }
  problems_.insert(problems_.end(), header.problems.begin(), header.problems.end());
  shards_.push_back({std::move(path), header.file_bytes, header.data_offset});
  sources_.push_back(std::move(source));
  if (index == 0) {
    metadata_ = std::move(header.metadata);
  } else {
    other_metadata_.push_back(std::move(header.metadata));
  }
  return {};
}

// The metadata decides whether there are other parts, never the name; the name only tells where they are.
Status GgufFile::OpenOtherShards(Purpose purpose, const Opener& opener) {
  SLUICE_TRY_ASSIGN(const SplitInfo split, ReadSplitInfo(metadata_));
  if (split.count == 1) return {};
  const std::string path = shards_[0].path;
  const std::string_view prefix = ShardPrefix(path, split.no + 1, split.count);
  if (split.no != 0) {
    return Fail(ErrorCode::kInvalidArgument, "this is part {} of {}; open the first part, {}", split.no + 1,
                split.count, ShardPath(prefix.empty() ? "NAME" : prefix, 1, split.count));
  }
  if (prefix.empty()) {
    return Fail(ErrorCode::kCorrupt,
                "this is part 1 of {}, but its name does not end in {}, so the other parts can't be found. "
                "Parts must "
                "keep their names, and must not be joined with cat",
                split.count, ShardPath("", 1, split.count));
  }

  std::string missing;
  for (uint32_t part = 2; part <= split.count; ++part) {
    std::string part_path = ShardPath(prefix, part, split.count);
    auto source = opener(part_path);
    if (!source) {
      if (source.error().code != ErrorCode::kNotFound) return std::move(source).error();
      missing += (missing.empty() ? "" : ", ") + part_path;
      continue;
    }
    auto header = ReadHeaderFor(**source, purpose);
    if (!header) return Annotate(std::move(header).error(), part_path);
    auto part_split = ReadSplitInfo(header->metadata);
    if (!part_split) return Annotate(std::move(part_split).error(), part_path);
    if (part_split->no != part - 1 || part_split->count != split.count ||
        part_split->tensors != split.tensors) {
      return Fail(ErrorCode::kCorrupt,
                  "{} belongs to another model: it says part {} of {} with {} tensors in all, expected {} of "
                  "{} with {}",
                  part_path, part_split->no + 1, part_split->count, part_split->tensors, part, split.count,
                  split.tensors);
    }
    SLUICE_TRY_ASSIGN(const std::string_view mine, metadata_.GetStringOr(kArchitecture, ""));
    SLUICE_TRY_ASSIGN(const std::string_view other, header->metadata.GetStringOr(kArchitecture, mine));
    if (mine != other) {
      return Fail(ErrorCode::kCorrupt, "{} belongs to another model: its architecture is {}, expected {}",
                  part_path, other, mine);
    }
    SLUICE_TRY(AddShard(std::move(part_path), *std::move(source), *std::move(header)));
  }
  if (!missing.empty()) {
    Error error = Fail(ErrorCode::kNotFound, "parts of the model are missing: {}", missing);
    if (purpose == Purpose::kUse) return error;
    problems_.push_back(std::move(error));
  } else if (tensors_.size() != split.tensors) {
    return Fail(ErrorCode::kCorrupt,
                "the {} parts have {} tensors, but {} says {}: parts of different models are mixed",
                split.count, tensors_.size(), kSplitTensors, split.tensors);
  }
  return {};
}

Status GgufFile::Replace(const Replacement& replacement) { return Replace(replacement, OpenFileSource); }

Status GgufFile::Replace(const Replacement& replacement, const Opener& opener) {
  const std::string& path = replacement.path;
  SLUICE_TRY_ASSIGN(std::unique_ptr<ByteSource> source, opener(path));
  auto header = ReadHeaderFor(*source, Purpose::kUse);
  if (!header) return Annotate(std::move(header).error(), path);
  std::vector<Tensor> theirs;
  for (const Tensor& tensor : header->tensors) {
    if (replacement.tensors.empty() ||
        std::ranges::find(replacement.tensors, tensor.name) != replacement.tensors.end())
      theirs.push_back(tensor);
  }
  if (theirs.size() < replacement.tensors.size()) {
    return Fail(ErrorCode::kInvalidArgument, "{}: has {} of the {} tensors that are to stand in for others",
                path, theirs.size(), replacement.tensors.size());
  }
  for (const Tensor& tensor : theirs) {
    const Tensor* const mine = Find(tensor.name);
    if (mine != nullptr && mine->dims == tensor.dims && mine->n_dims == tensor.n_dims) continue;
    return Fail(ErrorCode::kInvalidArgument, "{}: tensor {} {}, so it can't stand in for it", path,
                tensor.name, mine == nullptr ? "is not in the model" : "has another shape than the model's");
  }
  const auto shard = static_cast<uint32_t>(shards_.size());
  for (const Tensor& tensor : theirs) {
    Tensor& mine = tensors_[static_cast<size_t>(Find(tensor.name) - tensors_.data())];
    const std::string_view name = mine.name;
    mine = tensor;
    mine.name = name;
    mine.shard = shard;
  }
  shards_.push_back({path, header->file_bytes, header->data_offset});
  sources_.push_back(std::move(source));
  return {};
}

Status GgufFile::IndexTensors() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  const auto name = [this](uint32_t i) { return tensors_[i].name; };
  std::ranges::sort(by_name_, {}, name);
  const auto twice = std::ranges::adjacent_find(by_name_, {}, name);
  if (twice != by_name_.end()) return Fail(ErrorCode::kCorrupt, "tensor {}: is there twice", name(*twice));
  return {};
}

const Tensor* GgufFile::Find(std::string_view name) const {
  const auto at =
      std::ranges::lower_bound(by_name_, name, {}, [this](uint32_t i) { return tensors_[i].name; });
  if (at == by_name_.end() || tensors_[*at].name != name) return nullptr;
  return &tensors_[*at];
}

Result<const Tensor*> GgufFile::Require(std::string_view name) const {
  return RequireKnown(Find(name), name);
}

Result<const Tensor*> RequireKnown(const Tensor* tensor, std::string_view name) {
  if (tensor == nullptr) return Fail(ErrorCode::kNotFound, "tensor {}: is missing", name);
  if (tensor->traits == nullptr) {
    return Fail(ErrorCode::kUnsupported, "tensor {}: uses type id {}, which is not supported", name,
                tensor->type_id);
  }
  return tensor;
}

Status GgufFile::Read(const Tensor& tensor, uint64_t offset, std::span<std::byte> out) const {
  SLUICE_CHECK(offset <= tensor.size_bytes && out.size() <= tensor.size_bytes - offset);
  const uint64_t file_bytes = shards_[tensor.shard].file_bytes;
  if (tensor.offset > file_bytes ||
      tensor.size_bytes > file_bytes - tensor.offset) {  // only after Purpose::kInspect
    return Fail(ErrorCode::kCorrupt, "tensor {}: its data lies outside of the file's {} bytes", tensor.name,
                file_bytes);
  }
  auto status = sources_[tensor.shard]->ReadAt(tensor.offset + offset, out);
  if (!status) return Annotate(std::move(status).error(), fmt::format("tensor {}", tensor.name));
  return {};
}

std::vector<std::string> GgufFile::Paths() const {
  std::vector<std::string> paths;
  for (const Shard& shard : shards_) paths.push_back(shard.path);
  return paths;
}

uint64_t GgufFile::tensor_bytes() const {
  uint64_t sum = 0;
  for (const Tensor& tensor : tensors_) {
    // Sizes are not yet compared with the file after Purpose::kInspect.
    if (!CheckedAdd(sum, tensor.size_bytes, &sum)) return std::numeric_limits<uint64_t>::max();
  }
  return sum;
}

}  // namespace sluice::gguf
