// Makes files as torch.save writes them, for tests: a pickle in protocol 2 and the zip around it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::convert {

template <typename T>
std::string LittleEndian(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename... Parts>
std::string Joined(const Parts&... parts) {
  std::string whole;
  (whole.append(parts), ...);
  return whole;
}

// Pieces of a pickle.
namespace pickled {
inline std::string Text(std::string_view text) {
  return Joined("X", LittleEndian(static_cast<uint32_t>(text.size())), text);
}
inline std::string Global(std::string_view module, std::string_view name) {
  return Joined("c", module, "\n", name, "\n");
}
// In eight bytes.
inline std::string Number(uint64_t value) { return Joined("\x8a\x08", LittleEndian(value)); }
inline std::string Tuple(const std::string& items) { return Joined("(", items, "t"); }
inline std::string Numbers(const std::vector<uint64_t>& values) {
  std::string items;
  for (const uint64_t value : values) items += Number(value);
  return Tuple(items);
}
inline std::string Storage(std::string_view type, std::string_view key, uint64_t elements) {
  return Tuple(Joined(Text("storage"), Global("torch", type), Text(key), Text("cpu"), Number(elements))) +
         "Q";
}
inline std::string Tensor(const std::string& storage, uint64_t first, const std::vector<uint64_t>& shape,
                          const std::vector<uint64_t>& strides) {
  const std::string arguments = Joined(storage, Number(first), Numbers(shape), Numbers(strides), "\x89",
                                       Global("collections", "OrderedDict"), ")R");
  return Joined(Global("torch._utils", "_rebuild_tensor_v2"), Tuple(arguments), "R");
}
// A whole pickle, of the opcodes between its first and its last.
template <typename... Parts>
std::string Program(const Parts&... parts) {
  return Joined("\x80\x02", parts..., ".");
}
// `items`: names and values in turn.
inline std::string Dict(const std::string& items) {
  return Program(Global("collections", "OrderedDict"), ")R(", items, "u}b");
}
}  // namespace pickled

class ZipBuilder {
 public:
  // method 0: stored; anything else is only said to be.
  void Add(const std::string& name, const std::string& bytes, uint16_t method = 0) {
    const auto offset = static_cast<uint32_t>(data_.size()), size = static_cast<uint32_t>(bytes.size());
    const auto name_bytes = static_cast<uint16_t>(name.size());
    const std::string padding(5, 'F');  // an extra field that only the local header has
    data_ += "PK\3\4" + std::string(4, '\0') + LittleEndian(method) + std::string(8, '\0') +
             LittleEndian(size) + LittleEndian(size) + LittleEndian(name_bytes) + LittleEndian(uint16_t{5}) +
             name + padding + bytes;
    directory_ += "PK\1\2" + std::string(6, '\0') + LittleEndian(method) + std::string(8, '\0');
    if (zip64_) {
      directory_ += std::string(8, '\xff') + LittleEndian(name_bytes) + LittleEndian(uint16_t{28}) +
                    std::string(10, '\0') + std::string(4, '\xff') + name + LittleEndian(uint16_t{1}) +
                    LittleEndian(uint16_t{24}) + LittleEndian(uint64_t{size}) + LittleEndian(uint64_t{size}) +
                    LittleEndian(uint64_t{offset});
    } else {
      directory_ += LittleEndian(size) + LittleEndian(size) + LittleEndian(name_bytes) +
                    std::string(12, '\0') + LittleEndian(offset) + name;
    }
  }
  // From here on with wide fields only.
  void UseZip64() { zip64_ = true; }

  const std::string& directory() const { return directory_; }
  std::string Build(const std::string& comment = "") const {
    std::string end;
    uint64_t offset = data_.size(), size = directory_.size();
    if (zip64_) {
      end = "PK\6\6" + std::string(36, '\0') + LittleEndian(size) + LittleEndian(offset) + "PK\6\7" +
            std::string(4, '\0') + LittleEndian(offset + size) + LittleEndian(uint32_t{1});
      offset = size = 0xffffffff;
    }
    return data_ + directory_ + end + "PK\5\6" + std::string(8, '\0') +
           LittleEndian(static_cast<uint32_t>(size)) + LittleEndian(static_cast<uint32_t>(offset)) +
           LittleEndian(static_cast<uint16_t>(comment.size())) + comment;
  }

 private:
  bool zip64_ = false;
  std::string data_, directory_;
};

class PytorchBuilder {
 public:
  // A tensor with a storage of its own; `type` as in torch.FloatStorage.
  void Add(std::string_view name, std::string_view type, const std::vector<uint64_t>& shape,
           const std::string& bytes) {
    uint64_t elements = 1;
    std::vector<uint64_t> strides(shape.size());
    for (size_t i = shape.size(); i-- > 0;) {
      strides[i] = elements;
      elements *= shape[i];
    }
    const std::string storage = pickled::Storage(type, AddStorage(bytes), elements);
    AddItem(name, pickled::Tensor(storage, 0, shape, strides));
  }
  // Returns its key.
  std::string AddStorage(std::string bytes) {
    storages_.push_back(std::move(bytes));
    return std::to_string(storages_.size() - 1);
  }
  void AddItem(std::string_view name, const std::string& value) { items_ += pickled::Text(name) + value; }

  std::string Build(ZipBuilder zip = {}) const {
    zip.Add("model/data.pkl", pickled::Dict(items_));
    for (size_t i = 0; i < storages_.size(); ++i) zip.Add("model/data/" + std::to_string(i), storages_[i]);
    zip.Add("model/version", "3\n");
    return zip.Build();
  }

 private:
  std::string items_;
  std::vector<std::string> storages_;
};

}  // namespace sluice::convert
