// sluice inspect: what a model file says about itself, and what is wrong with it.
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "output.h"
#include "resolve.h"
#include "sluice/gguf.h"

namespace sluice::app {

namespace {

using nlohmann::ordered_json;

struct InspectFlags {
  std::string model;
  bool json = false, tensors = false, all = false;
};

constexpr size_t kShownElements = 5;
constexpr size_t kShownBytes = 120;

// A number of an entry's payload as JSON; strings are read by the caller.
ordered_json Scalar(const gguf::Entry& entry, size_t index) {
  if (entry.element_type == gguf::ValueType::kBool)
    return gguf::IntArray(entry.element_type, entry.payload, entry.count)[index] != 0;
  if (entry.element_type == gguf::ValueType::kF32 || entry.element_type == gguf::ValueType::kF64)
    return gguf::NumberArray<double>(entry.element_type, entry.payload, entry.count)[index];
  if (entry.element_type == gguf::ValueType::kU64)
    return gguf::NumberArray<uint64_t>(entry.element_type, entry.payload, entry.count)[index];
  return gguf::IntArray(entry.element_type, entry.payload, entry.count)[index];
}

// The value of an entry; arrays only up to `limit` elements.
ordered_json Value(const gguf::Metadata& metadata, const gguf::Entry& entry, size_t limit) {
  if (entry.type == gguf::ValueType::kString) return *metadata.GetString(entry.key);
  if (entry.type != gguf::ValueType::kArray) return Scalar(entry, 0);
  ordered_json array = ordered_json::array();
  const size_t shown = std::min<size_t>(entry.count, limit);
  if (entry.element_type == gguf::ValueType::kString) {
    if (const auto strings = metadata.GetStrings(entry.key)) {
      for (size_t i = 0; i < shown; ++i) array.push_back((*strings)[i]);
    }
  } else if (entry.element_type != gguf::ValueType::kArray) {
    for (size_t i = 0; i < shown; ++i) array.push_back(Scalar(entry, i));
  }
  return array;
}

std::string Dump(const ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

// The beginning of a JSON text, at most `limit` bytes, that ends between two characters and behind whole escapes.
std::string FirstBytes(const std::string& json, size_t limit) {
  size_t end = 0;
  while (end < json.size()) {
    size_t next = end + 1;
    if (json[end] == '\\') next += json[next] == 'u' ? 5 : 1;
    while (next < json.size() && (static_cast<unsigned char>(json[next]) & 0xC0) == 0x80) ++next;
    if (next > limit) break;
    end = next;
  }
  return json.substr(0, end);
}

std::string Shape(const gguf::Tensor& tensor) {
  std::string shape;
  for (uint32_t d = 0; d < tensor.n_dims; ++d) shape += fmt::format("{}{}", d == 0 ? "" : " × ", tensor.dims[d]);
  return shape;
}

std::string TypeName(const gguf::Tensor& tensor) {
  return tensor.traits != nullptr ? std::string(tensor.traits->name) : fmt::format("type {}?", tensor.type_id);
}

void PrintJson(const gguf::GgufFile& file, const InspectFlags& flags) {
  ordered_json json;
  json["version"] = file.version();
  json["alignment"] = file.alignment();
  for (const gguf::Shard& shard : file.shards())
    json["files"].push_back({{"path", shard.path}, {"bytes", shard.file_bytes}, {"data_offset", shard.data_offset}});
  for (const gguf::Entry& entry : file.metadata().entries())
    json["metadata"][std::string(entry.key)] = Value(file.metadata(), entry, flags.all ? SIZE_MAX : 64);
  for (const gguf::Tensor& tensor : file.tensors()) {
    ordered_json dims = ordered_json::array();
    for (uint32_t d = 0; d < tensor.n_dims; ++d) dims.push_back(tensor.dims[d]);
    json["tensors"].push_back({{"name", tensor.name}, {"type", TypeName(tensor)}, {"type_id", tensor.type_id},
                               {"dims", dims}, {"file", tensor.shard}, {"offset", tensor.offset},
                               {"bytes", tensor.size_bytes}});
  }
  json["problems"] = ordered_json::array();
  for (const gguf::Problem& problem : file.problems()) json["problems"].push_back(problem.message);
  std::cout << Dump(json, 2) << "\n";
}

void PrintText(const gguf::GgufFile& file, const InspectFlags& flags) {
  for (const gguf::Shard& shard : file.shards()) std::printf("%s  %s\n", shard.path.c_str(), FormatBytes(shard.file_bytes).c_str());
  uint64_t parameters = 0;
  std::map<std::string, std::pair<int, uint64_t>> by_type;  // count, bytes
  for (const gguf::Tensor& tensor : file.tensors()) {
    parameters += tensor.elements();
    auto& [count, bytes] = by_type[TypeName(tensor)];
    ++count;
    bytes += tensor.size_bytes;
  }
  std::printf("GGUF v%u, alignment %llu, %zu tensors, %s parameters\n", file.version(),
              static_cast<unsigned long long>(file.alignment()), file.tensors().size(), FormatCount(parameters).c_str());

  std::printf("\nMetadata\n");
  for (const gguf::Entry& entry : file.metadata().entries()) {
    std::string value = Dump(Value(file.metadata(), entry, flags.all ? SIZE_MAX : kShownElements));
    if (!flags.all && value.size() > kShownBytes) value = FirstBytes(value, kShownBytes) + "…";
    std::printf("  %-42s %s", std::string(entry.key).c_str(), value.c_str());
    if (entry.type == gguf::ValueType::kArray && entry.count > kShownElements)
      std::printf("  (%llu in all)", static_cast<unsigned long long>(entry.count));
    std::printf("\n");
  }
  std::printf("\nTypes\n");
  for (const auto& [type, sums] : by_type)
    std::printf("  %-10s %5d tensors  %s\n", type.c_str(), sums.first, FormatBytes(sums.second).c_str());
  if (flags.tensors) {
    std::printf("\nTensors\n");
    for (const gguf::Tensor& tensor : file.tensors()) {
      std::printf("  %-40s %-8s %-22s at %llu, %s\n", std::string(tensor.name).c_str(), TypeName(tensor).c_str(),
                  Shape(tensor).c_str(), static_cast<unsigned long long>(tensor.offset),
                  FormatBytes(tensor.size_bytes).c_str());
    }
  }
}

Result<int> Inspect(const InspectFlags& flags) {
  SLUICE_TRY_ASSIGN(const std::string path, ResolveModel(flags.model));
  SLUICE_TRY_ASSIGN(const gguf::GgufFile file, gguf::GgufFile::Open(path, gguf::Purpose::kInspect));
  if (flags.json) {
    PrintJson(file, flags);
  } else {
    PrintText(file, flags);
  }
  for (const gguf::Problem& problem : file.problems()) Note("problem: " + problem.message);
  return file.problems().empty() ? kExitOk : kExitFailed;
}

}  // namespace

void AddInspect(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("inspect", "A model file's header, tensors and problems");
  auto flags = std::make_shared<InspectFlags>();
  command->add_option("-m,--model,model", flags->model, "A GGUF file, or the name of a model")->required();
  command->add_flag("--tensors", flags->tensors, "List every tensor");
  command->add_flag("--all", flags->all, "Show long values whole");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Inspect(*flags); }; });
}

}  // namespace sluice::app
