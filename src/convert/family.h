// Family: how a model type's checkpoints (config.json's model_type) map to GGUF: its architecture, the names
// of its tensors, and what is done to their numbers on the way.
//
// The names are those of the models' reference implementations in the transformers library; what GGUF expects
// is what src/model binds. A family is a row of the table in family.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::convert {

// What happens to a tensor's numbers.
enum class Change : uint8_t {
  kNone,
  kAddOne,     // the norm multiplies by 1 + weight
  kTranspose,  // stored as [in, out]
  // Rows of one head go from pairs (i, i + head_dim / 2) to pairs (2i, 2i + 1): GGUF keeps some families'
  // queries and keys so (model::RopeStyle::kInterleaved).
  kPairQueries,
  kPairKeys,
  // One matrix of queries, keys and values, group by group of heads that share a key:
  kSortQkv,   // all queries, all keys, all values
  kSplitQkv,  // into three matrices, queries and keys in pairs; these are its parts:
  kTakeQueries,
  kTakeKeys,
  kTakeValues,
  // To −s, 0 or s, the nearest to each after division by s, the mean of all magnitudes: what the model's own
  // code makes of its weights whenever it uses them.
  kMakeTernary,
};

// "model.layers.{}.self_attn.q_proj" → "blk.{}.attn_q"; both without their last part (.weight, .bias).
struct NameRule {
  std::string_view theirs;
  std::string_view ours;
  Change change = Change::kNone;
};

// What most families call their tensors.
std::span<const NameRule> CommonNames();

// A tensor of one number in each layer, which GGUF has in one array: "model.layers.{}.mlp.act_fn.beta" →
// "xielu.beta".
struct NumberRule {
  std::string_view theirs;
  std::string_view key;
};

// A setting of config.json that GGUF has no key for: anything but this value is refused.
struct FixedSetting {
  std::string_view key;
  bool value = false;  // also what the model's code takes where the key is absent
};

struct Family {
  std::string_view model_type;
  std::string_view architecture;
  std::span<const NameRule> names;  // that differ from CommonNames(), and go before those
  std::span<const NumberRule> numbers;
  std::span<const FixedSetting> fixed;
  bool norms_add_one = false;    // for all that ours end in "norm"
  bool pairs_heads = false;      // attn_q and attn_k: kPairQueries, kPairKeys
  bool tied_by_default = false;  // where config.json says nothing of tie_word_embeddings
  bool slides = false;           // sliding_window is written, and which layers have it
  bool multi_query = false;      // the key of that name decides whether all queries share one key
  // Where config.json has none; 0: there is none.
  double norm_eps = 0;
  int64_t context = 0, window = 0;  // tokens
};

// Null for a model type that is not converted.
const Family* FindFamily(std::string_view model_type);
std::span<const Family> AllFamilies();

// Where a tensor of a checkpoint goes.
struct Place {
  std::string name;  // in GGUF
  Change change = Change::kNone;
};
// None for a tensor that the family has no place for, three for one that is taken apart.
std::vector<Place> PlacesOf(const Family& family, std::string_view name);

// A number of a layer, that goes into an array of the metadata.
struct NumberPlace {
  std::string_view key;
  size_t layer = 0;
};
std::optional<NumberPlace> NumberPlaceOf(const Family& family, std::string_view name);

// Of the parts of a model that see or hear, which are no part of the language model.
bool IsOfAnotherPart(std::string_view name);

// Left over from how checkpoints were made: tables and masks that are computed, not learned.
bool IsComputed(std::string_view name);

}  // namespace sluice::convert
