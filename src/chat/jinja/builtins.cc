#include "chat/jinja/builtins.h"

#include <fmt/format.h>

#include <optional>

#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

const Builtin* FindIn(std::span<const Builtin> table, std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

// Puts the arguments into the places that the parameters have.
Status Bind(const Builtin& builtin, Invocation* call) {
  std::string_view rest = builtin.parameters;
  std::array<bool, 4> given = {};
  size_t named_used = 0;
  size_t count = 0;
  bool optional = false;
  while (!rest.empty()) {
    const size_t blank = rest.find(' ');
    const std::string_view name = rest.substr(0, blank);
    rest = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
    if (name == "|") {
      optional = true;
      continue;
    }
    const size_t i = count++;
    if (i < call->all.positional.size()) {
      call->args[i] = call->all.positional[i];
      given[i] = true;
    }
    for (const auto& [argument, value] : call->all.named) {
      if (argument != name) continue;
      if (given[i]) return Fail(ErrorCode::kCorrupt, "{}: '{}' is given twice", builtin.name, name);
      call->args[i] = value;
      given[i] = true;
      ++named_used;
    }
    if (!given[i] && !optional) return Fail(ErrorCode::kCorrupt, "{}: '{}' is missing", builtin.name, name);
  }
  if (call->all.positional.size() > count) {
    return Fail(ErrorCode::kCorrupt, "{} takes at most {} arguments, not {}", builtin.name, count,
                call->all.positional.size());
  }
  if (named_used < call->all.named.size()) {
    return Fail(ErrorCode::kCorrupt, "{} doesn't take '{}'", builtin.name, call->all.named.back().first);
  }
  return {};
}

}  // namespace

const Builtin* FindFilter(std::string_view name) {
  for (const auto table : {TextFilters(), TextSearchFilters(), SequenceFilters(), ValueFilters()}) {
    if (const Builtin* found = FindIn(table, name)) return found;
  }
  return nullptr;
}

const Builtin* FindTest(std::string_view name) { return FindIn(Tests(), name); }

const Builtin* FindFunction(std::string_view name) { return FindIn(Functions(), name); }

const Builtin* FindMethod(const Value& object, std::string_view name) {
  if (object.is_text()) {
    const Builtin* found = FindIn(TextSearchMethods(), name);
    return found != nullptr ? found : FindIn(TextMethods(), name);
  }
  if (object.dict()) return FindIn(DictMethods(), name);
  if (object.list()) return FindIn(ListMethods(), name);
  if (object.loop()) return FindIn(LoopMethods(), name);
  return nullptr;
}

Result<Value> Invoke(const Builtin& builtin, Value self, Arguments arguments, Interpreter* interpreter) {
  Invocation call{*interpreter, *interpreter->heap(), std::move(self), arguments};
  if (builtin.parameters != "*") SLUICE_TRY(Bind(builtin, &call));
  return builtin.function(call);
}

Result<Text> Invocation::SelfText() const { return ToText(self, heap.meter()); }

Result<int64_t> Invocation::Integer(size_t i, int64_t absent) const {
  if (!Has(i)) return absent;
  if (!args[i].is_integer())
    return Fail(ErrorCode::kCorrupt, "expected an integer, not {}", args[i].TypeName());
  return args[i].AsInteger();
}

Result<Text> Invocation::String(size_t i, std::string_view absent) const {
  if (!Has(i)) return Text::Literal(std::string(absent));
  if (!args[i].is_text()) return Fail(ErrorCode::kCorrupt, "expected a string, not {}", args[i].TypeName());
  return *args[i].text();
}

Result<List*> Iterate(const Value& value, Heap* heap) {
  if (value.list()) return value.list();
  SLUICE_TRY_ASSIGN(List * items, heap->NewList());
  if (const Text* text = value.text()) {
    for (size_t at = 0; at < text->size();) {
      const size_t next = at + CharLength(text->view(), at);
      SLUICE_TRY(heap->Spend(1));
      SLUICE_TRY_ASSIGN(Text c, Slice(*text, at, next, heap->meter()));
      SLUICE_TRY(heap->Append(items, Value(std::move(c))));
      at = next;
    }
  } else if (value.dict()) {
    SLUICE_TRY(heap->Spend(value.dict()->entries.size() / 4));
    for (const Dict::Entry& entry : value.dict()->entries) SLUICE_TRY(heap->Append(items, entry.key));
  } else if (!value.is_undefined()) {
    return Fail(ErrorCode::kCorrupt, "can't go through the elements of a {}", value.TypeName());
  }
  return items;
}

}  // namespace sluice::chat::jinja
