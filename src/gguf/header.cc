#include "gguf/header.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/units.h"

namespace sluice::gguf {
namespace {

constexpr uint64_t kFirstRead = 1 << 20;

// A piece of the header, by its place: the buffer may still move when more is read.
struct Piece {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Reads a header from its front, fetching more of the file only when the next field needs it.
class HeaderCursor {
 public:
  explicit HeaderCursor(const ByteSource& source) : source_(source) {}

  uint64_t offset() const { return offset_; }
  // Bytes of the file that lie ahead.
  uint64_t remaining() const { return source_.size() - offset_; }

  Result<Piece> Take(uint64_t size, std::string_view what) {
    SLUICE_TRY(Need(size, what));
    const Piece piece{offset_, size};
    offset_ += size;
    return piece;
  }

  template <typename T>
  Result<T> Read(std::string_view what) {
    SLUICE_TRY_ASSIGN(const Piece piece, Take(sizeof(T), what));
    T value;
    std::memcpy(&value, buffer_.get() + piece.offset, sizeof(T));
    return value;
  }

  // A string that names something.
  Result<Piece> Label(size_t max_bytes, std::string_view what) {
    const uint64_t at = offset_;
    SLUICE_TRY_ASSIGN(const Piece label, String(what));
    if (auto status = CheckLabel(View(label), max_bytes); !status) {
      return Annotate(std::move(status).error(), fmt::format("{} at byte {}", what, at));
    }
    return label;
  }

  // A 64-bit length and as many bytes; the piece is the bytes alone.
  Result<Piece> String(std::string_view what) {
    SLUICE_TRY_ASSIGN(const uint64_t length, Read<uint64_t>(what));
    return Take(length, what);
  }

  std::string_view View(Piece piece) const {
    return {reinterpret_cast<const char*>(buffer_.get() + piece.offset), static_cast<size_t>(piece.size)};
  }
  std::span<const std::byte> Bytes(Piece piece) const {
    return {buffer_.get() + piece.offset, static_cast<size_t>(piece.size)};
  }
  // To be called when all is read: keeps the header and forgets what was read beyond it. Views are made after
  // this.
  void Trim() {
    auto exact = std::make_unique_for_overwrite<std::byte[]>(offset_);
    std::memcpy(exact.get(), buffer_.get(), offset_);
    buffer_ = std::move(exact);
    loaded_ = offset_;
  }
  // Gives the bytes away; views of them stay valid.
  std::unique_ptr<std::byte[]> Release() { return std::move(buffer_); }

 private:
  Status Need(uint64_t size, std::string_view what) {
    if (size > remaining()) {
      return Fail(ErrorCode::kCorrupt, "{} at byte {} needs {} bytes, but the file ends {} bytes further on",
                  what, offset_, size, remaining());
    }
    if (size > kMaxHeaderBytes || offset_ + size > kMaxHeaderBytes) {
      return Fail(ErrorCode::kResourceExhausted,
                  "{} at byte {} needs {} bytes, which makes the header larger than {}", what, offset_, size,
                  FormatBytes(kMaxHeaderBytes));
    }
    if (offset_ + size <= loaded_) return {};
    const uint64_t wanted = std::max({offset_ + size, 2 * loaded_, kFirstRead});
    const uint64_t target = std::min(wanted, source_.size());
    auto larger = std::make_unique_for_overwrite<std::byte[]>(target);
    if (loaded_ > 0) std::memcpy(larger.get(), buffer_.get(), loaded_);
    SLUICE_TRY(source_.ReadAt(loaded_, {larger.get() + loaded_, static_cast<size_t>(target - loaded_)}));
    buffer_ = std::move(larger);
    loaded_ = target;
    return {};
  }

  const ByteSource& source_;
  std::unique_ptr<std::byte[]> buffer_;
  uint64_t loaded_ = 0;
  uint64_t offset_ = 0;
};

// A metadata pair whose views are still places.
struct PendingEntry {
  Piece key;
  ValueType type;
  ValueType element_type;
  uint64_t count;
  Piece payload;
};

struct PendingTensor {
  Piece name;
  Tensor tensor;
};

// What a file is that does not begin with GGUF's four letters, as far as can be told from its first bytes.
std::string_view GuessFormat(std::string_view head) {
  if (head.starts_with("version https://git-lfs")) return "a Git LFS pointer, not the file it stands for";
  if (head.starts_with("PK")) return "a zip archive or PyTorch checkpoint";
  if (head.starts_with("<")) return "a web page";
  for (const std::string_view magic : {"lmgg", "fmgg", "tjgg"}) {
    if (head.starts_with(magic)) return "a model file older than GGUF";
  }
  if (head.size() > 8 && head[8] == '{') return "a safetensors file";
  return "something else";
}

Status ReadMagicAndVersion(const ByteSource& source, HeaderCursor& cursor, Header& header) {
  if (cursor.remaining() < 8) {
    return Fail(ErrorCode::kCorrupt, "the file has {} bytes, too few for a GGUF header", cursor.remaining());
  }
  SLUICE_TRY_ASSIGN(const uint32_t magic, cursor.Read<uint32_t>("magic"));
  if (magic != 0x46554747) {  // "GGUF"
    char head[32] = {};
    const auto size = static_cast<size_t>(std::min<uint64_t>(source.size(), sizeof(head)));
    SLUICE_TRY(source.ReadAt(0, std::as_writable_bytes(std::span(head, size))));
    return Fail(ErrorCode::kCorrupt,
                "not a GGUF file: it begins with bytes {:#010x} instead of \"GGUF\" and looks like {}", magic,
                GuessFormat({head, size}));
  }
  SLUICE_TRY_ASSIGN(header.version, cursor.Read<uint32_t>("version"));
  const auto swapped = __builtin_bswap32(header.version);
  if (header.version != swapped && header.version > 0xffff && swapped <= 0xffff) {
    return Fail(ErrorCode::kUnsupported, "GGUF version {} in the other byte order: a big-endian file",
                swapped);
  }
  if (header.version != 2 && header.version != 3) {
    return Fail(ErrorCode::kUnsupported, "GGUF version {} is not supported (2 and 3 are)", header.version);
  }
  return {};
}

Result<ValueType> ReadValueType(HeaderCursor& cursor, std::string_view key) {
  const uint64_t at = cursor.offset();
  SLUICE_TRY_ASSIGN(const uint32_t id, cursor.Read<uint32_t>("value type"));
  if (id >= kValueTypeLimit) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: unknown value type {} at byte {}", key, id, at);
  }
  return static_cast<ValueType>(id);
}

// Steps over the elements of an array; its payload is everything between.
Result<Piece> ReadArray(HeaderCursor& cursor, ValueType element_type, uint64_t count) {
  const Piece begin{cursor.offset(), 0};
  if (const size_t size = FixedSize(element_type); size > 0) {
    uint64_t bytes;
    if (!CheckedMultiply(count, size, &bytes)) bytes = std::numeric_limits<uint64_t>::max();
    return cursor.Take(bytes, "array");
  }
  // Every string has at least its length: a count that cannot be true is refused at once.
  if (count > cursor.remaining() / sizeof(uint64_t)) {
    return cursor.Take(std::numeric_limits<uint64_t>::max(), "array");
  }
  for (uint64_t i = 0; i < count; ++i) SLUICE_TRY(cursor.String("array element"));
  return Piece{begin.offset, cursor.offset() - begin.offset};
}

Result<PendingEntry> ReadEntry(HeaderCursor& cursor, uint64_t index) {
  PendingEntry entry{};
  auto key = cursor.Label(kMaxKeyBytes, "key");
  if (!key) return Annotate(std::move(key).error(), fmt::format("metadata pair {}", index));
  entry.key = *key;
  const auto annotate = [&](Error error) {
    return Annotate(std::move(error), fmt::format("metadata key {}", cursor.View(entry.key)));
  };
  SLUICE_TRY_ASSIGN(entry.type, ReadValueType(cursor, cursor.View(entry.key)));
  entry.element_type = entry.type;
  entry.count = 1;
  Result<Piece> payload = Piece{};
  if (entry.type == ValueType::kArray) {
    SLUICE_TRY_ASSIGN(entry.element_type, ReadValueType(cursor, cursor.View(entry.key)));
    if (entry.element_type == ValueType::kArray) {
      return Fail(ErrorCode::kUnsupported, "metadata key {}: an array of arrays", cursor.View(entry.key));
    }
    auto count = cursor.Read<uint64_t>("array length");
    if (!count) return annotate(std::move(count).error());
    entry.count = *count;
    payload = ReadArray(cursor, entry.element_type, entry.count);
  } else if (entry.type == ValueType::kString) {
    payload = cursor.String("string");
    if (payload) payload = Piece{payload->offset - sizeof(uint64_t), payload->size + sizeof(uint64_t)};
  } else {
    payload = cursor.Take(FixedSize(entry.type), "value");
  }
  if (!payload) return annotate(std::move(payload).error());
  entry.payload = *payload;
  return entry;
}

Result<PendingTensor> ReadTensor(HeaderCursor& cursor, uint64_t index) {
  PendingTensor pending;
  auto name = cursor.Label(kMaxTensorNameBytes, "name");
  if (!name) return Annotate(std::move(name).error(), fmt::format("tensor {}", index));
  pending.name = *name;
  Tensor& tensor = pending.tensor;
  const auto read = [&]() -> Status {
    SLUICE_TRY_ASSIGN(tensor.n_dims, cursor.Read<uint32_t>("number of dimensions"));
    if (tensor.n_dims > kMaxDims) {
      return Fail(ErrorCode::kCorrupt, "has {} dimensions, expected at most {}", tensor.n_dims, kMaxDims);
    }
    for (uint32_t i = 0; i < tensor.n_dims; ++i) {
      SLUICE_TRY_ASSIGN(tensor.dims[i], cursor.Read<uint64_t>("dimension"));
    }
    SLUICE_TRY_ASSIGN(tensor.type_id, cursor.Read<uint32_t>("type"));
    SLUICE_TRY_ASSIGN(tensor.offset, cursor.Read<uint64_t>("offset"));
    return {};
  };
  if (auto status = read(); !status) {
    return Annotate(std::move(status).error(), fmt::format("tensor {}", cursor.View(pending.name)));
  }
  tensor.traits = formats::FindDType(tensor.type_id);
  tensor.name = cursor.View(pending.name);  // for the message; the lasting view is made when all is read
  SLUICE_TRY(ComputeSize(tensor));
  return pending;
}

Result<uint64_t> ReadAlignment(const Metadata& metadata) {
  const Entry* entry = metadata.Find(kAlignmentKey);
  if (entry == nullptr) return uint64_t{kDefaultAlignment};
  if (entry->type != ValueType::kU32) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: is {}, expected u32", kAlignmentKey, Describe(*entry));
  }
  SLUICE_TRY_ASSIGN(const uint32_t alignment, metadata.GetU32(kAlignmentKey));
  if (!std::has_single_bit(alignment)) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: is {}, expected a power of two", kAlignmentKey,
                alignment);
  }
  return uint64_t{alignment};
}

// Notes a problem, unless there are plenty already: a list that a file could make as long as it likes helps
// nobody.
template <typename... Args>
void AddProblem(Header& header, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (header.problems.size() < kMaxProblems) {
    header.problems.push_back(Fail(code, format, std::forward<Args>(args)...));
  }
}

// Offsets in the file are relative to data_offset; makes them absolute, and notes what cannot be right.
void PlaceTensors(Header& header) {
  const uint64_t data_bytes = header.file_bytes - std::min(header.data_offset, header.file_bytes);
  for (Tensor& tensor : header.tensors) {
    if (tensor.offset % header.alignment != 0) {
      AddProblem(header, ErrorCode::kCorrupt, "tensor {}: offset {} is not a multiple of the alignment {}",
                 tensor.name, tensor.offset, header.alignment);
    }
    // Compared by subtraction: no sum of numbers from the file can wrap.
    if (tensor.offset > data_bytes || tensor.size_bytes > data_bytes - tensor.offset) {
      AddProblem(header, ErrorCode::kCorrupt,
                 "tensor {}: needs {} bytes at {} + {}, but the file has {} bytes (cut short?)", tensor.name,
                 tensor.size_bytes, header.data_offset, tensor.offset, header.file_bytes);
    }
    if (!CheckedAdd(tensor.offset, header.data_offset, &tensor.offset)) {
      tensor.offset = std::numeric_limits<uint64_t>::max();
    }
  }
}

void FindOverlaps(Header& header) {
  std::vector<uint32_t> by_offset(header.tensors.size());
  std::iota(by_offset.begin(), by_offset.end(), 0u);
  std::ranges::sort(by_offset, {}, [&](uint32_t i) { return std::pair(header.tensors[i].offset, i); });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const Tensor& before = header.tensors[by_offset[i - 1]];
    const Tensor& after = header.tensors[by_offset[i]];
    if (before.size_bytes > after.offset - before.offset) {
      AddProblem(header, ErrorCode::kCorrupt, "tensor {}: its {} bytes at {} reach into tensor {} at {}",
                 before.name, before.size_bytes, before.offset, after.name, after.offset);
    }
  }
}

void FindUnknownTypes(Header& header) {
  for (const Tensor& tensor : header.tensors) {
    if (tensor.traits != nullptr) continue;
    AddProblem(header, ErrorCode::kUnsupported, "tensor {}: uses type id {}, which is not supported",
               tensor.name, tensor.type_id);
  }
}

}  // namespace

Result<Header> ReadHeader(const ByteSource& source) {
  Header header;
  header.file_bytes = source.size();
  HeaderCursor cursor(source);
  SLUICE_TRY(ReadMagicAndVersion(source, cursor, header));
  SLUICE_TRY_ASSIGN(const uint64_t tensor_count, cursor.Read<uint64_t>("tensor count"));
  SLUICE_TRY_ASSIGN(const uint64_t key_count, cursor.Read<uint64_t>("metadata count"));
  if (tensor_count > kMaxTensors || key_count > kMaxKeys) {
    return Fail(ErrorCode::kCorrupt,
                "the header claims {} tensors and {} metadata keys; at most {} and {} are read", tensor_count,
                key_count, kMaxTensors, kMaxKeys);
  }

  std::vector<PendingEntry> pending_entries;
  for (uint64_t i = 0; i < key_count; ++i) {
    SLUICE_TRY_ASSIGN(pending_entries.emplace_back(), ReadEntry(cursor, i));
  }
  std::vector<PendingTensor> pending_tensors;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    SLUICE_TRY_ASSIGN(pending_tensors.emplace_back(), ReadTensor(cursor, i));
  }

  // The buffer stays where it is from here on, so places become views.
  cursor.Trim();
  std::vector<Entry> entries;
  entries.reserve(pending_entries.size());
  for (const PendingEntry& entry : pending_entries) {
    entries.push_back(
        {cursor.View(entry.key), entry.type, entry.element_type, entry.count, cursor.Bytes(entry.payload)});
  }
  header.tensors.reserve(pending_tensors.size());
  for (const PendingTensor& pending : pending_tensors) {
    header.tensors.push_back(pending.tensor);
    header.tensors.back().name = cursor.View(pending.name);
  }
  const uint64_t header_end = cursor.offset();
  SLUICE_TRY_ASSIGN(header.metadata, Metadata::Adopt(cursor.Release(), std::move(entries)));
  SLUICE_TRY_ASSIGN(header.alignment, ReadAlignment(header.metadata));
  header.data_offset = AlignUp(header_end, header.alignment);
  PlaceTensors(header);
  FindOverlaps(header);
  FindUnknownTypes(header);  // last: the worse problems must be on the list
  return header;
}

}  // namespace sluice::gguf
