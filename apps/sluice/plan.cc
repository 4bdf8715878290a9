// sluice plan: where every byte would go and how fast it would be, without running anything.
#include "sluice/plan.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "output.h"
#include "plan_report.h"
#include "resolve.h"
#include "sluice/library.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

struct PlanFlags {
  ModelFlags model;
  std::string type, device, storage;
  int sequences = 1;
  bool types = false, json = false, measure = false;
};

// What is to be planned, and the path of its file if it has one.
struct Subject {
  PlanSubject subject;
  std::string path;
};

Result<Subject> OpenSubject(const PlanFlags& flags) {
  const std::string& what = flags.model.model;
  const std::string type = flags.type.empty() ? "Q4_K_M" : flags.type;
  if (const auto shape = quantize::FindShape(what)) {
    SLUICE_TRY_ASSIGN(const quantize::Mix* mix, quantize::FindMix(type));
    SLUICE_TRY_ASSIGN(PlanSubject subject, PlanSubject::OfShape(**shape, *mix));
    return Subject{std::move(subject), ""};
  }
  if (what.ends_with(".json")) {
    SLUICE_TRY_ASSIGN(const quantize::Mix* mix, quantize::FindMix(type));
    SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(what, kMiB));
    auto subject = PlanSubject::OfConfig(text, *mix);
    if (!subject) return Annotate(std::move(subject).error(), what);
    return Subject{*std::move(subject), ""};
  }
  SLUICE_TRY_ASSIGN(const std::string path, ResolveModel(what));
  SLUICE_TRY_ASSIGN(PlanSubject subject, PlanSubject::OfFile(path, flags.model.overrides));
  return Subject{std::move(subject), path};
}

// Every type that this model could be in, as it would run under the same request.
std::vector<TypeRow> TypeRows(const PlanSubject& subject, const plan::Request& request,
                              const plan::DeviceProfile& device) {
  std::vector<TypeRow> rows;
  for (const quantize::Mix& mix : quantize::AllMixes()) {
    const auto facts = subject.InType(mix);
    if (!facts) continue;
    TypeRow row{.mix = &mix, .bytes = facts->tensor_bytes};
    row.bytes_per_parameter =
        static_cast<double>(row.bytes) / static_cast<double>(std::max<uint64_t>(facts->parameters, 1));
    if (const auto plan = plan::MakePlan(*facts, request)) {
      row.plan = *plan;
      row.speed = plan::EstimateSpeed(*facts, *plan, device);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<int> Plan(const PlanFlags& flags) {
  SLUICE_TRY_ASSIGN(const Subject opened, OpenSubject(flags));
  SLUICE_TRY_ASSIGN(EngineOptions engine_options, flags.model.Engine());
  SLUICE_TRY_ASSIGN(const ConversationOptions conversation, flags.model.Conversation());
  SLUICE_TRY_ASSIGN(ModelOptions options, flags.model.Model(conversation));
  options.conversations = flags.sequences;
  engine_options.log = [](LogLevel, const std::string& text) { Note(text); };
  SLUICE_TRY_ASSIGN(const auto engine, Engine::Create(engine_options));

  PlanReport report{.facts = opened.subject.facts(), .request = RequestFor(*engine, options)};
  if (!flags.type.empty() && !opened.path.empty()) {
    SLUICE_TRY_ASSIGN(const quantize::Mix* mix, quantize::FindMix(flags.type));
    SLUICE_TRY_ASSIGN(report.facts, opened.subject.InType(*mix));
  }
  report.budget_origin = engine->budget_origin();
  report.threads_origin = engine->threads_origin();
  if (!flags.storage.empty()) {
    if (opened.path.empty())
      return Fail(ErrorCode::kInvalidArgument, "--storage reads a model's file, and there is none");
    SLUICE_TRY_ASSIGN(const uint64_t read_bytes, ParseSize(flags.storage));
    SLUICE_TRY_ASSIGN(report.storage, MeasureStorage(*engine, opened.path, read_bytes));
  }
  if (flags.device.empty()) {
    const std::string cache = platform::FindUserFolders(platform::Environment::FromProcess()).cache;
    SLUICE_TRY_ASSIGN(report.device, ThisDevice(*engine, cache, opened.path, flags.measure));
    report.request.store = plan::Tuned(report.device, report.request.store);
  } else {
    SLUICE_TRY_ASSIGN(report.device, NamedDevice(flags.device));
    report.request.threads = report.device.threads;
    report.threads_origin =
        fmt::format("{}: as many as {} has for it", report.device.threads, report.device.name);
    if (flags.model.memory.empty()) {
      report.request.budget_bytes = report.device.budget_bytes;
      report.budget_origin = fmt::format("{}: what a program can take on {}",
                                         FormatBytes(report.device.budget_bytes), report.device.name);
    }
  }
  SLUICE_TRY_ASSIGN(report.plan, plan::MakePlan(report.facts, report.request));
  report.speed = plan::EstimateSpeed(report.facts, report.plan, report.device);
  const double speed = report.speed.decode_tokens_per_second;
  if (flags.types || (speed > 0 && speed < 1))
    report.types = TypeRows(opened.subject, report.request, report.device);
  report.list_types = flags.types;
  if (flags.json) {
    std::cout << PlanJson(report).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  } else {
    PrintPlan(report);
  }
  return kExitOk;
}

}  // namespace

void AddPlan(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("plan",
                                         "Where every byte would go, and how fast: a GGUF file (its first "
                                         "MiB will do), a config.json, or a shape");
  auto flags = std::make_shared<PlanFlags>();
  flags->model.AddTo(*command);
  command->add_option("type", flags->type,
                      "For a shape or a config.json: the weight type, e.g. Q4_K_M (the default)");
  command->add_option("--device", flags->device,
                      "Plan for phone-8gb, phone-12gb, phone-16gb, or a profile's file");
  command->add_option("--sequences", flags->sequences, "Conversations of full length at a time")
      ->capture_default_str();
  command->add_flag("--types", flags->types, "List each weight type: size, speed, known loss of quality");
  command->add_flag("--measure", flags->measure, "Measure this device anew");
  command->add_option(
      "--storage", flags->storage,
      "Measure how the model's file is read best, the fastest ways over this many bytes, e.g. 4G");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Plan(*flags); }; });
}

}  // namespace sluice::app
