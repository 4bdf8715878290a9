// sluice verify: whether a model file is what it should be, after a download or a copy.
#include "sluice/verify.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "glyphs.h"
#include "output.h"
#include "resolve.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

struct VerifyFlags {
  std::string model;
  int threads = 0;
  bool json = false;
};

void PrintJson(const VerifyReport& report) {
  const nlohmann::ordered_json json{{"ok", report.problems.empty()}, {"tensors", report.tensors},
                                    {"bytes", report.tensor_bytes},  {"files", report.files},
                                    {"checksums", report.checksums}, {"problems", report.problems},
                                    {"remarks", report.remarks}};
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

void PrintText(const VerifyReport& report) {
  for (const std::string& problem : report.problems) std::printf("problem: %s\n", Printable(problem).c_str());
  for (const std::string& remark : report.remarks) std::printf("remark: %s\n", Printable(remark).c_str());
  std::printf("%llu tensors, %s%s: %s\n", static_cast<unsigned long long>(report.tensors),
              FormatBytes(report.tensor_bytes).c_str(),
              report.checksums ? ", compared with their checksums" : " (no checksums in the file)",
              report.problems.empty() ? "all is well"
                                      : fmt::format("{} problem{}", report.problems.size(),
                                                    report.problems.size() == 1 ? "" : "s")
                                            .c_str());
}

Result<int> Verify(const VerifyFlags& flags) {
  SLUICE_TRY_ASSIGN(const std::string path, ResolveModel(flags.model));
  SLUICE_TRY_ASSIGN(const auto engine, Engine::Create({.threads = flags.threads}));
  ProgressLine progress("verifying");
  SLUICE_TRY_ASSIGN(const VerifyReport report,
                    sluice::Verify(*engine, path, [&](uint64_t done, uint64_t total) {
                      progress.Show(static_cast<double>(done), static_cast<double>(total));
                      return !Interrupted().load();
                    }));
  progress.Clear();
  if (flags.json) {
    PrintJson(report);
  } else {
    PrintText(report);
  }
  return report.problems.empty() ? kExitOk : kExitFailed;
}

}  // namespace

void AddVerify(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("verify", "Reads a whole model file and says what is wrong with it");
  auto flags = std::make_shared<VerifyFlags>();
  command->add_option("-m,--model,model", flags->model, "A GGUF file, or the name of a model")->required();
  command->add_option("-t,--threads", flags->threads, "Worker threads (default: one for each big core)");
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  command->final_callback([flags, &action] { action = [flags] { return Verify(*flags); }; });
}

}  // namespace sluice::app
