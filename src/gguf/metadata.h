// Metadata: the typed key-value pairs of a GGUF file.
//
// Owns the bytes behind its entries. Views that it hands out (keys, strings, arrays) stay valid while the
// Metadata lives, also after it was moved or a key was replaced. Reading from several threads is fine,
// changing is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::gguf {

// The values are the file format's own (source: the GGUF specification).
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr uint32_t kValueTypeLimit = 13;
std::string_view Name(ValueType type);  // "u32", "string", …
size_t FixedSize(ValueType type);       // bytes of one value; 0 for strings and arrays
bool IsInteger(ValueType type);         // bool not included

// One pair. `payload` is the value as the file stores it: for a string its 64-bit length and its bytes, for
// an array its elements one after the other (without element type and count).
struct Entry {
  std::string_view key;
  ValueType type = ValueType::kU32;
  ValueType element_type = ValueType::kU32;  // of an array; otherwise the same as type
  uint64_t count = 1;                        // elements of an array; otherwise 1
  std::span<const std::byte> payload;
};
std::string Describe(const Entry& entry);  // its type: "u32", "array of 320 string"

// An array of numbers inside the file's bytes, widened as it is read.
template <typename T>
class NumberArray {
 public:
  NumberArray() = default;
  NumberArray(ValueType type, std::span<const std::byte> bytes, size_t size)
      : bytes_(bytes.data()), size_(size), type_(type) {}

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](size_t i) const {
    switch (type_) {
      case ValueType::kU8:
      case ValueType::kBool:
        return Load<uint8_t>(i);
      case ValueType::kI8:
        return Load<int8_t>(i);
      case ValueType::kU16:
        return Load<uint16_t>(i);
      case ValueType::kI16:
        return Load<int16_t>(i);
      case ValueType::kU32:
        return Load<uint32_t>(i);
      case ValueType::kI32:
        return Load<int32_t>(i);
      case ValueType::kU64:
        return Load<uint64_t>(i);
      case ValueType::kI64:
        return Load<int64_t>(i);
      case ValueType::kF32:
        return Load<float>(i);
      case ValueType::kF64:
        return Load<double>(i);
      default:
        return T{};
    }
  }

 private:
  template <typename Stored>
  T Load(size_t i) const {
    Stored value;
    std::memcpy(&value, bytes_ + i * sizeof(Stored), sizeof(Stored));
    return static_cast<T>(value);
  }

  const std::byte* bytes_ = nullptr;
  size_t size_ = 0;
  ValueType type_ = ValueType::kI64;
};
using IntArray = NumberArray<int64_t>;
using FloatArray = NumberArray<float>;

class Metadata {
 public:
  Metadata() = default;
  Metadata(Metadata&&) = default;
  Metadata& operator=(Metadata&&) = default;

  // Takes entries whose views point into `storage`. Error: kCorrupt, naming a key that is there twice.
  static Result<Metadata> Adopt(std::unique_ptr<std::byte[]> storage, std::vector<Entry> entries);

  // The same entries in storage of their own.
  Metadata Copy() const;

  std::span<const Entry> entries() const { return entries_; }
  const Entry* Find(std::string_view key) const;  // null when absent; valid until the next change
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Typed access. Errors name the key: kNotFound when it is absent, kCorrupt when its type or value does not
  // serve. Integers come from any integer type whose value fits; floats from any number, but must be finite.
  Result<uint32_t> GetU32(std::string_view key) const;
  Result<uint64_t> GetU64(std::string_view key) const;
  Result<int64_t> GetI64(std::string_view key) const;
  Result<float> GetF32(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;
  Result<std::string_view> GetString(std::string_view key) const;
  Result<IntArray> GetInts(std::string_view key) const;      // any integer type or bool
  Result<FloatArray> GetFloats(std::string_view key) const;  // f32 or f64
  Result<std::vector<std::string_view>> GetStrings(std::string_view key) const;

  // The same, but an absent key gives `fallback`. A key of the wrong type is still an error.
  Result<uint32_t> GetU32Or(std::string_view key, uint32_t fallback) const;
  Result<float> GetF32Or(std::string_view key, float fallback) const;
  Result<bool> GetBoolOr(std::string_view key, bool fallback) const;
  Result<std::string_view> GetStringOr(std::string_view key, std::string_view fallback) const;

  // A value for each of `layers` layers: an array of exactly that many, or one number that stands for all.
  Result<std::vector<uint32_t>> GetU32PerLayer(std::string_view key, uint32_t layers) const;

  // Changes. A key that exists is replaced in its place, else the pair goes to the end.
  void SetU16(std::string_view key, uint16_t value);
  void SetU32(std::string_view key, uint32_t value);
  void SetI32(std::string_view key, int32_t value);
  void SetU64(std::string_view key, uint64_t value);
  void SetI64(std::string_view key, int64_t value);
  void SetF32(std::string_view key, float value);
  void SetBool(std::string_view key, bool value);
  void SetString(std::string_view key, std::string_view value);
  void SetStrings(std::string_view key, std::span<const std::string_view> values);
  void SetStrings(std::string_view key, std::span<const std::string> values);
  void SetU32s(std::string_view key, std::span<const uint32_t> values);
  void SetI32s(std::string_view key, std::span<const int32_t> values);
  void SetU64s(std::string_view key, std::span<const uint64_t> values);
  void SetF32s(std::string_view key, std::span<const float> values);
  // A copy of an entry, perhaps from another file.
  void Set(const Entry& entry);
  void Remove(std::string_view key);

 private:
  size_t LowerBound(std::string_view key) const;  // position in by_key_
  Result<const Entry*> Require(std::string_view key) const;
  void SetScalar(std::string_view key, ValueType type, const void* value);
  void SetArray(std::string_view key, ValueType element_type, size_t count,
                std::span<const std::byte> payload);

  std::vector<Entry> entries_;    // in file order
  std::vector<uint32_t> by_key_;  // indices of entries_, sorted by key: crafted keys cannot make it slow
  std::vector<std::unique_ptr<std::byte[]>> storage_;
};

}  // namespace sluice::gguf
