#include "convert/pytorch_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "convert/pickle.h"
#include "convert/zip_directory.h"

namespace sluice::convert {

namespace {

// The entries of an archive by their names within its one folder.
using Entries = std::map<std::string_view, const ZipEntry*>;

Result<Entries> WithinTheFolder(const std::vector<ZipEntry>& zip) {
  static constexpr std::string_view kPickle = "/data.pkl";
  const auto pickle =
      std::ranges::find_if(zip, [](const ZipEntry& entry) { return entry.name.ends_with(kPickle); });
  if (pickle == zip.end()) return Fail(ErrorCode::kCorrupt, "has no data.pkl: torch.save did not write it");
  const std::string_view folder =
      std::string_view(pickle->name).substr(0, pickle->name.size() - kPickle.size() + 1);
  Entries entries;
  for (const ZipEntry& entry : zip) {
    if (!entry.name.starts_with(folder)) continue;
    const std::string_view name = std::string_view(entry.name).substr(folder.size());
    if (!entries.emplace(name, &entry).second)
      return Fail(ErrorCode::kCorrupt, "entry {} is there twice", entry.name);
  }
  return entries;
}

Status CheckByteOrder(const platform::File& file, const Entries& entries) {
  const auto found = entries.find("byteorder");
  if (found == entries.end()) return {};
  constexpr std::string_view kLittle = "little";
  std::array<char, kLittle.size()> order{};
  const uint64_t size = std::min<uint64_t>(found->second->size_bytes, order.size());
  SLUICE_TRY(file.PreadFull(found->second->offset,
                            std::as_writable_bytes(std::span(order)).first(static_cast<size_t>(size))));
  if (std::string_view(order.data(), order.size()) == kLittle) return {};
  return Fail(ErrorCode::kUnsupported, "holds its numbers with the high byte first");
}

// The tensor's elements, where they lie one behind the other.
Result<SourceTensor> Placed(const PickledTensor& pickled, const Entries& entries) {
  const auto entry = entries.find("data/" + pickled.storage);
  if (entry == entries.end())
    return Fail(ErrorCode::kCorrupt, "tensor {} lies in data/{}, which is not there", pickled.name,
                pickled.storage);
  const uint64_t width = ElementBytes(pickled.type), bytes = entry->second->size_bytes;
  if (bytes % width != 0 || bytes / width != pickled.storage_elements)
    return Fail(ErrorCode::kCorrupt, "tensor {}: data/{} has {} bytes; expected {} elements of {}",
                pickled.name, pickled.storage, bytes, pickled.storage_elements, Name(pickled.type));
  uint64_t elements = 1;
  bool overflow = false;
  for (const uint64_t n : pickled.shape) overflow |= __builtin_mul_overflow(elements, n, &elements);
  if (overflow || pickled.first > pickled.storage_elements ||
      elements > pickled.storage_elements - pickled.first) {
    return Fail(ErrorCode::kCorrupt,
                "tensor {}: shape [{}] from element {} on reaches beyond data/{}, which has {}", pickled.name,
                fmt::join(pickled.shape, ", "), pickled.first, pickled.storage, pickled.storage_elements);
  }
  uint64_t stride = 1;
  for (size_t i = pickled.shape.size(); i-- > 0;) {
    if (elements > 0 && pickled.shape[i] > 1 && pickled.strides[i] != stride) {
      return Fail(
          ErrorCode::kUnsupported,
          "tensor {} has the strides [{}] for its shape [{}]: its elements don't lie in a row; save it "
          "with .contiguous()",
          pickled.name, fmt::join(pickled.strides, ", "), fmt::join(pickled.shape, ", "));
    }
    stride *= pickled.shape[i];
  }
  return SourceTensor{.name = pickled.name,
                      .type = pickled.type,
                      .shape = pickled.shape,
                      .offset = entry->second->offset + pickled.first * width,
                      .size_bytes = elements * width};
}

Result<std::vector<SourceTensor>> ReadTensors(const platform::File& file) {
  std::array<char, 2> magic{};
  SLUICE_TRY(file.PreadFull(0, std::as_writable_bytes(std::span(magic))));
  if (magic[0] == '\x80') {
    return Fail(ErrorCode::kUnsupported,
                "is a pickle from before the zip format of PyTorch 1.6: load it in Python and save it with "
                "safetensors.torch.save_file, or with torch.save as it is today");
  }
  SLUICE_TRY_ASSIGN(const std::vector<ZipEntry> zip, ReadZip(file));
  SLUICE_TRY_ASSIGN(const Entries entries, WithinTheFolder(zip));
  SLUICE_TRY(CheckByteOrder(file, entries));
  const ZipEntry& pickle = *entries.at("data.pkl");
  if (pickle.size_bytes > kMaxPickleBytes)
    return Fail(ErrorCode::kResourceExhausted, "data.pkl has {} bytes; at most {} are read",
                pickle.size_bytes, kMaxPickleBytes);
  std::vector<std::byte> bytes(static_cast<size_t>(pickle.size_bytes));
  SLUICE_TRY(file.PreadFull(pickle.offset, bytes));
  const auto pickled = ReadStateDict(bytes);
  if (!pickled) return Fail(pickled.error().code, "data.pkl: {}", pickled.error().message);
  std::vector<SourceTensor> tensors;
  for (const PickledTensor& tensor : *pickled) {
    SLUICE_TRY_ASSIGN(SourceTensor placed, Placed(tensor, entries));
    tensors.push_back(std::move(placed));
  }
  return tensors;
}

}  // namespace

Result<std::vector<SourceTensor>> ReadPytorchFile(const platform::File& file) {
  auto tensors = ReadTensors(file);
  if (!tensors) return Fail(tensors.error().code, "{}: {}", file.path(), tensors.error().message);
  return tensors;
}

}  // namespace sluice::convert
