#include "quantize_fit.h"

#include <cstdio>
#include <filesystem>

#include "calibration_text.h"
#include "command.h"
#include "output.h"
#include "sluice/conversation.h"
#include "sluice/gguf.h"
#include "sluice/plan.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

constexpr int64_t kWindow = 512;

std::string_view NameOf(formats::DType dtype) { return formats::Name(dtype); }

}  // namespace

Result<uint64_t> FitBudget(const std::string& size_or_device, const std::string& model_path,
                           int64_t context_length) {
  if (const auto size = ParseSize(size_or_device)) return *size;
  auto device = NamedDevice(size_or_device);
  if (!device)
    return Annotate(std::move(device).error(),
                    fmt::format("--fit {} is no size such as 8.5G", size_or_device));
  SLUICE_TRY_ASSIGN(const PlanSubject subject, PlanSubject::OfFile(model_path));
  SLUICE_TRY_ASSIGN(const plan::Plan plan,
                    plan::MakePlan(subject.facts(), {.threads = device->threads,
                                                     .context_length = context_length,
                                                     .residency = plan::Residency::kResident}));
  const uint64_t beside = plan.total_bytes() - plan.bytes(memory::Account::kWeightsPinned) -
                          plan.unaccounted_bytes + plan::UnaccountedWithin(device->budget_bytes);
  if (beside < device->budget_bytes) return device->budget_bytes - beside;
  return Fail(ErrorCode::kDoesNotFit,
              "{} has {} for a program, and a context of {} takes {} of it beside the weights; try a shorter "
              "one (-c)",
              device->name, FormatBytes(device->budget_bytes), plan.kv.context_length, FormatBytes(beside));
}

Result<std::unique_ptr<SampleDivergence>> SampleDivergence::Create(const Engine& engine,
                                                                   const std::string& model_path,
                                                                   const std::string& text_file, bool special,
                                                                   int64_t windows,
                                                                   const std::string& scratch) {
  std::unique_ptr<SampleDivergence> sample(new SampleDivergence(engine, model_path, scratch));
  SLUICE_TRY_ASSIGN(const auto model, sample->Open({}));
  SLUICE_TRY_ASSIGN(std::vector<TokenId> ids, ReadIds(text_file, model->tokenizer(), special));
  const text::Vocabulary& vocabulary = model->tokenizer().vocabulary();
  eval::WindowOptions options{
      .context = std::min(kWindow, model->config().context_length), .bos = {}, .most = windows};
  if (vocabulary.add_bos()) {
    options.bos = vocabulary.bos();
    ids.insert(ids.begin(), vocabulary.bos());
  }
  SLUICE_TRY_ASSIGN(sample->windows_, eval::CutWindows(ids, options));
  const eval::BaseRun run{.model = model_path,
                          .vocabulary_size = static_cast<uint64_t>(model->config().vocab_size),
                          .windows = sample->windows_};
  SLUICE_TRY_ASSIGN(const auto sink, gguf::CreateFileSink(scratch, eval::BaseRunWriter::FileBytes(run)));
  SLUICE_TRY_ASSIGN(eval::BaseRunWriter writer, eval::BaseRunWriter::Begin(run, *sink));
  SLUICE_TRY(sample->Run(model, [&](int64_t, std::span<const float> logits) { return writer.Add(logits); }));
  SLUICE_TRY(writer.Finish());
  return sample;
}

SampleDivergence::~SampleDivergence() {
  std::error_code ignored;
  std::filesystem::remove(scratch_, ignored);
}

Result<std::shared_ptr<const Model>> SampleDivergence::Open(
    std::span<const gguf::Replacement> replacements) const {
  ModelOptions options{.conversation = {.context_length = kWindow, .batch = kWindow}};
  options.replacements.assign(replacements.begin(), replacements.end());
  return Model::Open(engine_, model_path_, options);
}

Status SampleDivergence::Run(const std::shared_ptr<const Model>& model, const PositionSink& sink) const {
  SLUICE_TRY_ASSIGN(
      const auto conversation,
      Conversation::Create(engine_, model, {.context_length = windows_.window, .batch = kWindow}));
  int64_t index = 0;
  for (int64_t w = 0; w < windows_.count(); ++w) {
    conversation->session().Truncate(0);
    Status status;
    SLUICE_TRY(
        conversation->session().ReadAll(windows_.Window(w), [&](size_t i, std::span<const float> logits) {
          if (status && windows_.Scores(static_cast<int64_t>(i))) status = sink(index++, logits);
        }));
    SLUICE_TRY(status);
    if (Interrupted().load()) return Fail(ErrorCode::kInterrupted, "stopped");
  }
  return {};
}

Result<eval::Divergence> SampleDivergence::Measure(std::span<const gguf::Replacement> replacements) const {
  SLUICE_TRY_ASSIGN(const auto model, Open(replacements));
  SLUICE_TRY_ASSIGN(auto source, gguf::OpenFileSource(scratch_));
  SLUICE_TRY_ASSIGN(eval::BaseRunReader base, eval::BaseRunReader::Open(std::move(source)));
  eval::Divergence divergence;
  SLUICE_TRY(Run(model, [&](int64_t index, std::span<const float> logits) -> Status {
    SLUICE_TRY_ASSIGN(const std::span<const float> expected, base.Row(index));
    divergence.Add(expected, logits, windows_.Target(index));
    return {};
  }));
  return divergence;
}

nlohmann::ordered_json FitJson(const FitSummary& fit) {
  nlohmann::ordered_json json{
      {"budget_bytes", fit.budget_bytes},        {"predicted_kl", fit.report.predicted_kl},
      {"bound_kl", fit.report.bound_kl},         {"optimal", fit.report.optimal},
      {"measured_kl", fit.measured.kl().mean()}, {"measured_kl_error", fit.measured.kl().standard_error()},
      {"positions", fit.measured.positions()},   {"probes", fit.report.probes},
      {"together", fit.report.together},         {"tensors", nlohmann::ordered_json::array()}};
  for (const quantize::FitTensor& tensor : fit.report.tensors) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"type", NameOf(tensor.dtype)},
                               {"bytes", tensor.bytes},
                               {"predicted_kl", tensor.kl},
                               {"probed", NameOf(tensor.probed)},
                               {"probe_kl", tensor.probe_kl}});
  }
  return json;
}

void PrintFit(const FitSummary& fit) {
  std::printf("%-32s %-8s %10s %13s   measured\n", "tensor", "type", "bytes", "predicted KL");
  for (const quantize::FitTensor& tensor : fit.report.tensors) {
    std::printf("%-32s %-8s %10s %13.6f   %.6f in %s\n", tensor.name.c_str(),
                std::string(NameOf(tensor.dtype)).c_str(), FormatBytes(tensor.bytes).c_str(), tensor.kl,
                tensor.probe_kl, std::string(NameOf(tensor.probed)).c_str());
  }
  std::printf(
      "\n%llu of %llu bytes; KL divergence predicted %.5f (%s), measured %.5f ± %.5f over %lld positions\n"
      "all matrices in few bits cost %.2f times what was measured one by one, which is in the prediction\n\n",
      static_cast<unsigned long long>(fit.report.file_bytes),
      static_cast<unsigned long long>(fit.budget_bytes), fit.report.predicted_kl,
      fit.report.optimal ? "no other choice has less"
                         : fmt::format("no choice has less than {:.5f}", fit.report.bound_kl).c_str(),
      fit.measured.kl().mean(), fit.measured.kl().standard_error(),
      static_cast<long long>(fit.measured.positions()), fit.report.together);
}

}  // namespace sluice::app
