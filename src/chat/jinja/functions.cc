// The global functions.
#include <fmt/format.h>

#include "chat/jinja/builtin_tables.h"
#include "chat/jinja/format.h"
#include "chat/jinja/interpreter.h"
#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

using Call = Invocation;

Result<Value> Range(Call& call) {
  int64_t start = 0;
  int64_t stop;
  if (call.args[1].is_undefined()) {
    SLUICE_TRY_ASSIGN(stop, call.Integer(0, 0));
  } else {
    SLUICE_TRY_ASSIGN(start, call.Integer(0, 0));
    SLUICE_TRY_ASSIGN(stop, call.Integer(1, 0));
  }
  SLUICE_TRY_ASSIGN(const int64_t step, call.Integer(2, 1));
  if (step == 0) return Fail(ErrorCode::kCorrupt, "range: the step is zero");
  // In doubles, so that the difference can't overflow; exact where it matters.
  const double count = (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step);
  const int64_t most = call.interpreter.limits().range_items;
  if (count > static_cast<double>(most))
    return Fail(ErrorCode::kResourceExhausted, "range: more than {} items", most);
  SLUICE_TRY(call.heap.Spend(count > 0 ? static_cast<uint64_t>(count) / 16 : 0));
  SLUICE_TRY_ASSIGN(List * items, call.heap.NewList());
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    SLUICE_TRY(call.heap.Append(items, Value(i)));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value(items);
}

Result<Value> MakeDict(Call& call) {
  SLUICE_TRY_ASSIGN(Dict * dict, call.heap.NewDict());
  SLUICE_TRY(call.interpreter.FillDict(dict, call.all));
  return Value(dict);
}

Result<Value> MakeNamespace(Call& call) {
  SLUICE_TRY_ASSIGN(Namespace * ns, call.heap.NewNamespace());
  SLUICE_TRY(call.interpreter.FillDict(ns->attributes, call.all));
  return Value(ns);
}

Result<Value> RaiseException(Call& call) {
  SLUICE_TRY_ASSIGN(const Text message, ToText(call.args[0], call.heap.meter()));
  return call.interpreter.Raise(std::string(message.view()));
}

Result<Value> TimeNow(Call& call) {
  SLUICE_TRY_ASSIGN(const Text pattern, call.String(0, "%Y-%m-%d"));
  if (pattern.size() > 1000)
    return Fail(ErrorCode::kResourceExhausted, "strftime_now: a pattern of {} bytes", pattern.size());
  SLUICE_TRY_ASSIGN(Text text,
                    call.heap.NewText(FormatTime(pattern.view(), *call.interpreter.local_time()), true));
  return Value(std::move(text));
}

// joiner(sep): the first call gives "", later ones the separator. The state is the list [separator, used].
Result<Value> CallJoiner(Call& call) {
  auto& state = call.self.list()->items;
  if (state[1].Truthy()) return state[0];
  state[1] = Value(true);
  return Value(Text());
}
constexpr Builtin kJoinerCall = {"joiner", "", CallJoiner};

Result<Value> MakeJoiner(Call& call) {
  SLUICE_TRY_ASSIGN(const Text separator, call.String(0, ", "));
  SLUICE_TRY_ASSIGN(List * state, call.heap.NewList({Value(separator), Value(false)}));
  SLUICE_TRY_ASSIGN(Callable * joiner,
                    call.heap.NewCallable({.builtin = &kJoinerCall, .self = Value(state)}));
  return Value(joiner);
}

// cycler(a, b, …): a namespace {items, position, current, next, reset}.
Result<Value> MoveCycler(Call& call, bool forward) {
  Dict* attributes = call.self.ns()->attributes;
  const auto& items = attributes->Find("items")->list()->items;
  Value* position = attributes->Find("position");
  const auto count = static_cast<int64_t>(items.size());
  const Value old = *attributes->Find("current");
  *position = Value(forward ? (position->AsInteger() + 1) % count : int64_t{0});
  *attributes->Find("current") = items[static_cast<size_t>(position->AsInteger())];
  return old;
}
Result<Value> NextOfCycler(Call& call) { return MoveCycler(call, true); }
Result<Value> ResetCycler(Call& call) {
  SLUICE_TRY(MoveCycler(call, false));
  return Value(None{});
}
constexpr Builtin kCyclerNext = {"next", "", NextOfCycler};
constexpr Builtin kCyclerReset = {"reset", "", ResetCycler};

Result<Value> MakeCycler(Call& call) {
  if (call.all.positional.empty()) return Fail(ErrorCode::kCorrupt, "cycler: needs values");
  SLUICE_TRY_ASSIGN(Namespace * cycler, call.heap.NewNamespace());
  SLUICE_TRY_ASSIGN(List * items, call.heap.NewList(call.all.positional));
  SLUICE_TRY(call.heap.Set(cycler->attributes, "items", Value(items)));
  SLUICE_TRY(call.heap.Set(cycler->attributes, "position", Value(int64_t{0})));
  SLUICE_TRY(call.heap.Set(cycler->attributes, "current", items->items[0]));
  for (const Builtin* method : {&kCyclerNext, &kCyclerReset}) {
    SLUICE_TRY_ASSIGN(Callable * callable, call.heap.NewCallable({.builtin = method, .self = Value(cycler)}));
    SLUICE_TRY(call.heap.Set(cycler->attributes, method->name, Value(callable)));
  }
  return Value(cycler);
}

constexpr Builtin kFunctions[] = {
    {"range", "start | stop step", Range},
    {"namespace", "*", MakeNamespace},
    {"dict", "*", MakeDict},
    {"raise_exception", "message", RaiseException},
    {"strftime_now", "format", TimeNow},
    {"joiner", "| sep", MakeJoiner},
    {"cycler", "*", MakeCycler},
};

}  // namespace

std::span<const Builtin> Functions() { return kFunctions; }

// dict(…), namespace(…), update(…): a dict or a list of pairs, then names.
Status Interpreter::FillDict(Dict* dict, const Arguments& arguments) {
  for (const Value& source : arguments.positional) {
    SLUICE_TRY_ASSIGN(List * items, Iterate(source, heap_));
    const size_t count = items->items.size();
    for (size_t i = 0; i < count; ++i) {
      SLUICE_TRY(heap_->Spend(1));
      const Value item = items->items[i];
      if (source.dict()) {
        SLUICE_TRY(heap_->Set(dict, item, Value(*source.dict()->Find(item))));
      } else if (item.list() != nullptr && item.list()->items.size() == 2) {
        SLUICE_TRY(heap_->Set(dict, item.list()->items[0], item.list()->items[1]));
      } else {
        return Fail(ErrorCode::kCorrupt, "a dict is made of pairs, not of a {}", item.TypeName());
      }
    }
  }
  for (const auto& [name, value] : arguments.named) SLUICE_TRY(heap_->Set(dict, name, value));
  return {};
}

}  // namespace sluice::chat::jinja
