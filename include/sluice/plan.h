// Planning without running: what a model would take and how fast it would be, on this device or another, from
// a file, the first MiB of one, a Hugging Face config.json, or a shape and a type.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/device.h"
#include "plan/facts.h"
#include "plan/planner.h"
#include "plan/probe.h"
#include "plan/quality.h"
#include "plan/speed.h"
#include "plan/tuning.h"
#include "quantize/mix.h"
#include "quantize/synth_shape.h"
#include "sluice/engine.h"

namespace sluice {

// A model that is only looked at. Move-only; any thread.
class PlanSubject {
 public:
  // `path`: a GGUF file, whole or cut behind its header.
  static Result<PlanSubject> OfFile(const std::string& path, const std::vector<std::string>& overrides = {});
  // A shape in a type, as `synth` would write it.
  static Result<PlanSubject> OfShape(const quantize::SynthShape& shape, const quantize::Mix& mix);
  // The text of a Hugging Face config.json, in a type. Errors: kCorrupt, naming the key; kUnsupported for a
  // model type that no shape describes.
  static Result<PlanSubject> OfConfig(std::string_view json, const quantize::Mix& mix);
  PlanSubject(PlanSubject&&) noexcept;
  PlanSubject& operator=(PlanSubject&&) noexcept;
  ~PlanSubject();

  const plan::ModelFacts& facts() const;
  // The same model with its matrices in another type. Errors: kUnsupported for matrices whose role their
  // names don't say.
  Result<plan::ModelFacts> InType(const quantize::Mix& mix) const;

 private:
  struct Impl;
  explicit PlanSubject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What this machine can do: from `cache_folder`, where an earlier measurement was kept, else measured now (a
// few seconds, said in the engine's log) and kept there; `again` measures in any case. Storage is measured with
// the file at `model_path`, or, where that is empty or too small, with a scratch file in the cache folder.
Result<plan::DeviceProfile> ThisDevice(const Engine& engine, const std::string& cache_folder,
                                       const std::string& model_path, bool again = false);

// What was measured of this machine before and is kept in `cache_folder`, if anything is; nothing is measured.
std::optional<plan::DeviceProfile> MeasuredDevice(const Engine& engine, const std::string& cache_folder);

// How fast a model's file can be read past the page cache, with the fastest ways measured over `read_bytes`
// each.
Result<plan::StorageReport> MeasureStorage(const Engine& engine, const std::string& model_path,
                                           uint64_t read_bytes);

// A built-in device by name, or a profile from a JSON file. Errors: kNotFound, naming the devices there are.
Result<plan::DeviceProfile> NamedDevice(const std::string& name_or_file);

}  // namespace sluice
