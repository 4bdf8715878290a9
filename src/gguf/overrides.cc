#include "gguf/overrides.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/parse_number.h"
#include "gguf/header.h"

namespace sluice::gguf {
namespace {

template <typename T>
bool ParseWhole(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

Error NotA(std::string_view key, std::string_view value, std::string_view expected) {
  return Fail(ErrorCode::kInvalidArgument, "override of {}: \"{}\" is not {}", key, value, expected);
}

template <typename T>
Status SetInteger(const Entry& entry, std::string_view text, Metadata& metadata) {
  T value;
  if (!ParseWhole(text, &value))
    return NotA(entry.key, text, fmt::format("a number for {}", Name(entry.type)));
  Entry changed = entry;
  changed.payload = std::as_bytes(std::span(&value, 1));
  metadata.Set(changed);
  return {};
}

// Gives the key `entry.key` a value of `entry.type`; its payload does not matter.
Status SetFromText(const Entry& entry, std::string_view text, Metadata& metadata) {
  switch (entry.type) {
    case ValueType::kU8:
      return SetInteger<uint8_t>(entry, text, metadata);
    case ValueType::kI8:
      return SetInteger<int8_t>(entry, text, metadata);
    case ValueType::kU16:
      return SetInteger<uint16_t>(entry, text, metadata);
    case ValueType::kI16:
      return SetInteger<int16_t>(entry, text, metadata);
    case ValueType::kU32:
      return SetInteger<uint32_t>(entry, text, metadata);
    case ValueType::kI32:
      return SetInteger<int32_t>(entry, text, metadata);
    case ValueType::kU64:
      return SetInteger<uint64_t>(entry, text, metadata);
    case ValueType::kI64:
      return SetInteger<int64_t>(entry, text, metadata);
    case ValueType::kF32:
    case ValueType::kF64: {
      float value;
      if (!ParseWholeFloating(text, &value) || !std::isfinite(value)) return NotA(entry.key, text, "a finite number");
      metadata.SetF32(entry.key, value);
      return {};
    }
    case ValueType::kBool:
      if (text != "true" && text != "false") return NotA(entry.key, text, "true or false");
      metadata.SetBool(entry.key, text == "true");
      return {};
    case ValueType::kString:
      metadata.SetString(entry.key, text);
      return {};
    case ValueType::kArray:
      break;
  }
  return Fail(ErrorCode::kInvalidArgument, "override of {}: is {}, which can't be overridden", entry.key,
              Describe(entry));
}

// Whether a key of `type` takes a value that was called `kind` (int, float, bool, str).
bool Accepts(ValueType type, std::string_view kind) {
  if (kind == "int") return IsInteger(type);
  if (kind == "float") return type == ValueType::kF32 || type == ValueType::kF64;
  if (kind == "bool") return type == ValueType::kBool;
  return type == ValueType::kString;
}

// The type that a key gets which is not in the file yet.
ValueType TypeFor(std::string_view kind, std::string_view value) {
  if (kind == "float") return ValueType::kF32;
  if (kind == "bool") return ValueType::kBool;
  if (kind == "str") return ValueType::kString;
  uint32_t as_u32;
  return ParseWhole(value, &as_u32) ? ValueType::kU32 : ValueType::kI64;
}

}  // namespace

Status ApplyOverride(std::string_view text, Metadata& metadata) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Fail(ErrorCode::kInvalidArgument, "override \"{}\": expected KEY=VALUE or KEY=TYPE:VALUE", text);
  }
  const std::string_view key = text.substr(0, equals);
  std::string_view value = text.substr(equals + 1);
  if (key == kAlignmentKey || key.starts_with("split.")) {
    return Fail(ErrorCode::kInvalidArgument, "override of {}: it says how the file is laid out, and stays",
                key);
  }

  std::string_view kind;
  for (const std::string_view known : {"int", "float", "bool", "str"}) {
    if (value.size() > known.size() && value.starts_with(known) && value[known.size()] == ':') kind = known;
  }
  if (!kind.empty()) value.remove_prefix(kind.size() + 1);

  const Entry* existing = metadata.Find(key);
  if (existing != nullptr) {
    if (!kind.empty() && !Accepts(existing->type, kind)) {
      return Fail(ErrorCode::kInvalidArgument, "override of {}: is {} in the file, not {}", key,
                  Describe(*existing), kind);
    }
    return SetFromText(*existing, value, metadata);
  }
  if (kind.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "override of {}: the file has no such key; to add it, say its type: {}=int:…, float:, bool: or str:",
        key, key);
  }
  const ValueType type = TypeFor(kind, value);
  return SetFromText({key, type, type, 1, {}}, value, metadata);
}

}  // namespace sluice::gguf
