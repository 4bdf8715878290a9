// Mixes: which weight format each tensor of a file gets when people say "Q4_K_M".
//
// A mix is a base format and a short list of exceptions: the output matrix, attention's values and the FFN's
// down-projection get more bits in some layers. Source of the usual rules: llama.cpp's quantiser, as facts;
// here they are a table (mix.cc). Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "formats/dtype.h"

namespace sluice::quantize {

// What a weight matrix is for, as far as mixes tell matrices apart.
enum class Role : uint8_t {
  kTokenEmbedding,
  kOutput,
  kAttnQ,
  kAttnK,
  kAttnV,
  kAttnQkv,
  kAttnOutput,
  kFfnGate,
  kFfnUp,
  kFfnDown,
};

// Where a matrix stands.
struct MatrixPlace {
  Role role;
  uint32_t layer = 0;
  uint32_t layers = 1;
  uint32_t heads_per_kv_head = 1;
  bool tied = false;       // the token embedding is the output matrix too
  uint64_t columns = 256;  // the length of its rows
};

struct MixRule;
struct Mix {
  std::string_view name;  // "Q4_K_M"
  formats::DType base;
  uint32_t file_type;  // general.file_type, as other programs number the mixes
  std::span<const MixRule> rules;
};

std::span<const Mix> AllMixes();
// Case-insensitive. Error: kInvalidArgument, listing what there is.
Result<const Mix*> FindMix(std::string_view name);

// What the rules say, whatever the length of the rows.
formats::DType FormatWanted(const Mix& mix, const MatrixPlace& place);

// The format of a matrix under a mix. Rows that are no whole blocks of it get the usual substitute of 32
// elements, or F16 when they are not even whole blocks of that.
formats::DType FormatFor(const Mix& mix, const MatrixPlace& place);

}  // namespace sluice::quantize
