// Which type each tensor of a file gets: the mix's rules, then what the user asked for.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"
#include "quantize/mix.h"

namespace sluice::quantize {

struct TypeOverride {
  std::string pattern;  // pattern.h
  formats::DType dtype;
};
// "ffn_down=Q6_K". Errors: kInvalidArgument for another form, an unknown type, or one that can't be encoded.
Result<TypeOverride> ParseOverride(std::string_view text);
// A type's name. Error: kInvalidArgument.
Result<formats::DType> ParseType(std::string_view name);

struct TypeWishes {
  const Mix* mix = nullptr;
  std::optional<formats::DType> token_embedding;
  std::optional<formats::DType>
      output;  // of the matrix that makes the logits, also where the embedding is that
  std::vector<TypeOverride> overrides;  // the last one that matches decides, over everything else
};

// What is wished for one tensor by its name or role; unset: nothing. `tied`: the token embedding is the
// output matrix too. Error: kInvalidArgument for a type whose blocks don't divide the rows.
Result<std::optional<formats::DType>> WishFor(const gguf::Tensor& tensor, const TypeWishes& wishes,
                                              bool tied);
// Error: kInvalidArgument for a pattern that matches no quantisable tensor.
Status CheckPatterns(std::span<const gguf::Tensor> tensors, const TypeWishes& wishes);

struct TypeChoice {
  formats::DType dtype;
  bool quantisable = false;
  bool substitute = false;  // the rows are no whole blocks of what the mix wanted
};

// One choice for each tensor. What is not quantisable keeps its type, which must be known. Errors:
// kInvalidArgument for a pattern that matches no quantisable tensor, or a wished type whose blocks don't
// divide the rows; kUnsupported for unknown types; those of ModelShape::Read.
Result<std::vector<TypeChoice>> ChooseTypes(std::span<const gguf::Tensor> tensors,
                                            const gguf::Metadata& metadata, const TypeWishes& wishes);

}  // namespace sluice::quantize
