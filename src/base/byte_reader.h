// ByteReader: a bounds-checked cursor over little-endian bytes from outside. Nothing it returns depends on a
// length that was not first compared with the bytes that are left.
//
// A view: the bytes must outlive it. One thread at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace sluice {

static_assert(std::endian::native == std::endian::little, "formats are read by copying their bytes");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }

  // A little-endian number (not a bool, which has no meaning for 254 of its 256 bit patterns). Error:
  // kCorrupt when fewer bytes are left, naming `what` and the offset.
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) Result<T> Read(std::string_view what) {
    if (remaining() < sizeof(T)) return Short(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // `size` bytes, not copied.
  Result<std::span<const std::byte>> ReadBytes(uint64_t size, std::string_view what) {
    if (remaining() < size) return Short(what, size);
    const auto result = bytes_.subspan(offset_, static_cast<size_t>(size));
    offset_ += static_cast<size_t>(size);
    return result;
  }

 private:
  Error Short(std::string_view what, uint64_t wanted) const {
    return Fail(ErrorCode::kCorrupt, "{} at byte {}: needs {} bytes, {} are left", what, offset_, wanted,
                remaining());
  }

  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
};

}  // namespace sluice
