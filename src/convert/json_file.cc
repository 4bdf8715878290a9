#include "convert/json_file.h"

#include <cmath>

#include "platform/file.h"

namespace sluice::convert {

using nlohmann::json;

namespace {

constexpr int kMaxDepth = 32;

// nlohmann's parser keeps no stack of its own, but destroying deep values would.
class DepthGuard {
 public:
  bool operator()(int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth) deep_ = true;
    return !deep_;
  }
  bool deep() const { return deep_; }

 private:
  bool deep_ = false;
};

}  // namespace

const nlohmann::json* JsonObject::Find(std::string_view key) const {
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

Error JsonObject::Wrong(std::string_view key, std::string_view expected) const {
  const nlohmann::json* found = Find(key);
  const std::string text =
      found == nullptr ? "nothing" : found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Fail(ErrorCode::kCorrupt, "{}: {} is {}; expected {}", name_, key, text.substr(0, 80), expected);
}

Result<std::optional<int64_t>> JsonObject::Int(std::string_view key, int64_t low, int64_t high) const {
  const nlohmann::json* found = Find(key);
  if (found == nullptr) return std::optional<int64_t>();
  const bool fits =
      found->is_number_integer() && (!found->is_number_unsigned() || found->get<uint64_t>() <= INT64_MAX);
  if (!fits || found->get<int64_t>() < low || found->get<int64_t>() > high)
    return Wrong(key, fmt::format("a whole number from {} to {}", low, high));
  return std::optional(found->get<int64_t>());
}

Result<std::optional<double>> JsonObject::Number(std::string_view key) const {
  const nlohmann::json* found = Find(key);
  if (found == nullptr) return std::optional<double>();
  if (!found->is_number() || !std::isfinite(found->get<double>())) return Wrong(key, "a number");
  return std::optional(found->get<double>());
}

Result<std::optional<bool>> JsonObject::Bool(std::string_view key) const {
  const nlohmann::json* found = Find(key);
  if (found == nullptr) return std::optional<bool>();
  if (!found->is_boolean()) return Wrong(key, "true or false");
  return std::optional(found->get<bool>());
}

Result<std::optional<std::string>> JsonObject::String(std::string_view key) const {
  const nlohmann::json* found = Find(key);
  if (found == nullptr) return std::optional<std::string>();
  if (!found->is_string()) return Wrong(key, "text");
  return std::optional(found->get<std::string>());
}

Result<std::optional<JsonObject>> JsonObject::Object(std::string_view key) const {
  const nlohmann::json* found = Find(key);
  if (found == nullptr) return std::optional<JsonObject>();
  if (!found->is_object()) return Wrong(key, "an object");
  return std::optional(JsonObject(*found, fmt::format("{}: {}", name_, key)));
}

Result<std::vector<double>> JsonObject::Numbers(std::string_view key) const {
  std::vector<double> numbers;
  const nlohmann::json* found = Find(key);
  if (found == nullptr) return numbers;
  if (!found->is_array()) return Wrong(key, "a list of numbers");
  for (const nlohmann::json& value : *found) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return Wrong(key, "a list of numbers");
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

Result<int64_t> JsonObject::RequireInt(std::initializer_list<std::string_view> keys, int64_t low,
                                       int64_t high) const {
  for (const std::string_view key : keys) {
    SLUICE_TRY_ASSIGN(const auto value, Int(key, low, high));
    if (value) return *value;
  }
  return Fail(ErrorCode::kNotFound, "{} has no {}", name_, *keys.begin());
}

Result<double> JsonObject::RequireNumber(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    SLUICE_TRY_ASSIGN(const auto value, Number(key));
    if (value) return *value;
  }
  return Fail(ErrorCode::kNotFound, "{} has no {}", name_, *keys.begin());
}

Result<json> ParseJsonObject(std::string_view text, const std::string& name) {
  DepthGuard guard;
  json parsed = json::parse(text, std::ref(guard), false);
  if (guard.deep()) return Fail(ErrorCode::kCorrupt, "{} is not one JSON object: it nests more than {} deep", name, kMaxDepth);
  if (!parsed.is_object()) return Fail(ErrorCode::kCorrupt, "{} is not one JSON object", name);
  return parsed;
}

Result<json> ReadJsonObject(const std::string& path, uint64_t max_bytes) {
  SLUICE_TRY_ASSIGN(const std::string text, platform::ReadWholeFile(path, max_bytes));
  return ParseJsonObject(text, path);
}

}  // namespace sluice::convert
