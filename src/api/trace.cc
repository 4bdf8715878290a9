#include "sluice/trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/units.h"
#include "platform/atomic_writer.h"
#include "platform/memory_info.h"
#include "platform/process_activity.h"
#include "platform/thermal.h"

namespace sluice {

namespace {

// What the writer's buffer takes, and some more for paths and events under way.
constexpr uint64_t kTraceBytes = kMiB + 64 * kKiB;
// Series have a point at most this often: reading them takes some files of the kernel.
constexpr double kSecondsBetweenSamples = 0.1;

// JSON writes no numbers that are none.
double Finite(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

struct Trace::Impl {
  const Engine& engine;
  platform::AtomicWriter writer;
  memory::Reservation memory;
  const uint64_t most_step_bytes;
  const double origin;  // of all times, on the engine's clock
  const platform::CpuSensors sensors;

  const model::Model* model = nullptr;  // once it was begun
  Status status{};                      // of all writes so far
  bool steps_left_out = false;
  double last_sample = -1;  // seconds since the origin; before the first: negative
  // Of the passes that ended since the speed was written last.
  struct Rate {
    int64_t tokens = 0;
    double seconds = 0;
    double PerSecond() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
  };
  Rate reading{}, answering{};
  double speed_from = 0;      // when the first of these passes began, seconds since the origin
  double last_pass_end = -1;  // before the first: negative

  bool writing() const {
    return model != nullptr && status.has_value() && writer.position() < most_step_bytes / 2 * 3;
  }

  void WriteText(std::string_view text) {
    if (status) status = writer.Write(text);
  }
  template <typename... Args>
  void Write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::memory_buffer text;
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    WriteText({text.data(), text.size()});
  }

  // An event that took time. `what`: "step" or "pass".
  void WriteSpan(std::string_view name, std::string_view what, double start, double end,
                 std::string_view argument, int64_t value) {
    Write(
        ",\n"
        R"({{"name":"{}","cat":"{}","ph":"X","pid":1,"tid":1,"ts":{:.3f},"dur":{:.3f},"args":{{"{}":{}}}}})",
        name, what, (start - origin) * 1e6, (end - start) * 1e6, argument, value);
  }
  void BeginCounter(std::string_view name, double now) {
    Write(
        ",\n"
        R"({{"name":"{}","ph":"C","pid":1,"ts":{:.3f},"args":{{)",
        name, now * 1e6);
  }
  // A counter of one series.
  void WriteCounter(std::string_view name, double now, std::string_view series, std::optional<double> value) {
    if (!value) return;
    BeginCounter(name, now);
    Write(R"("{}":{:.6g}}}}})", series, Finite(*value));
  }
  void WriteMemory(double now);
  void WriteRead(double now);
  void WriteSpeed();
  void TakePass(int64_t rows, double start, double end);
  void StopSpeed();
  // `now`: seconds since the origin.
  void Sample(double now);
  Status Finish();
};

void Trace::Impl::WriteMemory(double now) {
  const memory::LedgerSnapshot ledger = engine.context().ledger->Snapshot();
  BeginCounter("memory", now);
  for (size_t i = 0; i < memory::kAccountCount; ++i) {
    const auto account = static_cast<memory::Account>(i);
    uint64_t used = ledger.used_bytes[i];
    // What the engine keeps free for whatever no account has is nobody's.
    if (account == memory::Account::kReserve)
      used -= std::min(used, plan::UnaccountedWithin(ledger.budget_bytes));
    Write(R"({}"{}":{})", i == 0 ? "" : ",", memory::AccountName(account), used);
  }
  WriteText("}}");
  const auto rss = platform::ReadProcessMemory().rss_bytes;
  if (rss) {
    BeginCounter("resident", now);
    Write(R"("RSS":{}}}}})", *rss);
  }
}

// A counter's value holds until its next point, so the speed of passes stands where they began.
void Trace::Impl::WriteSpeed() {
  if (reading.tokens + answering.tokens == 0) return;
  BeginCounter("tokens/s", speed_from);
  Write(R"("reading":{:.6g},"answering":{:.6g}}}}})", Finite(reading.PerSecond()),
        Finite(answering.PerSecond()));
  reading = answering = {};
  speed_from = last_pass_end;
}

// Times in seconds since the origin.
void Trace::Impl::TakePass(int64_t rows, double start, double end) {
  if (last_pass_end < 0) {
    speed_from = start;
  } else if (start - last_pass_end > kSecondsBetweenSamples) {
    StopSpeed();
    speed_from = start;
  }
  Rate& rate = rows > 1 ? reading : answering;
  rate.tokens += rows;
  rate.seconds += end - start;
  last_pass_end = end;
}

// After a pass that no other one follows at once.
void Trace::Impl::StopSpeed() {
  WriteSpeed();
  if (last_pass_end < 0) return;
  BeginCounter("tokens/s", last_pass_end);
  WriteText(R"("reading":0,"answering":0}})");
}

void Trace::Impl::WriteRead(double now) {
  std::optional<uint64_t> read = model->store().stats().bytes_read;
  if (model->store().options().residency == weights::Residency::kMmap)
    read = platform::ReadProcessActivity().storage_bytes;
  if (read) {
    BeginCounter("storage", now);
    Write(R"("bytes read":{}}}}})", *read);
  }
}

void Trace::Impl::Sample(double now) {
  last_sample = now;
  WriteMemory(now);
  WriteSpeed();
  WriteRead(now);
  const platform::CpuSensors::Reading cpu = sensors.Read();
  WriteCounter("frequency", now, "GHz",
               cpu.frequency_hz ? std::optional(*cpu.frequency_hz / 1e9) : std::nullopt);
  WriteCounter("temperature", now, "°C", cpu.celsius);
}

Status Trace::Impl::Finish() {
  if (model == nullptr) return {};
  WriteText("\n]}\n");
  if (status) status = writer.Commit();
  model = nullptr;
  return status;
}

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Trace::~Trace() {
  if (impl_ != nullptr) static_cast<void>(impl_->Finish());
}

Result<std::unique_ptr<Trace>> Trace::Create(const Engine& engine, const std::string& path,
                                             uint64_t most_step_bytes) {
  auto memory = memory::Reservation::Take(*engine.context().ledger, memory::Account::kReserve, kTraceBytes);
  if (!memory) return Annotate(std::move(memory).error(), "the trace");
  SLUICE_TRY_ASSIGN(platform::AtomicWriter writer, platform::AtomicWriter::Create(path));
  return std::unique_ptr<Trace>(new Trace(
      std::unique_ptr<Impl>(new Impl{engine, std::move(writer), *std::move(memory), most_step_bytes,
                                     engine.context().clock->NowSeconds(), platform::CpuSensors::Find()})));
}

void Trace::Begin(const Model& model, session::Session& session) {
  Impl& impl = *impl_;
  if (impl.model == nullptr) {
    const uint64_t budget = impl.engine.budget_bytes();
    nlohmann::ordered_json about{{"program", "sluice " SLUICE_VERSION},
                                 {"model", model.config().name},
                                 {"residency", weights::ResidencyName(model.plan().store.residency)},
                                 {"threads", impl.engine.threads()}};
    if (budget != memory::Ledger::kUnlimited) about["budget_bytes"] = budget;
    impl.model = &model.parts();
    impl.WriteText(R"({"displayTimeUnit":"ms","otherData":)");
    impl.WriteText(about.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    impl.WriteText(R"(,"traceEvents":[
{"name":"process_name","ph":"M","pid":1,"args":{"name":"sluice"}},
{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"passes"}})");
    impl.Sample(impl.engine.context().clock->NowSeconds() - impl.origin);
  }
  session.set_tracer(this);
}

Status Trace::Finish() {
  if (impl_->writing()) {
    impl_->Sample(impl_->engine.context().clock->NowSeconds() - impl_->origin);
    impl_->StopSpeed();
  }
  return impl_->Finish();
}

void Trace::OnStep(std::string_view step, int layer, double start, double end) {
  if (!impl_->writing()) return;
  if (impl_->writer.position() < impl_->most_step_bytes) {
    impl_->WriteSpan(step, "step", start, end, "layer", layer);
  } else if (!std::exchange(impl_->steps_left_out, true)) {
    impl_->Write(
        ",\n"
        R"({{"name":"steps are left out from here on","ph":"i","s":"g","pid":1,"tid":1,"ts":{:.3f}}})",
        (end - impl_->origin) * 1e6);
  }
  const double now = end - impl_->origin;
  if (now - impl_->last_sample >= kSecondsBetweenSamples) impl_->Sample(now);
}

void Trace::OnPass(int64_t rows, double start, double end) {
  if (!impl_->writing()) return;
  impl_->TakePass(rows, start - impl_->origin, end - impl_->origin);
  if (impl_->writer.position() < impl_->most_step_bytes)
    impl_->WriteSpan("pass", "pass", start, end, "tokens", rows);
  const double now = end - impl_->origin;
  if (now - impl_->last_sample >= kSecondsBetweenSamples) impl_->Sample(now);
}

}  // namespace sluice
