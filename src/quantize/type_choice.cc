#include "quantize/type_choice.h"

#include <algorithm>

#include "formats/encode.h"
#include "quantize/pattern.h"
#include "quantize/tensor_role.h"

namespace sluice::quantize {

using formats::DType;

namespace {

// What is wished for one tensor; unset: what the mix says.
std::optional<DType> NamedWish(const gguf::Tensor& tensor, const TypeWishes& wishes, bool tied) {
  for (size_t i = wishes.overrides.size(); i-- > 0;) {
    if (Matches(wishes.overrides[i].pattern, tensor.name)) return wishes.overrides[i].dtype;
  }
  const std::optional<Role> role = RoleOf(tensor.name);
  if (role == Role::kOutput) return wishes.output;
  if (role == Role::kTokenEmbedding)
    return wishes.token_embedding || !tied ? wishes.token_embedding : wishes.output;
  return std::nullopt;
}

}  // namespace

Result<std::optional<DType>> WishFor(const gguf::Tensor& tensor, const TypeWishes& wishes, bool tied) {
  const std::optional<DType> wish = NamedWish(tensor, wishes, tied);
  if (!wish || tensor.columns() % formats::Traits(*wish).block_length == 0) return wish;
  return Fail(ErrorCode::kInvalidArgument, "tensor {}: its rows of {} are no whole blocks of {} ({})",
              tensor.name, tensor.columns(), formats::Name(*wish), formats::Traits(*wish).block_length);
}

Status CheckPatterns(std::span<const gguf::Tensor> tensors, const TypeWishes& wishes) {
  for (const TypeOverride& wish : wishes.overrides) {
    const bool used = std::ranges::any_of(tensors, [&](const gguf::Tensor& tensor) {
      return IsQuantisable(tensor) && Matches(wish.pattern, tensor.name);
    });
    if (!used) {
      return Fail(ErrorCode::kInvalidArgument,
                  "\"{}\" matches no tensor that is quantised (`sluice inspect --tensors` lists them)",
                  wish.pattern);
    }
  }
  return {};
}

Result<DType> ParseType(std::string_view name) {
  const formats::DTypeTraits* traits = formats::FindDTypeByName(name);
  if (traits != nullptr && formats::CanEncode(traits->dtype)) return traits->dtype;
  std::string names;
  for (const formats::DTypeTraits& known : formats::AllDTypes()) {
    if (formats::CanEncode(known.dtype)) names += fmt::format(" {}", known.name);
  }
  return Fail(ErrorCode::kInvalidArgument, "unknown weight type \"{}\"; there are{}", name, names);
}

Result<TypeOverride> ParseOverride(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == text.npos || equals == 0) {
    return Fail(ErrorCode::kInvalidArgument, "\"{}\": expected PATTERN=TYPE, for example ffn_down=Q6_K",
                text);
  }
  SLUICE_TRY_ASSIGN(const DType dtype, ParseType(text.substr(equals + 1)));
  return TypeOverride{std::string(text.substr(0, equals)), dtype};
}

Result<std::vector<TypeChoice>> ChooseTypes(std::span<const gguf::Tensor> tensors,
                                            const gguf::Metadata& metadata, const TypeWishes& wishes) {
  SLUICE_TRY(CheckPatterns(tensors, wishes));
  const bool tied = std::ranges::find(tensors, "output.weight", &gguf::Tensor::name) == tensors.end();
  SLUICE_TRY_ASSIGN(const ModelShape shape, ModelShape::Read(metadata, tied));
  std::vector<TypeChoice> choices;
  for (const gguf::Tensor& tensor : tensors) {
    if (tensor.traits == nullptr) {
      return Fail(ErrorCode::kUnsupported, "tensor {} uses type id {}, which is unknown", tensor.name,
                  tensor.type_id);
    }
    TypeChoice choice{.dtype = tensor.traits->dtype,
                      .quantisable = IsQuantisable(tensor) && formats::CanEncode(tensor.traits->dtype)};
    if (choice.quantisable) {
      const MatrixPlace place = PlaceOf(tensor, shape);
      SLUICE_TRY_ASSIGN(const std::optional<DType> wish, WishFor(tensor, wishes, tied));
      if (wish) {
        choice.dtype = *wish;
      } else {
        choice.dtype = FormatFor(*wishes.mix, place);
        choice.substitute = choice.dtype != FormatWanted(*wishes.mix, place);
      }
    }
    choices.push_back(choice);
  }
  return choices;
}

}  // namespace sluice::quantize
