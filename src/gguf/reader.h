// GgufFile: an opened model, from one GGUF file or from the parts of a split one.
//
//   SLUICE_TRY_ASSIGN(gguf::GgufFile file, gguf::GgufFile::Open(path));
//   SLUICE_TRY_ASSIGN(const uint32_t layers, file.metadata().GetU32("llama.block_count"));
//   SLUICE_TRY_ASSIGN(const gguf::Tensor* norm, file.Require("output_norm.weight"));
//   SLUICE_TRY(file.Read(*norm, 0, bytes));
//
// Owns its sources and the bytes of the headers; names and metadata views live as long as it does, also after
// a move. All const functions may be called from several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/byte_source.h"
#include "gguf/header.h"
#include "gguf/metadata.h"

namespace sluice::gguf {

// One file of a model.
struct Shard {
  std::string path;
  uint64_t file_bytes = 0;
  uint64_t data_offset = 0;
};

// A whole GGUF file with tensors of a model in other types, and which of them count.
struct Replacement {
  std::string path;
  std::vector<std::string> tensors;  // empty: all
};

// What Open insists on.
enum class Purpose {
  kUse,     // every tensor's bytes are there; anything that makes the file unfit is Open's error
  kInspect  // the header alone must be sound; the rest is listed in problems(). A file's first MiB may be
            // enough.
};

class GgufFile {
 public:
  using Opener = std::function<Result<std::unique_ptr<ByteSource>>(const std::string& path)>;

  // Opens the file at `path`, which may be the first part of a split model; `opener` opens it and its other
  // parts. Errors say which file, and kCorrupt, kUnsupported, kNotFound or kIo.
  static Result<GgufFile> Open(const std::string& path, Purpose purpose = Purpose::kUse);
  static Result<GgufFile> Open(const std::string& path, Purpose purpose, const Opener& opener);

  // Tensors of another GGUF file stand in for those of the same names from here on, in place and order; the
  // rest of that file counts for nothing. Pointers to tensors stay good. Errors: those of Open;
  // kInvalidArgument, with nothing changed, for a tensor that this model lacks or has in another shape, or
  // one that is asked for and not there.
  Status Replace(const Replacement& replacement);
  Status Replace(const Replacement& replacement, const Opener& opener);

  const Metadata& metadata() const { return metadata_; }
  Metadata& metadata() { return metadata_; }

  std::span<const Tensor> tensors() const { return tensors_; }  // in file order, shard after shard
  const Tensor* Find(std::string_view name) const;              // null when absent
  // Errors: those of RequireKnown.
  Result<const Tensor*> Require(std::string_view name) const;

  // Bytes [offset, offset + out.size()) of the tensor's data; the range must lie inside of it.
  Status Read(const Tensor& tensor, uint64_t offset, std::span<std::byte> out) const;

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  std::span<const Shard> shards() const { return shards_; }
  std::vector<std::string> Paths() const;  // of the shards
  uint64_t tensor_bytes() const;           // of all tensors of known type
  // What is wrong with the file though it could be opened. After Purpose::kUse only tensors of unknown types.
  std::span<const Problem> problems() const { return problems_; }

 private:
  GgufFile() = default;
  Status AddShard(std::string path, std::unique_ptr<ByteSource> source, Header header);
  Status OpenOtherShards(Purpose purpose, const Opener& opener);
  Status IndexTensors();

  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  Metadata metadata_;                     // of the first shard
  std::vector<Metadata> other_metadata_;  // of the others: it holds their tensors' names
  std::vector<Shard> shards_;
  std::vector<std::unique_ptr<ByteSource>> sources_;  // one for each shard
  std::vector<Tensor> tensors_;
  std::vector<uint32_t> by_name_;  // indices of tensors_, sorted by name
  std::vector<Problem> problems_;
};

// The tensor that was looked up by `name`, known to be readable. Errors: kNotFound when there is none;
// kUnsupported, naming an unknown type id.
Result<const Tensor*> RequireKnown(const Tensor* tensor, std::string_view name);

// "model-00002-of-00003.gguf" for ("model", 2, 3): how the parts of a split model are called. `part` counts
// from 1.
std::string ShardPath(std::string_view prefix, uint32_t part, uint32_t count);

}  // namespace sluice::gguf
