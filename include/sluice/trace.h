// Trace: a run written down as a file in the Chrome trace format, which Perfetto, chrome://tracing and
// `sluice plot` read: the time of every step of every pass, and series of memory, speed, storage, and the
// processor's frequency and temperature. docs/observation.md has its contents.
//
// Writes as it goes, through one buffer that is charged to the ledger; so it takes the same memory however
// long the run is. The file is there whole or not at all. Belongs to one engine, which outlives it; outlives
// the sessions it is begun with. One thread at a time, the one that runs the passes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "runtime/tracer.h"
#include "session/session.h"
#include "sluice/engine.h"
#include "sluice/model.h"

namespace sluice {

class Trace final : public runtime::Tracer {
 public:
  // Steps are left out of a file that has become this large, and everything when it has become half as large
  // again.
  static constexpr uint64_t kMostStepBytes = 256 << 20;

  // Begins the file, so that one that can't be written is refused before a model is loaded. Errors:
  // kDoesNotFit when the ledger has no room for the buffer; those of platform::AtomicWriter::Create.
  static Result<std::unique_ptr<Trace>> Create(const Engine& engine, const std::string& path,
                                               uint64_t most_step_bytes = kMostStepBytes);
  // Puts the file in its place if anything was begun and Finish was not called: a run that failed has a
  // trace, too.
  ~Trace() override;

  // The passes of `session` are written down from here on.
  void Begin(const Model& model, session::Session& session);
  // Puts the file in its place; nothing is written down afterwards. Errors: kIo, also of any write before.
  Status Finish();

  void OnStep(std::string_view step, int layer, double start_seconds, double end_seconds) override;
  void OnPass(int64_t rows, double start_seconds, double end_seconds) override;

 private:
  struct Impl;
  explicit Trace(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
