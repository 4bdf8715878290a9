// JsonFile: an object of a checkpoint's folder (config.json …), read with typed access whose errors name file
// and key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::convert {

// A JSON object and what it is called in messages. A view of json that outlives it.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& json, std::string name) : json_(&json), name_(std::move(name)) {}

  const nlohmann::json& json() const { return *json_; }
  const std::string& name() const { return name_; }
  // Null when the key is absent or null.
  const nlohmann::json* Find(std::string_view key) const;

  // nullopt when absent or null. Errors: kCorrupt for another type, or a number out of range.
  Result<std::optional<int64_t>> Int(std::string_view key, int64_t low = 0,
                                     int64_t high = int64_t{1} << 40) const;
  Result<std::optional<double>> Number(std::string_view key) const;  // finite
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<std::string>> String(std::string_view key) const;
  Result<std::optional<JsonObject>> Object(std::string_view key) const;
  Result<std::vector<double>> Numbers(std::string_view key) const;  // empty when absent

  // The same under the first of several names that is there. Errors: as above; kNotFound naming the first
  // when none is.
  Result<int64_t> RequireInt(std::initializer_list<std::string_view> keys, int64_t low, int64_t high) const;
  Result<double> RequireNumber(std::initializer_list<std::string_view> keys) const;

  Error Wrong(std::string_view key, std::string_view expected) const;

 private:
  const nlohmann::json* json_;
  std::string name_;
};

// A file with one object. Errors: kNotFound, kIo; kCorrupt for bytes that are no JSON object, or nest too
// deeply; kResourceExhausted above max_bytes.
Result<nlohmann::json> ReadJsonObject(const std::string& path, uint64_t max_bytes);
// The same from text; `name` stands in messages.
Result<nlohmann::json> ParseJsonObject(std::string_view text, const std::string& name);

}  // namespace sluice::convert
