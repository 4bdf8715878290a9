// Methods of lists, dicts and of the loop variable. Those that change their object charge it like its maker
// does.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/interpreter.h"

namespace sluice::chat::jinja {
namespace {

using Call = Invocation;

// --- Lists ---

Result<List*> Mutable(Call& call) {
  List* list = call.self.list();
  if (list->tuple) return Fail(ErrorCode::kCorrupt, "a tuple can't be changed");
  return list;
}

Result<Value> Append(Call& call) {
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  SLUICE_TRY(call.heap.Append(list, call.args[0]));
  return Value(None{});
}

Result<Value> Extend(Call& call) {
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  SLUICE_TRY_ASSIGN(const List* more, Iterate(call.args[0], &call.heap));
  const size_t count = more->items.size();  // `more` may be the list itself
  SLUICE_TRY(call.heap.Spend(count));
  for (size_t i = 0; i < count; ++i) SLUICE_TRY(call.heap.Append(list, Value(more->items[i])));
  return Value(None{});
}

Result<Value> Insert(Call& call) {
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  SLUICE_TRY_ASSIGN(int64_t index, call.Integer(0, 0));
  const auto size = static_cast<int64_t>(list->items.size());
  if (index < 0) index = std::max<int64_t>(0, index + size);
  index = std::min(index, size);
  SLUICE_TRY(call.heap.Spend(list->items.size() / 16));
  SLUICE_TRY(call.heap.Append(list, Value()));  // makes room
  list->items.pop_back();
  list->items.insert(list->items.begin() + index, call.args[1]);
  return Value(None{});
}

Result<Value> PopItem(Call& call) {
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  SLUICE_TRY_ASSIGN(int64_t index, call.Integer(0, -1));
  const auto size = static_cast<int64_t>(list->items.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) return Fail(ErrorCode::kCorrupt, "pop: no element {} of {}", index, size);
  SLUICE_TRY(call.heap.Spend(static_cast<uint64_t>(size - index) / 16));
  Value value = std::move(list->items[static_cast<size_t>(index)]);
  list->items.erase(list->items.begin() + index);
  return value;
}

// Where an element equals args[0]; the size if nowhere.
Result<size_t> Position(Call& call) {
  const auto& items = call.self.list()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    SLUICE_TRY_ASSIGN(const bool equal, Equal(items[i], call.args[0], call.heap.meter()));
    if (equal) return i;
  }
  return items.size();
}

Result<Value> IndexOf(Call& call) {
  SLUICE_TRY_ASSIGN(const size_t index, Position(call));
  if (index == call.self.list()->items.size()) return Fail(ErrorCode::kCorrupt, "index: not in the list");
  return Value(static_cast<int64_t>(index));
}

Result<Value> Remove(Call& call) {
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  SLUICE_TRY_ASSIGN(const size_t index, Position(call));
  if (index == list->items.size()) return Fail(ErrorCode::kCorrupt, "remove: not in the list");
  list->items.erase(list->items.begin() + static_cast<ptrdiff_t>(index));
  return Value(None{});
}

Result<Value> CountEqual(Call& call) {
  int64_t count = 0;
  for (const Value& item : call.self.list()->items) {
    SLUICE_TRY_ASSIGN(const bool equal, Equal(item, call.args[0], call.heap.meter()));
    if (equal) ++count;
  }
  return Value(count);
}

Result<Value> ReverseInPlace(Call& call) {
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  SLUICE_TRY(call.heap.Spend(list->items.size() / 8));
  list->items = std::vector<Value>(list->items.rbegin(), list->items.rend());
  return Value(None{});
}

Result<Value> SortInPlace(Call& call) {  // reverse
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  Arguments arguments;
  arguments.named.emplace_back("reverse", call.args[0]);
  arguments.named.emplace_back("case_sensitive", Value(true));
  SLUICE_TRY_ASSIGN(const Value sorted, Invoke(*FindFilter("sort"), call.self, arguments, &call.interpreter));
  std::swap(list->items, sorted.list()->items);
  return Value(None{});
}

Result<Value> CopyList(Call& call) {
  SLUICE_TRY(call.heap.Spend(call.self.list()->items.size() / 8));
  SLUICE_TRY_ASSIGN(List * copy, call.heap.NewList(call.self.list()->items, call.self.list()->tuple));
  return Value(copy);
}

Result<Value> ClearList(Call& call) {
  SLUICE_TRY_ASSIGN(List * list, Mutable(call));
  list->items.clear();
  return Value(None{});
}

// --- Dicts ---

Result<Value> Get(Call& call) {
  SLUICE_TRY_ASSIGN(const Value* found, call.heap.Find(call.self.dict(), call.args[0]));
  if (found != nullptr) return *found;
  return call.args[1].is_undefined() ? Value(None{}) : call.args[1];
}

Result<Value> Keys(Call& call) {
  SLUICE_TRY_ASSIGN(List * keys, Iterate(call.self, &call.heap));
  return Value(keys);
}

Result<Value> Values(Call& call) {
  SLUICE_TRY_ASSIGN(List * values, call.heap.NewList());
  for (const Dict::Entry& entry : call.self.dict()->entries) {
    SLUICE_TRY(call.heap.Spend(1));
    SLUICE_TRY(call.heap.Append(values, entry.value));
  }
  return Value(values);
}

Result<Value> PopKey(Call& call) {
  Dict* dict = call.self.dict();
  SLUICE_TRY_ASSIGN(const Value* found, call.heap.Find(dict, call.args[0]));
  if (found == nullptr) {
    if (call.args[1].is_undefined()) return Fail(ErrorCode::kCorrupt, "pop: no such key");
    return call.args[1];
  }
  Value value = *found;
  SLUICE_TRY(call.heap.Spend(dict->entries.size() / 4));
  dict->Erase(call.args[0]);
  return value;
}

Result<Value> SetDefault(Call& call) {
  SLUICE_TRY_ASSIGN(const Value* found, call.heap.Find(call.self.dict(), call.args[0]));
  if (found != nullptr) return *found;
  Value value = call.args[1].is_undefined() ? Value(None{}) : call.args[1];
  SLUICE_TRY(call.heap.Set(call.self.dict(), call.args[0], value));
  return value;
}

Result<Value> Update(Call& call) {
  SLUICE_TRY(call.interpreter.FillDict(call.self.dict(), call.all));
  return Value(None{});
}

Result<Value> CopyDict(Call& call) {
  SLUICE_TRY_ASSIGN(Dict * copy, call.heap.NewDict());
  Arguments source;
  source.positional.push_back(call.self);
  SLUICE_TRY(call.interpreter.FillDict(copy, source));
  return Value(copy);
}

// --- The loop variable ---

Result<Value> LoopCycle(Call& call) {
  const auto& choices = call.all.positional;
  if (choices.empty()) return Fail(ErrorCode::kCorrupt, "cycle: needs values");
  return choices[call.self.loop()->index0 % choices.size()];
}

Result<Value> LoopChanged(Call& call) {
  SLUICE_TRY_ASSIGN(List * now, call.heap.NewList(call.all.positional));
  Loop* loop = call.self.loop();
  SLUICE_TRY_ASSIGN(const bool same, Equal(loop->last_changed, Value(now), call.heap.meter()));
  if (!same) loop->last_changed = Value(now);
  return Value(!same);
}

constexpr Builtin kListMethods[] = {
    {"append", "object", Append}, {"extend", "iterable", Extend},  {"insert", "index object", Insert},
    {"pop", "| index", PopItem},  {"index", "value", IndexOf},     {"count", "value", CountEqual},
    {"remove", "value", Remove},  {"reverse", "", ReverseInPlace}, {"sort", "| reverse", SortInPlace},
    {"copy", "", CopyList},       {"clear", "", ClearList},
};

constexpr Builtin kLoopMethods[] = {{"cycle", "*", LoopCycle}, {"changed", "*", LoopChanged}};

}  // namespace

Result<Value> DictItems(Invocation& call) {
  SLUICE_TRY_ASSIGN(List * pairs, call.heap.NewList());
  if (call.self.is_undefined()) return Value(pairs);
  if (call.self.dict() == nullptr)
    return Fail(ErrorCode::kCorrupt, "items: no dict: {}", call.self.TypeName());
  for (const Dict::Entry& entry : call.self.dict()->entries) {
    SLUICE_TRY(call.heap.Spend(1));
    SLUICE_TRY_ASSIGN(List * pair, call.heap.NewList({entry.key, entry.value}, /*tuple=*/true));
    SLUICE_TRY(call.heap.Append(pairs, Value(pair)));
  }
  return Value(pairs);
}

namespace {

constexpr Builtin kDictMethods[] = {
    {"get", "key | default", Get},
    {"items", "", DictItems},
    {"keys", "", Keys},
    {"values", "", Values},
    {"pop", "key | default", PopKey},
    {"setdefault", "key | default", SetDefault},
    {"update", "*", Update},
    {"copy", "", CopyDict},
};

}  // namespace

std::span<const Builtin> ListMethods() { return kListMethods; }
std::span<const Builtin> DictMethods() { return kDictMethods; }
std::span<const Builtin> LoopMethods() { return kLoopMethods; }

}  // namespace sluice::chat::jinja
