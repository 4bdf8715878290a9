// AlignedBuffer: owned, move-only bytes at a 64-byte (or larger) alignment, zero-filled. For small and
// middling buffers; large memory comes from memory::Arena, which the ledger knows. A moved-from buffer is
// empty.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace sluice {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size, size_t alignment = 64)
      : data_(static_cast<std::byte*>(::operator new(size == 0 ? 1 : size, std::align_val_t(alignment))),
              Deleter(std::align_val_t(alignment))),
        size_(size) {
    std::memset(data_.get(), 0, size);
  }

  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data(), size_}; }
  std::span<const std::byte> bytes() const { return {data(), size_}; }

  // The same memory as an array of T (trivial types only).
  template <typename T>
  std::span<T> as() {
    static_assert(std::is_trivial_v<T>);
    return {reinterpret_cast<T*>(data()), size_ / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    static_assert(std::is_trivial_v<T>);
    return {reinterpret_cast<const T*>(data()), size_ / sizeof(T)};
  }

 private:
  struct Deleter {
    Deleter() : Deleter(std::align_val_t(64)) {}
    explicit Deleter(std::align_val_t a) : alignment(a) {}
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
    std::align_val_t alignment;
  };
  std::unique_ptr<std::byte, Deleter> data_;
  size_t size_ = 0;
};

}  // namespace sluice
