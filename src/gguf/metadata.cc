#include "gguf/metadata.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace sluice::gguf {
namespace {

struct TypeTraits {
  std::string_view name;
  size_t size;
  bool integer;
};
constexpr TypeTraits kTypes[kValueTypeLimit] = {
    {"u8", 1, true},  {"i8", 1, true},   {"u16", 2, true},   {"i16", 2, true},     {"u32", 4, true},
    {"i32", 4, true}, {"f32", 4, false}, {"bool", 1, false}, {"string", 0, false}, {"array", 0, false},
    {"u64", 8, true}, {"i64", 8, true},  {"f64", 8, false},
};
const TypeTraits& TraitsOf(ValueType type) {
  SLUICE_CHECK(static_cast<uint32_t>(type) < kValueTypeLimit);
  return kTypes[static_cast<uint32_t>(type)];
}

Error WrongType(const Entry& entry, std::string_view expected) {
  return Fail(ErrorCode::kCorrupt, "metadata key {}: is {}, expected {}", entry.key, Describe(entry),
              expected);
}

std::string_view AsView(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The string that begins at `p`: a 64-bit length, then the bytes. Its bounds were checked when it was read or
// made.
std::string_view StringAt(const std::byte* p) {
  uint64_t length;
  std::memcpy(&length, p, sizeof(length));
  return {reinterpret_cast<const char*>(p + sizeof(length)), static_cast<size_t>(length)};
}

void AppendString(std::string_view text, std::vector<std::byte>& out) {
  const uint64_t length = text.size();
  const auto* length_bytes = reinterpret_cast<const std::byte*>(&length);
  const auto* text_bytes = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), length_bytes, length_bytes + sizeof(length));
  out.insert(out.end(), text_bytes, text_bytes + text.size());
}

// An integer of any width as sign and magnitude, so that i64 and u64 are both whole.
struct Integer {
  bool negative;
  uint64_t magnitude;
};

Result<Integer> ReadInteger(const Entry& entry, std::string_view expected) {
  if (!IsInteger(entry.type)) return WrongType(entry, expected);
  if (entry.type == ValueType::kU64)
    return Integer{false, NumberArray<uint64_t>(entry.type, entry.payload, 1)[0]};
  const int64_t value = IntArray(entry.type, entry.payload, 1)[0];
  return value < 0 ? Integer{true, 0 - static_cast<uint64_t>(value)}
                   : Integer{false, static_cast<uint64_t>(value)};
}

Result<uint64_t> ReadUnsigned(const Entry& entry, uint64_t limit, std::string_view expected) {
  SLUICE_TRY_ASSIGN(const Integer value, ReadInteger(entry, expected));
  if (value.negative || value.magnitude > limit) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: is {}{}, expected {} of at most {}", entry.key,
                value.negative ? "-" : "", value.magnitude, expected, limit);
  }
  return value.magnitude;
}

constexpr std::string_view kUnsigned = "an unsigned integer";
constexpr uint32_t kMaxLayers = 1 << 16;

}  // namespace

std::string_view Name(ValueType type) { return TraitsOf(type).name; }
size_t FixedSize(ValueType type) { return TraitsOf(type).size; }
bool IsInteger(ValueType type) { return TraitsOf(type).integer; }

std::string Describe(const Entry& entry) {
  if (entry.type != ValueType::kArray) return std::string(Name(entry.type));
  return fmt::format("an array of {} {}", entry.count, Name(entry.element_type));
}

Result<Metadata> Metadata::Adopt(std::unique_ptr<std::byte[]> storage, std::vector<Entry> entries) {
  Metadata metadata;
  metadata.storage_.push_back(std::move(storage));
  metadata.entries_ = std::move(entries);
  metadata.by_key_.resize(metadata.entries_.size());
  std::iota(metadata.by_key_.begin(), metadata.by_key_.end(), 0u);
  const auto key = [&](uint32_t i) { return metadata.entries_[i].key; };
  std::ranges::sort(metadata.by_key_, {}, key);
  const auto twice = std::ranges::adjacent_find(metadata.by_key_, {}, key);
  if (twice != metadata.by_key_.end()) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: is there twice", key(*twice));
  }
  return metadata;
}

size_t Metadata::LowerBound(std::string_view key) const {
  const auto at = std::ranges::lower_bound(by_key_, key, {}, [&](uint32_t i) { return entries_[i].key; });
  return static_cast<size_t>(at - by_key_.begin());
}

const Entry* Metadata::Find(std::string_view key) const {
  const size_t at = LowerBound(key);
  if (at == by_key_.size() || entries_[by_key_[at]].key != key) return nullptr;
  return &entries_[by_key_[at]];
}

Result<const Entry*> Metadata::Require(std::string_view key) const {
  const Entry* entry = Find(key);
  if (entry == nullptr) return Fail(ErrorCode::kNotFound, "metadata key {}: is missing", key);
  return entry;
}

Result<uint32_t> Metadata::GetU32(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  SLUICE_TRY_ASSIGN(const uint64_t value,
                    ReadUnsigned(*entry, std::numeric_limits<uint32_t>::max(), kUnsigned));
  return static_cast<uint32_t>(value);
}

Result<uint64_t> Metadata::GetU64(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  return ReadUnsigned(*entry, std::numeric_limits<uint64_t>::max(), kUnsigned);
}

Result<int64_t> Metadata::GetI64(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  SLUICE_TRY_ASSIGN(const Integer value, ReadInteger(*entry, "an integer"));
  if (value.negative) return static_cast<int64_t>(0 - value.magnitude);
  SLUICE_TRY(ReadUnsigned(*entry, std::numeric_limits<int64_t>::max(), "an integer"));
  return static_cast<int64_t>(value.magnitude);
}

Result<float> Metadata::GetF32(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  const bool number =
      entry->type == ValueType::kF32 || entry->type == ValueType::kF64 || IsInteger(entry->type);
  if (!number) return WrongType(*entry, "a number");
  const float value = FloatArray(entry->type, entry->payload, 1)[0];
  if (!std::isfinite(value)) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: is {}, expected a finite number", key, value);
  }
  return value;
}

Result<bool> Metadata::GetBool(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  if (entry->type != ValueType::kBool) return WrongType(*entry, "a bool");
  return entry->payload[0] != std::byte{0};
}

Result<std::string_view> Metadata::GetString(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  if (entry->type != ValueType::kString) return WrongType(*entry, "a string");
  return StringAt(entry->payload.data());
}

Result<IntArray> Metadata::GetInts(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  const ValueType type = entry->element_type;
  if (entry->type != ValueType::kArray || !(IsInteger(type) || type == ValueType::kBool)) {
    return WrongType(*entry, "an array of integers");
  }
  const IntArray values(type, entry->payload, entry->count);
  if (type == ValueType::kU64) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0)
        return Fail(ErrorCode::kCorrupt, "metadata key {}: element {} does not fit in 63 bits", key, i);
    }
  }
  return values;
}

Result<FloatArray> Metadata::GetFloats(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  const ValueType type = entry->element_type;
  if (entry->type != ValueType::kArray || !(type == ValueType::kF32 || type == ValueType::kF64)) {
    return WrongType(*entry, "an array of floats");
  }
  return FloatArray(type, entry->payload, entry->count);
}

Result<std::vector<std::string_view>> Metadata::GetStrings(std::string_view key) const {
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  if (entry->type != ValueType::kArray || entry->element_type != ValueType::kString) {
    return WrongType(*entry, "an array of strings");
  }
  std::vector<std::string_view> strings(entry->count);
  const std::byte* p = entry->payload.data();
  for (std::string_view& text : strings) {
    text = StringAt(p);
    p += sizeof(uint64_t) + text.size();
  }
  return strings;
}

Result<uint32_t> Metadata::GetU32Or(std::string_view key, uint32_t fallback) const {
  return Has(key) ? GetU32(key) : fallback;
}
Result<float> Metadata::GetF32Or(std::string_view key, float fallback) const {
  return Has(key) ? GetF32(key) : fallback;
}
Result<bool> Metadata::GetBoolOr(std::string_view key, bool fallback) const {
  return Has(key) ? GetBool(key) : fallback;
}
Result<std::string_view> Metadata::GetStringOr(std::string_view key, std::string_view fallback) const {
  return Has(key) ? GetString(key) : fallback;
}

Result<std::vector<uint32_t>> Metadata::GetU32PerLayer(std::string_view key, uint32_t layers) const {
  if (layers > kMaxLayers) {
    return Fail(ErrorCode::kCorrupt, "{} layers, expected at most {}", layers, kMaxLayers);
  }
  SLUICE_TRY_ASSIGN(const Entry* entry, Require(key));
  if (entry->type != ValueType::kArray) {
    SLUICE_TRY_ASSIGN(const uint32_t value, GetU32(key));
    return std::vector<uint32_t>(layers, value);
  }
  SLUICE_TRY_ASSIGN(const IntArray values, GetInts(key));
  if (values.size() != layers) {
    return Fail(ErrorCode::kCorrupt, "metadata key {}: has {} elements, expected one for each of {} layers",
                key, values.size(), layers);
  }
  std::vector<uint32_t> result(layers);
  for (uint32_t i = 0; i < layers; ++i) {
    if (values[i] < 0 || values[i] > std::numeric_limits<uint32_t>::max()) {
      return Fail(ErrorCode::kCorrupt, "metadata key {}: element {} is {}, expected {}", key, i, values[i],
                  kUnsigned);
    }
    result[i] = static_cast<uint32_t>(values[i]);
  }
  return result;
}

Metadata Metadata::Copy() const {
  Metadata copy;
  for (const Entry& entry : entries_) copy.Set(entry);
  return copy;
}

void Metadata::Set(const Entry& entry) {
  // Key and payload get a block of their own, so that views handed out earlier stay valid.
  auto bytes = std::make_unique<std::byte[]>(entry.key.size() + entry.payload.size());
  if (!entry.key.empty()) std::memcpy(bytes.get(), entry.key.data(), entry.key.size());
  if (!entry.payload.empty())
    std::memcpy(bytes.get() + entry.key.size(), entry.payload.data(), entry.payload.size());
  Entry copy = entry;
  copy.key = AsView({bytes.get(), entry.key.size()});
  copy.payload = {bytes.get() + entry.key.size(), entry.payload.size()};
  storage_.push_back(std::move(bytes));

  const size_t at = LowerBound(copy.key);
  if (at < by_key_.size() && entries_[by_key_[at]].key == copy.key) {
    entries_[by_key_[at]] = copy;
    return;
  }
  by_key_.insert(by_key_.begin() + static_cast<ptrdiff_t>(at), static_cast<uint32_t>(entries_.size()));
  entries_.push_back(copy);
}

void Metadata::Remove(std::string_view key) {
  const size_t at = LowerBound(key);
  if (at == by_key_.size() || entries_[by_key_[at]].key != key) return;
  const uint32_t removed = by_key_[at];
  entries_.erase(entries_.begin() + removed);
  by_key_.erase(by_key_.begin() + static_cast<ptrdiff_t>(at));
  for (uint32_t& i : by_key_) i -= i > removed ? 1 : 0;
}

void Metadata::SetScalar(std::string_view key, ValueType type, const void* value) {
  Set({key, type, type, 1, {static_cast<const std::byte*>(value), FixedSize(type)}});
}

void Metadata::SetArray(std::string_view key, ValueType element_type, size_t count,
                        std::span<const std::byte> payload) {
  Set({key, ValueType::kArray, element_type, count, payload});
}

void Metadata::SetU16(std::string_view key, uint16_t value) { SetScalar(key, ValueType::kU16, &value); }
void Metadata::SetU32(std::string_view key, uint32_t value) { SetScalar(key, ValueType::kU32, &value); }
void Metadata::SetI32(std::string_view key, int32_t value) { SetScalar(key, ValueType::kI32, &value); }
void Metadata::SetU64(std::string_view key, uint64_t value) { SetScalar(key, ValueType::kU64, &value); }
void Metadata::SetI64(std::string_view key, int64_t value) { SetScalar(key, ValueType::kI64, &value); }
void Metadata::SetF32(std::string_view key, float value) { SetScalar(key, ValueType::kF32, &value); }
void Metadata::SetBool(std::string_view key, bool value) {
  const auto byte = static_cast<uint8_t>(value);
  SetScalar(key, ValueType::kBool, &byte);
}

void Metadata::SetString(std::string_view key, std::string_view value) {
  std::vector<std::byte> payload;
  AppendString(value, payload);
  Set({key, ValueType::kString, ValueType::kString, 1, payload});
}

void Metadata::SetStrings(std::string_view key, std::span<const std::string_view> values) {
  std::vector<std::byte> payload;
  for (const std::string_view value : values) AppendString(value, payload);
  SetArray(key, ValueType::kString, values.size(), payload);
}

void Metadata::SetStrings(std::string_view key, std::span<const std::string> values) {
  const std::vector<std::string_view> views(values.begin(), values.end());
  SetStrings(key, views);
}

void Metadata::SetU32s(std::string_view key, std::span<const uint32_t> values) {
  SetArray(key, ValueType::kU32, values.size(), std::as_bytes(values));
}
void Metadata::SetI32s(std::string_view key, std::span<const int32_t> values) {
  SetArray(key, ValueType::kI32, values.size(), std::as_bytes(values));
}
void Metadata::SetU64s(std::string_view key, std::span<const uint64_t> values) {
  SetArray(key, ValueType::kU64, values.size(), std::as_bytes(values));
}
void Metadata::SetF32s(std::string_view key, std::span<const float> values) {
  SetArray(key, ValueType::kF32, values.size(), std::as_bytes(values));
}

}  // namespace sluice::gguf
