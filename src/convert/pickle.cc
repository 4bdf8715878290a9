#include "convert/pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/byte_reader.h"
#include "convert/pickle_opcodes.h"

namespace sluice::convert {

namespace {

constexpr size_t kMaxObjects = 1u << 20;  // 17 of them make a tensor
constexpr size_t kMaxNameBytes = 512;
constexpr size_t kMaxKeyBytes = 64;  // of a storage
constexpr size_t kMaxDims = 8;

// An object on the stack or in another one: an index into the machine's objects, which live until the end, so
// that copying one is cheap and a dictionary may even hold itself.
using Ref = uint32_t;

struct None {};
struct Tuple {
  std::vector<Ref> items;
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items;
};
// What the reader knows of the names that a pickle may use.
enum class Global : uint8_t { kOrderedDict, kRebuildTensor, kRebuildParameter, kStorageType };
struct GlobalName {
  Global global;
  ElementType type = ElementType::kF32;  // of kStorageType
};
struct Storage {
  std::string key;
  ElementType type;
  uint64_t elements;
};
using Object =
    std::variant<None, bool, int64_t, std::string, Tuple, Dict, GlobalName, Storage, PickledTensor>;

constexpr std::array<std::string_view, std::variant_size_v<Object>> kKinds{
    "None",         "True or False", "a number",  "text",    "a tuple",
    "a dictionary", "a global",      "a storage", "a tensor"};

struct KnownGlobal {
  std::string_view module, name;
  GlobalName global;
};
constexpr KnownGlobal kGlobals[] = {
    {"collections", "OrderedDict", {Global::kOrderedDict}},
    {"torch._utils", "_rebuild_tensor_v2", {Global::kRebuildTensor}},
    {"torch._utils", "_rebuild_parameter", {Global::kRebuildParameter}},
    {"torch", "DoubleStorage", {Global::kStorageType, ElementType::kF64}},
    {"torch", "FloatStorage", {Global::kStorageType, ElementType::kF32}},
    {"torch", "HalfStorage", {Global::kStorageType, ElementType::kF16}},
    {"torch", "BFloat16Storage", {Global::kStorageType, ElementType::kBF16}},
    {"torch", "LongStorage", {Global::kStorageType, ElementType::kI64}},
    {"torch", "IntStorage", {Global::kStorageType, ElementType::kI32}},
    {"torch", "ShortStorage", {Global::kStorageType, ElementType::kI16}},
    {"torch", "CharStorage", {Global::kStorageType, ElementType::kI8}},
    {"torch", "ByteStorage", {Global::kStorageType, ElementType::kU8}},
    {"torch", "BoolStorage", {Global::kStorageType, ElementType::kBool}},
};

class Machine {
 public:
  explicit Machine(std::span<const std::byte> bytes) : bytes_(bytes), reader_(bytes) {}

  Result<std::vector<PickledTensor>> Run();

 private:
  Status Load(Opcode opcode);
  Status Build(Opcode opcode);
  Status Remember(uint32_t slot);
  Status Recall(uint32_t slot);
  Status PushLong();
  Status PushGlobal();
  Status PushText();
  Status MakeTuple(size_t size);
  Status SetItems(size_t pairs);
  Status MakeStorage();
  Status Reduce();
  Status DropState();
  Result<Object> MakeTensor(const Tuple& arguments);
  Result<std::vector<PickledTensor>> TensorsOf(const Dict& dict);
  Result<std::string_view> ReadLine();

  Status Push(Object object);
  Result<Ref> Pop();
  Result<size_t> PopMark();  // objects above it
  // The object as a T. Error: it is another kind.
  template <typename T>
  Result<T*> As(Ref ref, std::string_view what);
  Result<std::vector<uint64_t>> Numbers(Ref ref, std::string_view what);
  template <typename... Args>
  Error Wrong(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return Fail(code, "byte {}: {}", at_, fmt::format(format, std::forward<Args>(args)...));
  }

  const std::span<const std::byte> bytes_;
  ByteReader reader_;
  size_t at_ = 0;  // of the opcode that runs
  std::vector<Object> objects_;
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint32_t, Ref> memo_;
};

Status Machine::Push(Object object) {
  if (objects_.size() == kMaxObjects)
    return Wrong(ErrorCode::kResourceExhausted, "more than {} objects", kMaxObjects);
  stack_.push_back(static_cast<Ref>(objects_.size()));
  objects_.push_back(std::move(object));
  return {};
}

Result<Ref> Machine::Pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    return Wrong(ErrorCode::kCorrupt, "the stack is empty");
  const Ref ref = stack_.back();
  stack_.pop_back();
  return ref;
}

Result<size_t> Machine::PopMark() {
  if (marks_.empty()) return Wrong(ErrorCode::kCorrupt, "there is no mark");
  const size_t above = stack_.size() - marks_.back();
  marks_.pop_back();
  return above;
}

template <typename T>
Result<T*> Machine::As(Ref ref, std::string_view what) {
  T* object = std::get_if<T>(&objects_[ref]);
  if (object == nullptr) {
    const size_t wanted = Object(T{}).index();
    return Wrong(ErrorCode::kUnsupported, "{} is {}; expected {}", what, kKinds[objects_[ref].index()],
                 kKinds[wanted]);
  }
  return object;
}

// A tuple of numbers that count something.
Result<std::vector<uint64_t>> Machine::Numbers(Ref ref, std::string_view what) {
  SLUICE_TRY_ASSIGN(const Tuple* tuple, As<Tuple>(ref, what));
  if (tuple->items.size() > kMaxDims)
    return Wrong(ErrorCode::kUnsupported, "{} has {} numbers; expected at most {}", what, tuple->items.size(),
                 kMaxDims);
  std::vector<uint64_t> numbers;
  for (const Ref item : tuple->items) {
    SLUICE_TRY_ASSIGN(const int64_t* number, As<int64_t>(item, what));
    if (*number < 0) return Wrong(ErrorCode::kUnsupported, "{} has the number {}", what, *number);
    numbers.push_back(static_cast<uint64_t>(*number));
  }
  return numbers;
}

Result<std::string_view> Machine::ReadLine() {
  const std::span<const std::byte> rest = bytes_.subspan(reader_.offset());
  const auto within = rest.first(std::min(rest.size(), kMaxNameBytes));
  const auto end = std::ranges::find(within, std::byte{'\n'});
  if (end == within.end())
    return Wrong(ErrorCode::kCorrupt, "a name does not end within {} bytes", kMaxNameBytes);
  const auto size = static_cast<size_t>(end - within.begin());
  SLUICE_TRY(reader_.ReadBytes(size + 1, "a name"));
  return std::string_view(reinterpret_cast<const char*>(within.data()), size);
}

Status Machine::PushGlobal() {
  SLUICE_TRY_ASSIGN(const std::string_view module, ReadLine());
  SLUICE_TRY_ASSIGN(const std::string_view name, ReadLine());
  for (const KnownGlobal& known : kGlobals) {
    if (known.module == module && known.name == name) return Push(known.global);
  }
  return Wrong(ErrorCode::kUnsupported,
               "asks for {}.{}, which is no part of a dictionary of tensors; nothing of a pickle is run",
               module, name);
}

Status Machine::PushText() {
  SLUICE_TRY_ASSIGN(const auto size, reader_.Read<uint32_t>("the length of a text"));
  if (size > kMaxNameBytes)
    return Wrong(ErrorCode::kUnsupported, "a text of {} bytes; expected a name of at most {}", size,
                 kMaxNameBytes);
  SLUICE_TRY_ASSIGN(const auto bytes, reader_.ReadBytes(size, "a text"));
  return Push(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// A number of up to eight bytes, in two's complement.
Status Machine::PushLong() {
  SLUICE_TRY_ASSIGN(const auto size, reader_.Read<uint8_t>("the length of a number"));
  if (size > sizeof(uint64_t)) return Wrong(ErrorCode::kUnsupported, "a number of {} bytes", size);
  SLUICE_TRY_ASSIGN(const auto bytes, reader_.ReadBytes(size, "a number"));
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  const bool negative = size > 0 && (std::to_integer<uint8_t>(bytes.back()) & 0x80) != 0;
  if (negative && size < sizeof(value)) value |= ~uint64_t{0} << 8 * size;
  return Push(static_cast<int64_t>(value));
}

Status Machine::Remember(uint32_t slot) {
  SLUICE_TRY_ASSIGN(const Ref top, Pop());
  stack_.push_back(top);
  memo_[slot] = top;
  if (memo_.size() > kMaxObjects)
    return Wrong(ErrorCode::kResourceExhausted, "more than {} objects", kMaxObjects);
  return {};
}

Status Machine::Recall(uint32_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) return Wrong(ErrorCode::kCorrupt, "nothing was remembered as {}", slot);
  stack_.push_back(found->second);
  return {};
}

Status Machine::MakeTuple(size_t size) {
  Tuple tuple;
  for (size_t i = 0; i < size; ++i) {
    SLUICE_TRY_ASSIGN(const Ref item, Pop());
    tuple.items.push_back(item);
  }
  std::ranges::reverse(tuple.items);
  return Push(std::move(tuple));
}

// dictionary, key, value, key, value … → dictionary
Status Machine::SetItems(size_t pairs) {
  std::vector<std::pair<Ref, Ref>> items;
  for (size_t i = 0; i < pairs; ++i) {
    SLUICE_TRY_ASSIGN(const Ref value, Pop());
    SLUICE_TRY_ASSIGN(const Ref key, Pop());
    items.emplace_back(key, value);
  }
  SLUICE_TRY_ASSIGN(const Ref target, Pop());
  SLUICE_TRY_ASSIGN(Dict * dict, As<Dict>(target, "what gets items"));
  dict->items.insert(dict->items.end(), items.rbegin(), items.rend());
  stack_.push_back(target);
  return {};
}

// ("storage", type, key, device, elements) → storage
Status Machine::MakeStorage() {
  SLUICE_TRY_ASSIGN(const Ref id, Pop());
  SLUICE_TRY_ASSIGN(const Tuple* tuple, As<Tuple>(id, "a persistent id"));
  if (tuple->items.size() != 5)
    return Wrong(ErrorCode::kUnsupported, "a persistent id of {} parts; expected 5", tuple->items.size());
  SLUICE_TRY_ASSIGN(const std::string* kind, As<std::string>(tuple->items[0], "the kind of a persistent id"));
  if (*kind != "storage")
    return Wrong(ErrorCode::kUnsupported, "a persistent '{}'; expected a storage", kind->substr(0, 40));
  SLUICE_TRY_ASSIGN(const GlobalName* type, As<GlobalName>(tuple->items[1], "the type of a storage"));
  if (type->global != Global::kStorageType)
    return Wrong(ErrorCode::kUnsupported, "the type of a storage is a function");
  SLUICE_TRY_ASSIGN(const std::string* key, As<std::string>(tuple->items[2], "the key of a storage"));
  SLUICE_TRY_ASSIGN(const int64_t* elements, As<int64_t>(tuple->items[4], "the size of a storage"));
  if (key->size() > kMaxKeyBytes)
    return Wrong(ErrorCode::kUnsupported, "a storage's key of {} bytes; expected at most {}", key->size(),
                 kMaxKeyBytes);
  if (*elements < 0) return Wrong(ErrorCode::kCorrupt, "a storage of {} elements", *elements);
  return Push(Storage{*key, type->type, static_cast<uint64_t>(*elements)});
}

// (storage, first, shape, strides, requires_grad, hooks, …) → tensor
Result<Object> Machine::MakeTensor(const Tuple& arguments) {
  if (arguments.items.size() < 4)
    return Wrong(ErrorCode::kCorrupt, "a tensor of {} parts; expected 4 or more", arguments.items.size());
  SLUICE_TRY_ASSIGN(const Storage* storage, As<Storage>(arguments.items[0], "the storage of a tensor"));
  SLUICE_TRY_ASSIGN(const int64_t* first,
                    As<int64_t>(arguments.items[1], "the place of a tensor in its storage"));
  if (*first < 0) return Wrong(ErrorCode::kCorrupt, "a tensor that begins at element {}", *first);
  PickledTensor tensor{.type = storage->type,
                       .storage = storage->key,
                       .storage_elements = storage->elements,
                       .first = static_cast<uint64_t>(*first)};
  SLUICE_TRY_ASSIGN(tensor.shape, Numbers(arguments.items[2], "the shape of a tensor"));
  SLUICE_TRY_ASSIGN(tensor.strides, Numbers(arguments.items[3], "the strides of a tensor"));
  if (tensor.shape.size() != tensor.strides.size())
    return Wrong(ErrorCode::kCorrupt, "a tensor of {} dimensions with {} strides", tensor.shape.size(),
                 tensor.strides.size());
  return Object(std::move(tensor));
}

// function, arguments → what it would make
Status Machine::Reduce() {
  SLUICE_TRY_ASSIGN(const Ref second, Pop());
  SLUICE_TRY_ASSIGN(const Ref first, Pop());
  SLUICE_TRY_ASSIGN(const GlobalName* function, As<GlobalName>(first, "what is called"));
  SLUICE_TRY_ASSIGN(const Tuple* arguments, As<Tuple>(second, "the arguments of a call"));
  switch (function->global) {
    case Global::kOrderedDict:
      if (!arguments->items.empty())
        return Wrong(ErrorCode::kUnsupported, "an OrderedDict made of something; expected an empty one");
      return Push(Dict{});
    case Global::kRebuildTensor: {
      SLUICE_TRY_ASSIGN(Object tensor, MakeTensor(*arguments));
      return Push(std::move(tensor));
    }
    case Global::kRebuildParameter: {
      if (arguments->items.empty()) return Wrong(ErrorCode::kCorrupt, "a parameter made of nothing");
      SLUICE_TRY(As<PickledTensor>(arguments->items[0], "a parameter"));
      stack_.push_back(arguments->items[0]);
      return {};
    }
    case Global::kStorageType:
      break;
  }
  return Wrong(ErrorCode::kUnsupported, "a storage that is made rather than named");
}

// dictionary, state → dictionary: a state dict's notes about versions, which are no weights.
Status Machine::DropState() {
  SLUICE_TRY(Pop());
  SLUICE_TRY_ASSIGN(const Ref target, Pop());
  SLUICE_TRY(As<Dict>(target, "what gets a state"));
  stack_.push_back(target);
  return {};
}

// Opcodes that put something on the stack.
Status Machine::Load(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMark:
      marks_.push_back(stack_.size());
      return {};
    case Opcode::kNone:
      return Push(None{});
    case Opcode::kNewTrue:
      return Push(true);
    case Opcode::kNewFalse:
      return Push(false);
    case Opcode::kBinInt: {
      SLUICE_TRY_ASSIGN(const auto value, reader_.Read<int32_t>("a number"));
      return Push(int64_t{value});
    }
    case Opcode::kBinInt1: {
      SLUICE_TRY_ASSIGN(const auto value, reader_.Read<uint8_t>("a number"));
      return Push(int64_t{value});
    }
    case Opcode::kBinInt2: {
      SLUICE_TRY_ASSIGN(const auto value, reader_.Read<uint16_t>("a number"));
      return Push(int64_t{value});
    }
    case Opcode::kLong1:
      return PushLong();
    case Opcode::kBinUnicode:
      return PushText();
    case Opcode::kGlobal:
      return PushGlobal();
    case Opcode::kEmptyTuple:
      return Push(Tuple{});
    case Opcode::kEmptyDict:
      return Push(Dict{});
    case Opcode::kBinGet: {
      SLUICE_TRY_ASSIGN(const auto slot, reader_.Read<uint8_t>("a place in the memo"));
      return Recall(slot);
    }
    case Opcode::kLongBinGet: {
      SLUICE_TRY_ASSIGN(const auto slot, reader_.Read<uint32_t>("a place in the memo"));
      return Recall(slot);
    }
    default:
      return Build(opcode);
  }
}

// Opcodes that make something of what is on the stack.
Status Machine::Build(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBinPut: {
      SLUICE_TRY_ASSIGN(const auto slot, reader_.Read<uint8_t>("a place in the memo"));
      return Remember(slot);
    }
    case Opcode::kLongBinPut: {
      SLUICE_TRY_ASSIGN(const auto slot, reader_.Read<uint32_t>("a place in the memo"));
      return Remember(slot);
    }
    case Opcode::kTuple1:
      return MakeTuple(1);
    case Opcode::kTuple2:
      return MakeTuple(2);
    case Opcode::kTuple3:
      return MakeTuple(3);
    case Opcode::kTuple: {
      SLUICE_TRY_ASSIGN(const size_t size, PopMark());
      return MakeTuple(size);
    }
    case Opcode::kSetItem:
      return SetItems(1);
    case Opcode::kSetItems: {
      SLUICE_TRY_ASSIGN(const size_t above, PopMark());
      if (above % 2 != 0) return Wrong(ErrorCode::kCorrupt, "a key without a value");
      return SetItems(above / 2);
    }
    case Opcode::kBinPersId:
      return MakeStorage();
    case Opcode::kReduce:
      return Reduce();
    case Opcode::kBuild:
      return DropState();
    default:
      return Wrong(ErrorCode::kUnsupported,
                   "opcode {} is no part of a dictionary of tensors; nothing of a pickle is run",
                   OpcodeName(static_cast<uint8_t>(opcode)));
  }
}

Result<std::vector<PickledTensor>> Machine::TensorsOf(const Dict& dict) {
  std::vector<PickledTensor> tensors;
  std::set<std::string_view> names;
  for (const auto& [key, value] : dict.items) {
    SLUICE_TRY_ASSIGN(const std::string* name, As<std::string>(key, "a name"));
    if (!names.insert(*name).second) return Fail(ErrorCode::kCorrupt, "tensor {} is there twice", *name);
    SLUICE_TRY_ASSIGN(const PickledTensor* tensor, As<PickledTensor>(value, name->substr(0, 200)));
    tensors.push_back(*tensor);
    tensors.back().name = *name;
  }
  return tensors;
}

Result<std::vector<PickledTensor>> Machine::Run() {
  SLUICE_TRY_ASSIGN(const auto first, reader_.Read<uint8_t>("a pickle"));
  SLUICE_TRY_ASSIGN(const auto protocol, reader_.Read<uint8_t>("a pickle"));
  if (first != static_cast<uint8_t>(Opcode::kProto) || protocol != 2)
    return Wrong(ErrorCode::kUnsupported,
                 "begins with {:#04x} {:#04x}; expected {:#04x} 0x02, protocol 2 as torch.save writes", first,
                 protocol, static_cast<uint8_t>(Opcode::kProto));
  for (;;) {
    at_ = reader_.offset();
    SLUICE_TRY_ASSIGN(const auto opcode, reader_.Read<uint8_t>("an opcode"));
    if (static_cast<Opcode>(opcode) == Opcode::kStop) break;
    SLUICE_TRY(Load(static_cast<Opcode>(opcode)));
  }
  SLUICE_TRY_ASSIGN(const Ref whole, Pop());
  SLUICE_TRY_ASSIGN(const Dict* dict, As<Dict>(whole, "the file's object"));
  return TensorsOf(*dict);
}

}  // namespace

Result<std::vector<PickledTensor>> ReadStateDict(std::span<const std::byte> pickle) {
  return Machine(pickle).Run();
}

}  // namespace sluice::convert
