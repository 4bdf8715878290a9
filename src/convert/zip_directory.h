// ZipDirectory: where the entries of a zip file lie. Entries are read in place, so only stored ones are of
// use here: a compressed or encrypted one is refused with its name. Zip64 is read, files in several parts are
// not. Source of the format: PKWARE's APPNOTE.TXT 6.3.
//
// The file is hostile: nothing is allocated by what it says, and every field is checked against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "platform/file.h"

namespace sluice::convert {

struct ZipEntry {
  std::string name;
  uint64_t header_offset = 0;  // of its local header
  uint64_t offset = 0;         // of its bytes (0 until ReadZip has seen the local header)
  uint64_t size_bytes = 0;
};

// The records of a central directory, in its order. Errors: kCorrupt naming the byte, or the entry, that
// breaks the format or leaves a file of `file_bytes`; kUnsupported for entries that aren't stored as they
// are.
Result<std::vector<ZipEntry>> ParseZipDirectory(std::span<const std::byte> directory, uint64_t file_bytes);

// The entries of a file. Errors: those; kCorrupt for a file that is no zip; kIo.
Result<std::vector<ZipEntry>> ReadZip(const platform::File& file);

}  // namespace sluice::convert
