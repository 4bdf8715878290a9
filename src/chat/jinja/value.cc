#include "chat/jinja/value.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sluice::chat::jinja {
namespace {

// Nested lists and dicts deeper than this are not compared (they may contain themselves).
constexpr int kMaxCompareDepth = 100;
// What a dict entry costs beyond its key's bytes: the entry, the tree's node and the key's copy in it.
constexpr size_t kEntryBytes = 160;
// What a list, dict, callable … costs, empty.
constexpr size_t kObjectBytes = 96;

Error OutOfBytes() { return Fail(ErrorCode::kResourceExhausted, "the template holds too much data"); }
Error OutOfSteps() { return Fail(ErrorCode::kResourceExhausted, "the template takes too many steps"); }

// A string that is equal for equal keys and different for others; empty for what can't be a key.
std::string KeyIdentity(const Value& key) {
  if (const Text* text = key.text()) return fmt::format("s{}", text->view());
  if (key.is_none()) return "n";
  if (key.is_integer()) return fmt::format("i{}", key.AsInteger());
  if (!key.is_number()) return "";
  const double number = key.AsDouble();
  if (std::abs(number) < 0x1p53 && std::trunc(number) == number) {
    return fmt::format("i{}", static_cast<int64_t>(number));
  }
  return fmt::format("f{}", number);
}

Result<bool> EqualAt(const Value& a, const Value& b, Meter* meter, int depth);

Result<bool> EqualLists(const List& a, const List& b, Meter* meter, int depth) {
  if (a.tuple != b.tuple || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    SLUICE_TRY_ASSIGN(const bool equal, EqualAt(a.items[i], b.items[i], meter, depth + 1));
    if (!equal) return false;
  }
  return true;
}

Result<bool> EqualDicts(const Dict& a, Dict& b, Meter* meter, int depth) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const Dict::Entry& entry : a.entries) {
    if (entry.key.is_text() && !meter->SpendBytes(entry.key.text()->size())) return OutOfSteps();
    const Value* other = b.Find(entry.key);
    if (other == nullptr) return false;
    SLUICE_TRY_ASSIGN(const bool equal, EqualAt(entry.value, *other, meter, depth + 1));
    if (!equal) return false;
  }
  return true;
}

Result<bool> EqualAt(const Value& a, const Value& b, Meter* meter, int depth) {
  if (depth > kMaxCompareDepth)
    return Fail(ErrorCode::kResourceExhausted, "compared values are nested too deep");
  if (!meter->Spend(1)) return OutOfSteps();
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) return a.AsInteger() == b.AsInteger();
    return a.AsDouble() == b.AsDouble();
  }
  if (a.is_text() && b.is_text()) {
    if (a.text()->size() != b.text()->size()) return false;
    if (!meter->SpendBytes(a.text()->size())) return OutOfSteps();
    return a.text()->view() == b.text()->view();
  }
  if (a.list() && b.list()) return EqualLists(*a.list(), *b.list(), meter, depth);
  if (a.dict() && b.dict()) return EqualDicts(*a.dict(), *b.dict(), meter, depth);
  if (a.is_none() || a.is_undefined())
    return a.is_none() == b.is_none() && a.is_undefined() == b.is_undefined();
  if (a.ns()) return a.ns() == b.ns();
  if (a.loop()) return a.loop() == b.loop();
  if (a.callable()) return a.callable() == b.callable();
  return false;
}

Result<int> CompareAt(const Value& a, const Value& b, Meter* meter, int depth) {
  if (depth > kMaxCompareDepth)
    return Fail(ErrorCode::kResourceExhausted, "compared values are nested too deep");
  if (!meter->Spend(1)) return OutOfSteps();
  const auto sign = [](auto x, auto y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (a.is_integer() && b.is_integer()) return sign(a.AsInteger(), b.AsInteger());
  if (a.is_number() && b.is_number()) return sign(a.AsDouble(), b.AsDouble());
  if (a.is_text() && b.is_text()) {
    if (!meter->SpendBytes(std::min(a.text()->size(), b.text()->size()))) return OutOfSteps();
    return sign(a.text()->view(), b.text()->view());  // byte order is code point order
  }
  if (a.list() && b.list() && a.list()->tuple == b.list()->tuple) {
    const auto& x = a.list()->items;
    const auto& y = b.list()->items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      SLUICE_TRY_ASSIGN(const int order, CompareAt(x[i], y[i], meter, depth + 1));
      if (order != 0) return order;
    }
    return sign(x.size(), y.size());
  }
  return Fail(ErrorCode::kCorrupt, "can't compare {} with {}", a.TypeName(), b.TypeName());
}

}  // namespace

bool Value::Truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_integer()) return AsInteger() != 0;
  if (is_number()) return AsDouble() != 0;
  if (is_text()) return !text()->empty();
  if (list()) return !list()->items.empty();
  if (dict()) return !dict()->entries.empty();
  return true;
}

std::string_view Value::TypeName() const {
  if (list()) return list()->tuple ? "tuple" : "list";
  static constexpr std::string_view kNames[] = {"undefined", "none",   "boolean", "integer",
                                                "float",     "string", "list",    "dict",
                                                "namespace", "loop",   "function"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(data_)>);
  return kNames[data_.index()];
}

Value* Dict::Find(const Value& key) {
  const auto found = index_.find(KeyIdentity(key));
  return found == index_.end() ? nullptr : &entries[found->second].value;
}

Value* Dict::Find(std::string_view key) {
  const auto found = index_.find(fmt::format("s{}", key));
  return found == index_.end() ? nullptr : &entries[found->second].value;
}

bool Dict::Erase(const Value& key) {
  const auto found = index_.find(KeyIdentity(key));
  if (found == index_.end()) return false;
  const size_t place = found->second;
  entries.erase(entries.begin() + static_cast<ptrdiff_t>(place));
  index_.erase(found);
  for (auto& [identity, other] : index_) {
    if (other > place) --other;
  }
  return true;
}

Status Heap::Reserve(size_t bytes) {
  if (!meter_.Reserve(bytes)) return OutOfBytes();
  return {};
}

Status Heap::Spend(uint64_t steps) {
  if (!meter_.Spend(steps)) return OutOfSteps();
  return {};
}

Status Heap::SpendBytes(size_t bytes) {
  if (!meter_.SpendBytes(bytes)) return OutOfSteps();
  return {};
}

Result<List*> Heap::NewList(std::vector<Value> items, bool tuple) {
  SLUICE_TRY(Reserve(kObjectBytes + items.capacity() * sizeof(Value)));
  return &lists_.emplace_back(List{std::move(items), tuple});
}

Result<Dict*> Heap::NewDict() {
  SLUICE_TRY(Reserve(kObjectBytes));
  return &dicts_.emplace_back();
}

Result<Namespace*> Heap::NewNamespace() {
  SLUICE_TRY_ASSIGN(Dict * attributes, NewDict());
  return &namespaces_.emplace_back(Namespace{attributes});
}

Result<Loop*> Heap::NewLoop(Loop loop) {
  SLUICE_TRY(Reserve(kObjectBytes));
  return &loops_.emplace_back(std::move(loop));
}

Result<Callable*> Heap::NewCallable(Callable callable) {
  SLUICE_TRY(Reserve(kObjectBytes));
  return &callables_.emplace_back(std::move(callable));
}

Result<Text> Heap::NewText(std::string_view bytes, bool trusted) {
  TextBuilder builder(&meter_);
  builder.Append(bytes, trusted);
  return builder.Finish();
}

Status Heap::Append(List* list, Value value) {
  auto& items = list->items;
  if (items.size() == items.capacity()) {
    const size_t grown = std::max<size_t>(4, items.capacity() * 2);
    SLUICE_TRY(Reserve((grown - items.capacity()) * sizeof(Value)));
    items.reserve(grown);
  }
  items.push_back(std::move(value));
  return {};
}

Result<Value*> Heap::Find(Dict* dict, const Value& key) {
  if (key.is_text()) SLUICE_TRY(SpendBytes(key.text()->size()));
  return dict->Find(key);
}

Status Heap::Set(Dict* dict, Value key, Value value) {
  if (key.is_text()) SLUICE_TRY(SpendBytes(key.text()->size()));
  std::string identity = KeyIdentity(key);
  if (identity.empty()) return Fail(ErrorCode::kCorrupt, "a {} can't be a key", key.TypeName());
  if (const auto found = dict->index_.find(identity); found != dict->index_.end()) {
    dict->entries[found->second].value = std::move(value);
    return {};
  }
  SLUICE_TRY(Reserve(kEntryBytes + identity.size()));
  dict->index_.emplace(std::move(identity), dict->entries.size());
  dict->entries.push_back({std::move(key), std::move(value)});
  return {};
}

Status Heap::Set(Dict* dict, std::string_view key, Value value) {
  return Set(dict, Value(Text::Literal(std::string(key))), std::move(value));
}

Result<bool> Equal(const Value& a, const Value& b, Meter* meter) { return EqualAt(a, b, meter, 0); }

Result<int> Compare(const Value& a, const Value& b, Meter* meter) { return CompareAt(a, b, meter, 0); }

}  // namespace sluice::chat::jinja
