#include "convert/zip_directory.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace sluice::convert {

namespace {

constexpr uint32_t kEntrySignature = 0x02014b50;         // in the central directory
constexpr uint32_t kLocalSignature = 0x04034b50;         // before the bytes of an entry
constexpr uint32_t kEndSignature = 0x06054b50;           // behind the central directory
constexpr uint32_t kEnd64Signature = 0x06064b50;         // the same with wider fields …
constexpr uint32_t kEnd64LocatorSignature = 0x07064b50;  // … and where that one lies
constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kEnd64LocatorBytes = 20, kLocalBytes = 30;
constexpr uint64_t kMaxCommentBytes = 65535;
constexpr uint64_t kMaxDirectoryBytes = 64u << 20;
constexpr uint16_t kZip64Field = 1, kEncrypted = 1;
constexpr uint32_t kInZip64Field = 0xffffffff;

std::string_view MethodName(uint16_t method) {
  return method == 8    ? "deflate"
         : method == 9  ? "deflate64"
         : method == 12 ? "bzip2"
         : method == 14 ? "lzma"
                        : "unknown";
}

// Sizes and place of an entry, in the wide fields where the narrow ones say so.
Status ReadZip64(std::span<const std::byte> extra, uint64_t& size, uint64_t& stored, uint64_t& offset) {
  ByteReader reader(extra);
  while (reader.remaining() >= 4) {
    SLUICE_TRY_ASSIGN(const auto id, reader.Read<uint16_t>("an extra field"));
    SLUICE_TRY_ASSIGN(const auto bytes, reader.Read<uint16_t>("an extra field"));
    SLUICE_TRY_ASSIGN(const auto body, reader.ReadBytes(bytes, "an extra field"));
    if (id != kZip64Field) continue;
    ByteReader wide(body);
    for (uint64_t* field : {&size, &stored, &offset}) {
      if (*field != kInZip64Field) continue;
      SLUICE_TRY_ASSIGN(*field, wide.Read<uint64_t>("a zip64 field"));
    }
  }
  return {};
}

Result<ZipEntry> ReadEntry(ByteReader& reader, uint64_t file_bytes) {
  const size_t at = reader.offset();
  const auto u16 = [&] { return reader.Read<uint16_t>("an entry of the zip directory"); };
  const auto u32 = [&] { return reader.Read<uint32_t>("an entry of the zip directory"); };
  const auto skip = [&](uint64_t bytes) { return reader.ReadBytes(bytes, "an entry of the zip directory"); };
  SLUICE_TRY_ASSIGN(const uint32_t signature, u32());
  if (signature != kEntrySignature)
    return Fail(ErrorCode::kCorrupt, "byte {} of the zip directory begins with {:#010x}; expected {:#010x}",
                at, signature, kEntrySignature);
  SLUICE_TRY(skip(4));  // versions
  SLUICE_TRY_ASSIGN(const uint16_t flags, u16());
  SLUICE_TRY_ASSIGN(const uint16_t method, u16());
  SLUICE_TRY(skip(8));  // time, date, checksum
  SLUICE_TRY_ASSIGN(uint64_t stored, u32());
  SLUICE_TRY_ASSIGN(uint64_t size, u32());
  SLUICE_TRY_ASSIGN(const uint16_t name_bytes, u16());
  SLUICE_TRY_ASSIGN(const uint16_t extra_bytes, u16());
  SLUICE_TRY_ASSIGN(const uint16_t comment_bytes, u16());
  SLUICE_TRY(skip(8));  // part, attributes
  SLUICE_TRY_ASSIGN(uint64_t offset, u32());
  SLUICE_TRY_ASSIGN(const auto name, skip(name_bytes));
  SLUICE_TRY_ASSIGN(const auto extra, skip(extra_bytes));
  SLUICE_TRY(skip(comment_bytes));
  SLUICE_TRY(ReadZip64(extra, size, stored, offset));
  ZipEntry entry{.name = std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                 .header_offset = offset,
                 .size_bytes = size};
  if ((flags & kEncrypted) != 0) return Fail(ErrorCode::kUnsupported, "entry {} is encrypted", entry.name);
  if (method != 0) {
    return Fail(
        ErrorCode::kUnsupported,
        "entry {} is compressed (method {}, {}); only stored entries, as torch.save writes them, can be "
        "read in place: unpack the file and pack it again without compression (zip -0)",
        entry.name, method, MethodName(method));
  }
  if (stored != size)
    return Fail(ErrorCode::kCorrupt, "entry {} is stored and has {} bytes packed, {} unpacked", entry.name,
                stored, size);
  if (offset > file_bytes || size > file_bytes - offset)
    return Fail(ErrorCode::kCorrupt, "entry {} has {} bytes at byte {}; the file has {}", entry.name, size,
                offset, file_bytes);
  return entry;
}

struct DirectoryPlace {
  uint64_t offset = 0, size_bytes = 0;
};

// What the wide end of the directory says, which lies at `offset`.
Result<DirectoryPlace> ReadEnd64(const platform::File& file, uint64_t file_bytes, uint64_t offset) {
  if (offset > file_bytes || kEnd64Bytes > file_bytes - offset)
    return Fail(ErrorCode::kCorrupt, "the zip64 directory ends at byte {}; the file has {}", offset,
                file_bytes);
  std::vector<std::byte> record(kEnd64Bytes);
  SLUICE_TRY(file.PreadFull(offset, record));
  ByteReader wide(record);
  SLUICE_TRY_ASSIGN(const auto wide_signature, wide.Read<uint32_t>("the zip64 end"));
  if (wide_signature != kEnd64Signature)
    return Fail(ErrorCode::kCorrupt, "byte {} has no end of a zip64 directory", offset);
  SLUICE_TRY(wide.ReadBytes(36, "the zip64 end"));  // size of the record, versions, parts, numbers of entries
  DirectoryPlace place;
  SLUICE_TRY_ASSIGN(place.size_bytes, wide.Read<uint64_t>("the zip64 end"));
  SLUICE_TRY_ASSIGN(place.offset, wide.Read<uint64_t>("the zip64 end"));
  return place;
}

// What the end of the file says of the directory.
Result<DirectoryPlace> FindDirectory(const platform::File& file, uint64_t file_bytes) {
  std::vector<std::byte> tail(static_cast<size_t>(std::min(file_bytes, kEndBytes + kMaxCommentBytes)));
  SLUICE_TRY(file.PreadFull(file_bytes - tail.size(), tail));
  const std::span<const std::byte> end(tail);
  for (size_t at = tail.size() < kEndBytes ? 0 : tail.size() - kEndBytes + 1; at-- > 0;) {
    ByteReader reader(end.subspan(at));
    SLUICE_TRY_ASSIGN(const auto signature, reader.Read<uint32_t>("the end of the zip directory"));
    if (signature != kEndSignature) continue;
    SLUICE_TRY(reader.ReadBytes(8, "the end of the zip directory"));  // parts, numbers of entries
    SLUICE_TRY_ASSIGN(const auto size, reader.Read<uint32_t>("the end of the zip directory"));
    SLUICE_TRY_ASSIGN(const auto offset, reader.Read<uint32_t>("the end of the zip directory"));
    SLUICE_TRY_ASSIGN(const auto comment, reader.Read<uint16_t>("the end of the zip directory"));
    if (at + kEndBytes + comment != tail.size()) continue;
    if (at < kEnd64LocatorBytes) return DirectoryPlace{.offset = offset, .size_bytes = size};
    ByteReader locator(end.subspan(at - kEnd64LocatorBytes, kEnd64LocatorBytes));
    SLUICE_TRY_ASSIGN(const auto mark, locator.Read<uint32_t>("the zip64 locator"));
    if (mark != kEnd64LocatorSignature) return DirectoryPlace{.offset = offset, .size_bytes = size};
    SLUICE_TRY(locator.ReadBytes(4, "the zip64 locator"));
    SLUICE_TRY_ASSIGN(const auto end64, locator.Read<uint64_t>("the zip64 locator"));
    return ReadEnd64(file, file_bytes, end64);
  }
  return Fail(ErrorCode::kCorrupt, "is no zip file, or has lost its end: a zip's directory stands there");
}

// Where an entry's bytes begin: behind its local header, whose name and extra field have lengths of their
// own.
Status FindBytes(const platform::File& file, uint64_t file_bytes, ZipEntry& entry) {
  std::vector<std::byte> header(kLocalBytes);
  SLUICE_TRY(file.PreadFull(entry.header_offset, header));
  ByteReader reader(header);
  SLUICE_TRY_ASSIGN(const auto signature, reader.Read<uint32_t>("a local header"));
  if (signature != kLocalSignature)
    return Fail(ErrorCode::kCorrupt, "entry {} has no header at byte {}", entry.name, entry.header_offset);
  SLUICE_TRY(reader.ReadBytes(22, "a local header"));
  SLUICE_TRY_ASSIGN(const auto name_bytes, reader.Read<uint16_t>("a local header"));
  SLUICE_TRY_ASSIGN(const auto extra_bytes, reader.Read<uint16_t>("a local header"));
  entry.offset = entry.header_offset + kLocalBytes + name_bytes + extra_bytes;
  if (entry.offset > file_bytes || entry.size_bytes > file_bytes - entry.offset)
    return Fail(ErrorCode::kCorrupt, "entry {} has {} bytes at byte {}; the file has {}", entry.name,
                entry.size_bytes, entry.offset, file_bytes);
  return {};
}

}  // namespace

Result<std::vector<ZipEntry>> ParseZipDirectory(std::span<const std::byte> directory, uint64_t file_bytes) {
  std::vector<ZipEntry> entries;
  ByteReader reader(directory);
  while (reader.remaining() > 0) {
    SLUICE_TRY_ASSIGN(ZipEntry entry, ReadEntry(reader, file_bytes));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<ZipEntry>> ReadZip(const platform::File& file) {
  SLUICE_TRY_ASSIGN(const uint64_t file_bytes, file.Size());
  SLUICE_TRY_ASSIGN(const DirectoryPlace place, FindDirectory(file, file_bytes));
  if (place.offset > file_bytes || place.size_bytes > file_bytes - place.offset)
    return Fail(ErrorCode::kCorrupt, "the zip directory has {} bytes at byte {}; the file has {}",
                place.size_bytes, place.offset, file_bytes);
  if (place.size_bytes > kMaxDirectoryBytes)
    return Fail(ErrorCode::kResourceExhausted, "the zip directory has {} bytes; at most {} are read",
                place.size_bytes, kMaxDirectoryBytes);
  std::vector<std::byte> directory(static_cast<size_t>(place.size_bytes));
  SLUICE_TRY(file.PreadFull(place.offset, directory));
  SLUICE_TRY_ASSIGN(std::vector<ZipEntry> entries, ParseZipDirectory(directory, file_bytes));
  for (ZipEntry& entry : entries) SLUICE_TRY(FindBytes(file, file_bytes, entry));
  return entries;
}

}  // namespace sluice::convert
