#include "quantize/mix.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace sluice::quantize {

using formats::DType;

namespace {

// When a rule holds.
enum class When : uint8_t {
  kAlways,
  kMoreBits,        // the first and the last eighth of the layers, and every third between
  kFirstSixteenth,  // of the layers
  kFirstEighth,
  kFirstTwo,
  kFirstFour,
  kMiddle,     // all but the first and the last eighth
  kManyQPerKv  // four or more query heads share a KV head: values are few, so bits are cheap there
};

}  // namespace

struct MixRule {
  Role role;
  When when;
  DType dtype;
};

namespace {

// The first rule that holds decides; without one it is the base format.
constexpr MixRule kQ2_K[] = {{Role::kAttnV, When::kManyQPerKv, DType::kQ4_K},
                             {Role::kAttnV, When::kAlways, DType::kQ3_K},
                             {Role::kFfnDown, When::kAlways, DType::kQ3_K},
                             {Role::kAttnOutput, When::kAlways, DType::kQ3_K}};
constexpr MixRule kQ2_K_S[] = {{Role::kAttnV, When::kManyQPerKv, DType::kQ4_K},
                               {Role::kFfnDown, When::kFirstEighth, DType::kQ4_K}};
constexpr MixRule kQ3_K_M[] = {
    {Role::kAttnV, When::kFirstTwo, DType::kQ5_K},         {Role::kAttnV, When::kAlways, DType::kQ4_K},
    {Role::kFfnDown, When::kFirstSixteenth, DType::kQ5_K}, {Role::kFfnDown, When::kAlways, DType::kQ4_K},
    {Role::kAttnOutput, When::kAlways, DType::kQ4_K},      {Role::kAttnQkv, When::kAlways, DType::kQ4_K}};
constexpr MixRule kQ3_K_L[] = {{Role::kAttnV, When::kAlways, DType::kQ5_K},
                               {Role::kFfnDown, When::kAlways, DType::kQ5_K},
                               {Role::kAttnOutput, When::kAlways, DType::kQ5_K},
                               {Role::kAttnQkv, When::kAlways, DType::kQ4_K}};
constexpr MixRule kQ4_K_S[] = {{Role::kAttnV, When::kFirstFour, DType::kQ5_K},
                               {Role::kFfnDown, When::kFirstEighth, DType::kQ5_K}};
constexpr MixRule kQ4_K_M[] = {{Role::kAttnV, When::kMoreBits, DType::kQ6_K},
                               {Role::kFfnDown, When::kMoreBits, DType::kQ6_K},
                               {Role::kAttnQkv, When::kAlways, DType::kQ5_K}};
constexpr MixRule kQ5_K_M[] = {{Role::kAttnV, When::kMoreBits, DType::kQ6_K},
                               {Role::kFfnDown, When::kMoreBits, DType::kQ6_K},
                               {Role::kAttnQkv, When::kAlways, DType::kQ6_K}};
constexpr MixRule kIQ4[] = {{Role::kAttnV, When::kManyQPerKv, DType::kQ5_K},
                            {Role::kFfnDown, When::kFirstEighth, DType::kQ5_K}};
constexpr MixRule kIQ3_M[] = {{Role::kAttnV, When::kAlways, DType::kQ4_K},
                              {Role::kFfnDown, When::kFirstEighth, DType::kQ4_K},
                              {Role::kAttnOutput, When::kAlways, DType::kQ4_K},
                              {Role::kAttnQkv, When::kAlways, DType::kQ4_K}};
constexpr MixRule kIQ3_S[] = {{Role::kAttnV, When::kManyQPerKv, DType::kQ4_K}};
constexpr MixRule kIQ3_XS[] = {{Role::kAttnV, When::kManyQPerKv, DType::kQ4_K},
                               {Role::kAttnQ, When::kAlways, DType::kIQ3_XXS},
                               {Role::kAttnK, When::kAlways, DType::kIQ3_XXS},
                               {Role::kFfnGate, When::kMiddle, DType::kIQ3_XXS},
                               {Role::kFfnUp, When::kMiddle, DType::kIQ3_XXS}};
constexpr MixRule kIQ3_XXS[] = {
    {Role::kOutput, When::kAlways, DType::kQ5_K},       {Role::kTokenEmbedding, When::kAlways, DType::kIQ3_S},
    {Role::kAttnV, When::kManyQPerKv, DType::kQ4_K},    {Role::kAttnV, When::kAlways, DType::kIQ3_S},
    {Role::kAttnQ, When::kAlways, DType::kIQ2_S},       {Role::kAttnK, When::kAlways, DType::kIQ2_S},
    {Role::kFfnDown, When::kFirstEighth, DType::kQ4_K}, {Role::kFfnDown, When::kAlways, DType::kQ3_K},
    {Role::kAttnOutput, When::kAlways, DType::kIQ3_S}};
constexpr MixRule kIQ2_M[] = {{Role::kOutput, When::kAlways, DType::kQ5_K},
                              {Role::kTokenEmbedding, When::kAlways, DType::kIQ3_S},
                              {Role::kAttnV, When::kManyQPerKv, DType::kQ4_K},
                              {Role::kAttnV, When::kAlways, DType::kIQ3_S},
                              {Role::kFfnDown, When::kFirstEighth, DType::kIQ3_S},
                              {Role::kAttnOutput, When::kAlways, DType::kIQ3_S}};
constexpr MixRule kIQ2_XS[] = {{Role::kOutput, When::kAlways, DType::kQ5_K},
                               {Role::kTokenEmbedding, When::kAlways, DType::kQ2_K},
                               {Role::kAttnV, When::kManyQPerKv, DType::kQ4_K},
                               {Role::kAttnV, When::kAlways, DType::kQ2_K},
                               {Role::kFfnDown, When::kFirstEighth, DType::kQ2_K}};
constexpr MixRule kIQ1[] = {
    {Role::kOutput, When::kAlways, DType::kQ5_K},       {Role::kTokenEmbedding, When::kAlways, DType::kQ2_K},
    {Role::kAttnV, When::kManyQPerKv, DType::kQ4_K},    {Role::kAttnV, When::kAlways, DType::kQ2_K},
    {Role::kFfnDown, When::kFirstEighth, DType::kQ2_K}, {Role::kAttnOutput, When::kAlways, DType::kIQ2_XXS}};
constexpr MixRule kTernary[] = {{Role::kTokenEmbedding, When::kAlways, DType::kQ4_K}};

constexpr Mix kMixes[] = {
    {"F32", DType::kF32, 0, {}},
    {"F16", DType::kF16, 1, {}},
    {"BF16", DType::kBF16, 32, {}},
    {"Q8_0", DType::kQ8_0, 7, {}},
    {"Q6_K", DType::kQ6_K, 18, {}},
    {"Q5_K_M", DType::kQ5_K, 17, kQ5_K_M},
    {"Q5_K_S", DType::kQ5_K, 16, {}},
    {"Q5_0", DType::kQ5_0, 8, {}},
    {"Q5_1", DType::kQ5_1, 9, {}},
    {"Q4_K_M", DType::kQ4_K, 15, kQ4_K_M},
    {"Q4_K_S", DType::kQ4_K, 14, kQ4_K_S},
    {"Q4_0", DType::kQ4_0, 2, {}},
    {"Q4_1", DType::kQ4_1, 3, {}},
    {"IQ4_NL", DType::kIQ4_NL, 25, kIQ4},
    {"IQ4_XS", DType::kIQ4_XS, 30, kIQ4},
    {"Q3_K_L", DType::kQ3_K, 13, kQ3_K_L},
    {"Q3_K_M", DType::kQ3_K, 12, kQ3_K_M},
    {"Q3_K_S", DType::kQ3_K, 11, {}},
    {"IQ3_M", DType::kIQ3_S, 27, kIQ3_M},
    {"IQ3_S", DType::kIQ3_S, 26, kIQ3_S},
    {"IQ3_XS", DType::kIQ3_S, 22, kIQ3_XS},
    {"IQ3_XXS", DType::kIQ3_XXS, 23, kIQ3_XXS},
    {"Q2_K", DType::kQ2_K, 10, kQ2_K},
    {"Q2_K_S", DType::kQ2_K, 21, kQ2_K_S},
    {"IQ2_M", DType::kIQ2_S, 29, kIQ2_M},
    {"IQ2_S", DType::kIQ2_XS, 28, kIQ2_M},
    {"IQ2_XS", DType::kIQ2_XS, 20, kIQ2_XS},
    {"IQ2_XXS", DType::kIQ2_XXS, 19, kIQ2_XS},
    {"IQ1_M", DType::kIQ1_M, 31, kIQ1},
    {"IQ1_S", DType::kIQ1_S, 24, kIQ1},
    {"TQ2_0", DType::kTQ2_0, 37, kTernary},
    {"TQ1_0", DType::kTQ1_0, 36, kTernary},
    {"MXFP4", DType::kMXFP4, 38, {}},
    {"NVFP4", DType::kNVFP4, 39, {}},
    {"Q2_0", DType::kQ2_0, 41, kTernary},
    {"Q1_0", DType::kQ1_0, 40, {}},
};

bool Holds(When when, const MatrixPlace& place) {
  const uint32_t i = place.layer, n = place.layers;
  const bool outer = i < n / 8 || i >= 7 * n / 8;
  switch (when) {
    case When::kAlways:
      return true;
    case When::kMoreBits:
      return outer || (i - n / 8) % 3 == 2;
    case When::kFirstSixteenth:
      return i < n / 16;
    case When::kFirstEighth:
      return i < n / 8;
    case When::kFirstTwo:
      return i < 2;
    case When::kFirstFour:
      return i < 4;
    case When::kMiddle:
      return !outer;
    case When::kManyQPerKv:
      return place.heads_per_kv_head >= 4;
  }
  return false;
}

// The output matrix is worth more bits than the rest, unless the whole file has them.
DType OutputFormat(DType base) {
  const bool ample =
      base == DType::kF32 || base == DType::kF16 || base == DType::kBF16 || base == DType::kQ8_0;
  return ample ? base : DType::kQ6_K;
}

DType SubstituteOf32(DType dtype) {
  switch (dtype) {
    case DType::kIQ1_S:
    case DType::kIQ1_M:
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kIQ4_XS:
    case DType::kNVFP4:
      return DType::kIQ4_NL;
    case DType::kQ4_K:
      return DType::kQ5_0;
    case DType::kQ5_K:
      return DType::kQ5_1;
    case DType::kQ6_K:
      return DType::kQ8_0;
    default:
      return DType::kQ4_0;
  }
}

}  // namespace

std::span<const Mix> AllMixes() { return kMixes; }

Result<const Mix*> FindMix(std::string_view name) {
  const auto same = [](unsigned char a, unsigned char b) { return std::toupper(a) == std::toupper(b); };
  std::string names;
  for (const Mix& mix : kMixes) {
    if (std::equal(name.begin(), name.end(), mix.name.begin(), mix.name.end(), same)) return &mix;
    if (!names.empty()) names += ' ';
    names += mix.name;
  }
  return Fail(ErrorCode::kInvalidArgument, "unknown type \"{}\"; there are {}", name, names);
}

DType FormatWanted(const Mix& mix, const MatrixPlace& place) {
  const Role role = place.role == Role::kTokenEmbedding && place.tied ? Role::kOutput : place.role;
  for (const MixRule& rule : mix.rules) {
    if (rule.role == role && Holds(rule.when, place)) return rule.dtype;
  }
  return role == Role::kOutput ? OutputFormat(mix.base) : mix.base;
}

DType FormatFor(const Mix& mix, const MatrixPlace& place) {
  DType dtype = FormatWanted(mix, place);
  if (place.columns % formats::Traits(dtype).block_length == 0) return dtype;
  dtype = SubstituteOf32(dtype);
  return place.columns % formats::Traits(dtype).block_length == 0 ? dtype : DType::kF16;
}

}  // namespace sluice::quantize
