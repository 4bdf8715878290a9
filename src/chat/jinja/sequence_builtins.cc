// Filters of lists and whatever else has elements.
#include <fmt/format.h>

#include <algorithm>

#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

using Call = Invocation;

// The input's elements. The list may be the input itself: not to be changed.
Result<List*> Elements(Call& call) { return Iterate(call.self, &call.heap); }

// A string argument that names an attribute ("a.b"), empty where it is missing.
Result<std::string> AttributeName(Call& call, size_t i) {
  if (call.args[i].is_integer()) return fmt::format("{}", call.args[i].AsInteger());
  SLUICE_TRY_ASSIGN(const Text name, call.String(i));
  return std::string(name.view());
}

// What elements are compared by: the attribute, if one is named, in lower case unless case matters.
Result<Value> SortKey(Call& call, const Value& element, std::string_view attribute, bool case_sensitive) {
  Value key = element;
  if (!attribute.empty()) {
    SLUICE_TRY_ASSIGN(key, call.interpreter.GetPath(element, attribute));
  }
  if (case_sensitive || !key.is_text()) return key;
  return Invoke(*FindFilter("lower"), key, {}, &call.interpreter);
}

Result<std::vector<Value>> SortKeys(Call& call, const std::vector<Value>& elements,
                                    std::string_view attribute, bool case_sensitive) {
  std::vector<Value> keys;
  keys.reserve(elements.size());
  for (const Value& element : elements) {
    SLUICE_TRY(call.heap.Spend(1));
    SLUICE_TRY_ASSIGN(Value key, SortKey(call, element, attribute, case_sensitive));
    keys.push_back(std::move(key));
  }
  return keys;
}

// The places of `keys` in ascending (or descending) order; equal ones stay in theirs.
Result<std::vector<size_t>> SortedOrder(Call& call, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Status status;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (!status) return false;
    const Result<int> sign = Compare(keys[a], keys[b], call.heap.meter());
    if (!sign) status = sign.error();
    return sign && (reverse ? *sign > 0 : *sign < 0);
  });
  SLUICE_TRY(status);
  return order;
}

Result<Value> MakeList(Call& call, std::vector<Value> items) {
  SLUICE_TRY_ASSIGN(List * list, call.heap.NewList(std::move(items)));
  return Value(list);
}

// --- Order ---

Result<Value> Sort(Call& call) {  // reverse, case_sensitive, attribute
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const std::string attribute, AttributeName(call, 2));
  SLUICE_TRY_ASSIGN(const std::vector<Value> keys, SortKeys(call, list->items, attribute, call.Boolean(1)));
  SLUICE_TRY_ASSIGN(const std::vector<size_t> order, SortedOrder(call, keys, call.Boolean(0)));
  std::vector<Value> sorted;
  for (const size_t i : order) sorted.push_back(list->items[i]);
  return MakeList(call, std::move(sorted));
}

Result<Value> DictSort(Call& call) {  // case_sensitive, by, reverse
  if (call.self.dict() == nullptr)
    return Fail(ErrorCode::kCorrupt, "dictsort: no dict: {}", call.self.TypeName());
  SLUICE_TRY_ASSIGN(const Text by, call.String(1, "key"));
  std::vector<Value> keys;
  for (const Dict::Entry& entry : call.self.dict()->entries) {
    SLUICE_TRY(call.heap.Spend(1));
    const Value& key = by.view() == "value" ? entry.value : entry.key;
    SLUICE_TRY_ASSIGN(Value sort_key, SortKey(call, key, "", call.Boolean(0)));
    keys.push_back(std::move(sort_key));
  }
  SLUICE_TRY_ASSIGN(const std::vector<size_t> order, SortedOrder(call, keys, call.Boolean(2)));
  SLUICE_TRY_ASSIGN(List * sorted, call.heap.NewList());
  for (const size_t i : order) {
    const Dict::Entry& entry = call.self.dict()->entries[i];
    SLUICE_TRY_ASSIGN(List * pair, call.heap.NewList({entry.key, entry.value}, /*tuple=*/true));
    SLUICE_TRY(call.heap.Append(sorted, Value(pair)));
  }
  return Value(sorted);
}

Result<Value> Unique(Call& call) {  // case_sensitive, attribute
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const std::string attribute, AttributeName(call, 1));
  SLUICE_TRY_ASSIGN(const std::vector<Value> keys, SortKeys(call, list->items, attribute, call.Boolean(0)));
  SLUICE_TRY_ASSIGN(Dict * seen, call.heap.NewDict());
  std::vector<Value> unique;
  for (size_t i = 0; i < keys.size(); ++i) {
    SLUICE_TRY_ASSIGN(const Value* found, call.heap.Find(seen, keys[i]));
    if (found != nullptr) continue;
    SLUICE_TRY(call.heap.Set(seen, keys[i], Value(true)));
    unique.push_back(list->items[i]);
  }
  return MakeList(call, std::move(unique));
}

Result<Value> Extreme(Call& call, bool largest) {  // case_sensitive, attribute
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const std::string attribute, AttributeName(call, 1));
  SLUICE_TRY_ASSIGN(const std::vector<Value> keys, SortKeys(call, list->items, attribute, call.Boolean(0)));
  if (keys.empty()) return Value();
  size_t best = 0;
  for (size_t i = 1; i < keys.size(); ++i) {
    SLUICE_TRY_ASSIGN(const int order, Compare(keys[i], keys[best], call.heap.meter()));
    if (largest ? order > 0 : order < 0) best = i;
  }
  return list->items[best];
}
Result<Value> Min(Call& call) { return Extreme(call, false); }
Result<Value> Max(Call& call) { return Extreme(call, true); }

Result<Value> Reverse(Call& call) {
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY(call.heap.Spend(list->items.size() / 4));
  std::vector<Value> items(list->items.rbegin(), list->items.rend());
  if (!call.self.is_text()) return MakeList(call, std::move(items));
  TextBuilder builder(call.heap.meter());
  for (const Value& c : items) builder.Append(*c.text());
  return ToValue(builder.Finish());
}

// --- Single elements and sums ---

Result<Value> Length(Call& call) {
  if (call.self.dict()) return Value(static_cast<int64_t>(call.self.dict()->entries.size()));
  if (call.self.list()) return Value(static_cast<int64_t>(call.self.list()->items.size()));
  if (call.self.is_undefined()) return Value(int64_t{0});
  if (!call.self.is_text()) return Fail(ErrorCode::kCorrupt, "a {} has no length", call.self.TypeName());
  SLUICE_TRY(call.heap.SpendBytes(call.self.text()->size()));
  return Value(CountChars(call.self.text()->view()));
}

Result<Value> First(Call& call) {
  if (call.self.is_text()) return call.interpreter.GetItem(call.self, Value(int64_t{0}));
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  return list->items.empty() ? Value() : list->items.front();
}

Result<Value> Last(Call& call) {
  if (call.self.is_text()) return call.interpreter.GetItem(call.self, Value(int64_t{-1}));
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  return list->items.empty() ? Value() : list->items.back();
}

Result<Value> Sum(Call& call) {  // attribute, start
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const std::string attribute, AttributeName(call, 0));
  Value sum = call.Has(1) ? call.args[1] : Value(int64_t{0});
  for (const Value& element : list->items) {
    SLUICE_TRY(call.heap.Spend(1));
    Value term = element;
    if (!attribute.empty()) {
      SLUICE_TRY_ASSIGN(term, call.interpreter.GetPath(element, attribute));
    }
    SLUICE_TRY_ASSIGN(sum, Arithmetic(Binary::Op::kAdd, sum, term, &call.heap));
  }
  return sum;
}

Result<Value> JoinFilter(Call& call) {  // d, attribute
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const Text separator, ToText(call.args[0], call.heap.meter()));
  SLUICE_TRY_ASSIGN(const std::string attribute, AttributeName(call, 1));
  TextBuilder builder(call.heap.meter());
  for (size_t i = 0; i < list->items.size(); ++i) {
    SLUICE_TRY(call.heap.Spend(1));
    if (i > 0) builder.Append(separator);
    Value item = list->items[i];
    if (!attribute.empty()) {
      SLUICE_TRY_ASSIGN(item, call.interpreter.GetPath(item, attribute));
    }
    SLUICE_TRY(Print(item, &builder));
  }
  return ToValue(builder.Finish());
}

// --- Other lists ---

Result<Value> ToList(Call& call) {
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY(call.heap.Spend(list->items.size() / 8));
  return MakeList(call, list->items);
}

Result<Value> Batch(Call& call) {  // linecount, fill_with
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const int64_t count, call.Integer(0, 1));
  if (count < 1) return Fail(ErrorCode::kCorrupt, "batch: {} is no size", count);
  SLUICE_TRY_ASSIGN(List * batches, call.heap.NewList());
  List* current = nullptr;
  for (const Value& item : list->items) {
    SLUICE_TRY(call.heap.Spend(1));
    if (current == nullptr || static_cast<int64_t>(current->items.size()) == count) {
      SLUICE_TRY_ASSIGN(current, call.heap.NewList());
      SLUICE_TRY(call.heap.Append(batches, Value(current)));
    }
    SLUICE_TRY(call.heap.Append(current, item));
  }
  while (current != nullptr && call.Has(1) && static_cast<int64_t>(current->items.size()) < count) {
    SLUICE_TRY(call.heap.Spend(1));
    SLUICE_TRY(call.heap.Append(current, call.args[1]));
  }
  return Value(batches);
}

Result<Value> SliceColumns(Call& call) {  // slices, fill_with
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const int64_t count, call.Integer(0, 1));
  if (count < 1) return Fail(ErrorCode::kCorrupt, "slice: {} is no number of slices", count);
  const auto size = static_cast<int64_t>(list->items.size());
  SLUICE_TRY_ASSIGN(List * slices, call.heap.NewList());
  size_t next = 0;
  for (int64_t i = 0; i < count; ++i) {
    SLUICE_TRY(call.heap.Spend(1));
    SLUICE_TRY_ASSIGN(List * slice, call.heap.NewList());
    const bool longer = i < size % count;
    for (int64_t k = size / count + (longer ? 1 : 0); k > 0; --k) {
      SLUICE_TRY(call.heap.Append(slice, list->items[next++]));
    }
    if (call.Has(1) && !longer && size % count != 0) SLUICE_TRY(call.heap.Append(slice, call.args[1]));
    SLUICE_TRY(call.heap.Append(slices, Value(slice)));
  }
  return Value(slices);
}

Result<Value> GroupBy(Call& call) {  // attribute, default, case_sensitive
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(const std::string attribute, AttributeName(call, 0));
  const bool case_sensitive = call.Boolean(2);
  std::vector<Value> values;
  std::vector<Value> keys;
  for (const Value& item : list->items) {
    SLUICE_TRY(call.heap.Spend(1));
    SLUICE_TRY_ASSIGN(Value value, call.interpreter.GetPath(item, attribute));
    if (value.is_undefined()) value = call.args[1];
    SLUICE_TRY_ASSIGN(Value key, SortKey(call, value, "", case_sensitive));
    values.push_back(std::move(value));
    keys.push_back(std::move(key));
  }
  SLUICE_TRY_ASSIGN(const std::vector<size_t> order, SortedOrder(call, keys, false));
  SLUICE_TRY_ASSIGN(List * groups, call.heap.NewList());
  List* members = nullptr;
  for (size_t n = 0; n < order.size(); ++n) {
    bool same = false;
    if (n > 0) {
      SLUICE_TRY_ASSIGN(same, Equal(keys[order[n]], keys[order[n - 1]], call.heap.meter()));
    }
    if (!same) {
      SLUICE_TRY_ASSIGN(members, call.heap.NewList());
      SLUICE_TRY_ASSIGN(List * group, call.heap.NewList({values[order[n]], Value(members)}, /*tuple=*/true));
      SLUICE_TRY(call.heap.Append(groups, Value(group)));
    }
    SLUICE_TRY(call.heap.Append(members, list->items[order[n]]));
  }
  return Value(groups);
}

// --- With another filter or test ---

// map('filter', arguments…) or map(attribute='name', default=…)
Result<Value> Map(Call& call) {
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(List * mapped, call.heap.NewList());
  Arguments rest = std::move(call.all);
  Value attribute, fallback;
  const Builtin* filter = nullptr;
  if (rest.positional.empty()) {
    for (const auto& [name, value] : rest.named) (name == "attribute" ? attribute : fallback) = value;
    if (!attribute.is_text() && !attribute.is_integer())
      return Fail(ErrorCode::kCorrupt, "map: needs a filter's name");
  } else {
    if (!rest.positional[0].is_text()) return Fail(ErrorCode::kCorrupt, "map: needs a filter's name");
    const std::string_view name = rest.positional[0].text()->view();
    filter = FindFilter(name);
    if (filter == nullptr) return Fail(ErrorCode::kUnsupported, "map: no filter named '{}'", name);
    rest.positional.erase(rest.positional.begin());
  }
  for (size_t i = 0; i < list->items.size(); ++i) {
    SLUICE_TRY(call.heap.Spend(1));
    Value value;
    if (filter != nullptr) {
      SLUICE_TRY_ASSIGN(value, Invoke(*filter, list->items[i], rest, &call.interpreter));
    } else if (attribute.is_text()) {
      SLUICE_TRY_ASSIGN(value, call.interpreter.GetPath(list->items[i], attribute.text()->view()));
    } else {
      SLUICE_TRY_ASSIGN(value, call.interpreter.GetItem(list->items[i], attribute));
    }
    SLUICE_TRY(call.heap.Append(mapped, value.is_undefined() ? fallback : value));
  }
  return Value(mapped);
}

// The elements for which the test (default: being true), applied to them or to an attribute, gives `wanted`.
Result<Value> Choose(Call& call, bool by_attribute, bool wanted) {
  SLUICE_TRY_ASSIGN(const List* list, Elements(call));
  SLUICE_TRY_ASSIGN(List * chosen, call.heap.NewList());
  Arguments rest = std::move(call.all);
  const auto take_name = [&rest]() -> Result<std::string> {
    if (rest.positional.empty() || !rest.positional[0].is_text()) {
      return Fail(ErrorCode::kCorrupt, "select and reject need the names of attribute and test as strings");
    }
    std::string name(rest.positional[0].text()->view());
    rest.positional.erase(rest.positional.begin());
    return name;
  };
  std::string attribute;
  if (by_attribute) {
    SLUICE_TRY_ASSIGN(attribute, take_name());
  }
  const Builtin* test = nullptr;
  if (!rest.positional.empty()) {
    SLUICE_TRY_ASSIGN(const std::string name, take_name());
    test = FindTest(name);
    if (test == nullptr) return Fail(ErrorCode::kUnsupported, "no test named '{}'", name);
  }
  for (size_t i = 0; i < list->items.size(); ++i) {
    SLUICE_TRY(call.heap.Spend(1));
    Value value = list->items[i];
    if (by_attribute) {
      SLUICE_TRY_ASSIGN(value, call.interpreter.GetPath(value, attribute));
    }
    if (test != nullptr) {
      SLUICE_TRY_ASSIGN(value, Invoke(*test, std::move(value), rest, &call.interpreter));
    }
    if (value.Truthy() == wanted) SLUICE_TRY(call.heap.Append(chosen, list->items[i]));
  }
  return Value(chosen);
}
Result<Value> Select(Call& call) { return Choose(call, false, true); }
Result<Value> Reject(Call& call) { return Choose(call, false, false); }
Result<Value> SelectAttribute(Call& call) { return Choose(call, true, true); }
Result<Value> RejectAttribute(Call& call) { return Choose(call, true, false); }

constexpr Builtin kSequenceFilters[] = {
    {"length", "", Length},
    {"count", "", Length},
    {"first", "", First},
    {"last", "", Last},
    {"join", "| d attribute", JoinFilter},
    {"list", "", ToList},
    {"sort", "| reverse case_sensitive attribute", Sort},
    {"dictsort", "| case_sensitive by reverse", DictSort},
    {"unique", "| case_sensitive attribute", Unique},
    {"min", "| case_sensitive attribute", Min},
    {"max", "| case_sensitive attribute", Max},
    {"sum", "| attribute start", Sum},
    {"reverse", "", Reverse},
    {"batch", "linecount | fill_with", Batch},
    {"slice", "slices | fill_with", SliceColumns},
    {"groupby", "attribute | default case_sensitive", GroupBy},
    {"map", "*", Map},
    {"select", "*", Select},
    {"reject", "*", Reject},
    {"selectattr", "*", SelectAttribute},
    {"rejectattr", "*", RejectAttribute},
};

}  // namespace

std::span<const Builtin> SequenceFilters() { return kSequenceFilters; }

}  // namespace sluice::chat::jinja
