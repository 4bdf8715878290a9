// Quality: what a quantisation type costs in quality, as others measured it.
//
// Figures of one model and one text: Llama 3 8B on wikitext-2, from the table in llama.cpp's
// tools/perplexity/README.md (with an importance matrix where one helps). Larger models lose less; reasoning
// and code lose more than these show.
#pragma once

#include <string_view>

namespace sluice::plan {

struct QualityLoss {
  std::string_view mix;           // "Q4_K_M"
  double perplexity_percent = 0;  // above that of f16
  double kl_divergence = 0;       // mean, from f16
};

inline constexpr std::string_view kQualitySource =
    "quality: Llama 3 8B on wikitext-2, as published by llama.cpp (tools/perplexity/README.md); larger "
    "models lose less";

// Null for types that the table doesn't have.
const QualityLoss* FindQualityLoss(std::string_view mix);

}  // namespace sluice::plan
