#include "plan/device.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace sluice::plan {

namespace {

using nlohmann::json;

constexpr double kGiga = 1e9;
constexpr size_t kMaxEntries = 256;

// What the figures below rest on. Decoding: 45 GB/s is what good kernels reach of LPDDR5X on a recent phone
// (a published 7B run on a Snapdragon 8 Gen 3 reads 44 GB/s). Prefill and attention are derived, not
// measured: four cores at 3 GHz, a quarter of the int8 matrix instructions' peak, and of the f32 units' peak.
constexpr char kPhoneSource[] =
    "design figures: memory 45 GB/s as measured by others on Snapdragon 8 Gen 3, UFS 4 direct reads 1.65 "
    "(hot) to 2.4 GB/s "
    "(cold); prefill and attention are derived, not measured";

DeviceProfile Phone(std::string name, uint64_t total_gib, double budget_gb, double storage_gb) {
  DeviceProfile phone{.name = std::move(name), .source = kPhoneSource, .total_bytes = total_gib * kGiB};
  phone.budget_bytes = static_cast<uint64_t>(budget_gb * kGiga);
  phone.threads = 4;
  phone.memory_bytes_per_second = 45 * kGiga;
  phone.other_types = {.decode_bytes_per_second = 45 * kGiga,
                       .prefill_multiplications_per_second = 200 * kGiga};
  phone.other_attention = {.multiplications_per_second = 24 * kGiga};
  phone.storage = {{.block_bytes = 2 * kMiB, .depth = 2, .bytes_per_second = storage_gb * kGiga}};
  return phone;
}

// Reads the members of one JSON object, keeping the first thing that is wrong.
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string Text(const char* key) {
    const json* value = Find(key);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    return Wrong(key, "expected a string"), std::string();
  }
  double Rate(const char* key, bool required = true) {
    const json* value = Find(key, required);
    if (value == nullptr) return 0;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (!(number >= 0 && number < 1e18)) Wrong(key, "expected a number from 0 to 1e18");
    return number >= 0 && number < 1e18 ? number : 0;
  }
  uint64_t Count(const char* key) { return static_cast<uint64_t>(Rate(key)); }
  // Calls fn for each object of a list.
  template <typename F>
  void Each(const char* key, F&& fn) {
    const json* list = Find(key);
    if (list == nullptr) return;
    if (!list->is_array() || list->size() > kMaxEntries)
      return Wrong(key, "expected a list of at most 256 objects");
    for (const json& entry : *list) {
      if (!entry.is_object()) return Wrong(key, "expected a list of objects");
      Members members(entry, fmt::format("{}.{}", where_, key));
      fn(members);
      if (members.error_ && !error_) error_ = members.error_;
    }
  }
  void Wrong(const char* key, std::string_view expected) {
    if (!error_) error_ = Fail(ErrorCode::kCorrupt, "{}.{}: {}", where_, key, expected);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const json* Find(const char* key, bool required = true) {
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    if (required) Wrong(key, "is missing");
    return nullptr;
  }
  const json& object_;
  std::string where_;
  std::optional<Error> error_;
};

}  // namespace

const TypeRate& DeviceProfile::RateOf(formats::DType dtype) const {
  const auto found = std::ranges::find(types, dtype, &TypeRate::dtype);
  return found != types.end() ? *found : other_types;
}

double DeviceProfile::AttentionRateOf(kv::KvType type) const {
  const auto found = std::ranges::find(attention, type, &AttentionRate::type);
  return (found != attention.end() ? *found : other_attention).multiplications_per_second;
}

StorageRate DeviceProfile::BestStorage() const {
  const auto best = std::ranges::max_element(storage, {}, &StorageRate::bytes_per_second);
  return best != storage.end() ? *best : StorageRate();
}

StorageRate DeviceProfile::StorageFor(const weights::StoreOptions& options) const {
  // kAuto is io_uring where that was measured, which comes first.
  const auto same = std::ranges::find_if(storage, [&](const StorageRate& rate) {
    return rate.block_bytes == options.read_bytes && rate.depth == options.depth &&
           (options.backend == io::IoBackend::kAuto || rate.backend == options.backend);
  });
  return same != storage.end() ? *same : BestStorage();
}

std::span<const DeviceProfile> BuiltInDevices() {
  static const std::vector<DeviceProfile> devices{Phone("phone-8gb", 8, 3.5, 1.65),
                                                  Phone("phone-12gb", 12, 6.5, 2.4),
                                                  Phone("phone-16gb", 16, 10.5, 2.4)};
  return devices;
}

const DeviceProfile* FindDevice(std::string_view name) {
  const auto found = std::ranges::find(BuiltInDevices(), name, &DeviceProfile::name);
  return found != BuiltInDevices().end() ? &*found : nullptr;
}

std::string ToJson(const DeviceProfile& device) {
  nlohmann::ordered_json out;
  out["name"] = device.name;
  out["source"] = device.source;
  out["total_bytes"] = device.total_bytes;
  out["budget_bytes"] = device.budget_bytes;
  out["threads"] = device.threads;
  out["memory_bytes_per_second"] = device.memory_bytes_per_second;
  out["other_decode_bytes_per_second"] = device.other_types.decode_bytes_per_second;
  out["other_prefill_multiplications_per_second"] = device.other_types.prefill_multiplications_per_second;
  out["other_attention_multiplications_per_second"] = device.other_attention.multiplications_per_second;
  out["types"] = json::array();
  for (const TypeRate& rate : device.types) {
    out["types"].push_back({{"type", formats::Name(rate.dtype)},
                            {"decode_bytes_per_second", rate.decode_bytes_per_second},
                            {"prefill_multiplications_per_second", rate.prefill_multiplications_per_second}});
  }
  out["attention"] = json::array();
  for (const AttentionRate& rate : device.attention) {
    out["attention"].push_back(
        {{"type", kv::Name(rate.type)}, {"multiplications_per_second", rate.multiplications_per_second}});
  }
  out["storage"] = json::array();
  for (const StorageRate& rate : device.storage) {
    out["storage"].push_back({{"block_bytes", rate.block_bytes},
                              {"depth", rate.depth},
                              {"backend", io::BackendName(rate.backend)},
                              {"bytes_per_second", rate.bytes_per_second}});
  }
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<DeviceProfile> ParseDevice(std::string_view text) {
  // Depth is bounded by the callback: the format has three levels.
  const json object = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= 4; }, false);
  if (!object.is_object()) return Fail(ErrorCode::kCorrupt, "a device profile is one JSON object");
  Members members(object, "device");
  DeviceProfile device{.name = members.Text("name"), .source = members.Text("source")};
  device.total_bytes = members.Count("total_bytes");
  device.budget_bytes = members.Count("budget_bytes");
  device.threads = static_cast<int>(std::clamp(members.Rate("threads"), 1.0, 1024.0));
  device.memory_bytes_per_second = members.Rate("memory_bytes_per_second");
  device.other_types.decode_bytes_per_second = members.Rate("other_decode_bytes_per_second", false);
  device.other_types.prefill_multiplications_per_second =
      members.Rate("other_prefill_multiplications_per_second", false);
  device.other_attention.multiplications_per_second =
      members.Rate("other_attention_multiplications_per_second", false);
  members.Each("types", [&](Members& entry) {
    const formats::DTypeTraits* traits = formats::FindDTypeByName(entry.Text("type"));
    if (traits == nullptr) return entry.Wrong("type", "no weight format has this name");
    device.types.push_back({traits->dtype, entry.Rate("decode_bytes_per_second"),
                            entry.Rate("prefill_multiplications_per_second")});
  });
  members.Each("attention", [&](Members& entry) {
    const auto type = kv::KvTypeByName(entry.Text("type"));
    if (!type) return entry.Wrong("type", "no KV type has this name");
    device.attention.push_back({*type, entry.Rate("multiplications_per_second")});
  });
  members.Each("storage", [&](Members& entry) {
    const auto backend = io::BackendByName(entry.Text("backend"));
    if (!backend) entry.Wrong("backend", "expected auto, io_uring or pread");
    device.storage.push_back({entry.Count("block_bytes"),
                              static_cast<int>(std::min(entry.Rate("depth"), 1024.0)),
                              backend.value_or(io::IoBackend::kAuto), entry.Rate("bytes_per_second")});
  });
  if (members.error()) return *members.error();
  return device;
}

}  // namespace sluice::plan
