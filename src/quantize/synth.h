// Synth: writes a model of a real shape with random weights, to try a size before downloading it. Every block
// is really written; memory stays at a few MiB whatever the size.
//
// Weights have a mean of 0 and a standard deviation of 1/√columns, so that activations keep their size
// through the layers and logits are finite and about 1; norms are about 1. The file says what it is:
// sluice.synthetic = true, and general.name ends in "(random weights)". The same shape, mix and seed give the
// same bytes everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "gguf/byte_sink.h"
#include "quantize/mix.h"
#include "quantize/synth_shape.h"

namespace sluice::quantize {

inline constexpr std::string_view kSyntheticKey = "sluice.synthetic";

struct SynthOptions {
  uint64_t seed = 1;
  // Called now and then, and at the end with both equal. False stops the work: kInterrupted, and no file is
  // left.
  std::function<bool(uint64_t written_bytes, uint64_t total_bytes)> progress;
};

Status Synthesize(const SynthShape& shape, const Mix& mix, const SynthOptions& options,
                  const gguf::SinkOpener& open);
// The same into a file, which appears when it is whole. Errors: those of gguf::CreateFileSink.
Status SynthesizeFile(const SynthShape& shape, const Mix& mix, const SynthOptions& options,
                      const std::string& path);

}  // namespace sluice::quantize
