// The pre-tokenizers by name: how each family's tokenizer cuts text into words before merging, and the few
// settings that go with the family.
#pragma once

#include <span>
#include <string_view>

namespace sluice::text {

// One cut. Steps are applied in order, each to the pieces that the one before it left: what a step matches
// becomes a piece, and so does what lies between two matches.
struct SplitStep {
  enum class Kind {
    kPattern,             // `pattern`, a PCRE2 expression (UTF and UCP)
    kDigitTriples,        // runs of decimal digits in threes from the right: 1|234|567
    kDigitTripleBorders,  // the same cuts within and before a run, none behind it
    kDigitTriplesWord     // kDigitTriples, but not for a run that a word character follows: 1234th
  };
  Kind kind;
  const char* pattern;
};

struct PreTokenizerSpec {
  std::span<const std::string_view> names;  // values of tokenizer.ggml.pre
  std::span<const SplitStep> steps;
  bool ignore_merges = false;    // a word that is a token as a whole is taken, whatever the merges say
  bool add_bos = false;          // unless the file says otherwise
  bool add_separator = false;    // likewise
  bool characters = false;       // merges work on characters, with spaces spelled "▁", instead of on bytes
  bool whole_line_ends = false;  // a run of line ends that is a token is taken whole
  bool clean_up_spaces = true;   // DecodeOptions::clean_up_spaces is what the family's own decoder does
};

// nullptr when the name is not known.
const PreTokenizerSpec* FindPreTokenizer(std::string_view name);

// The one that cuts by these patterns, in this order (no other steps), and whose words may be tokens as a whole or not;
// nullptr when there is none. Of several, the one whose decoder cleans up spaces as given.
const PreTokenizerSpec* FindPreTokenizer(std::span<const std::string_view> patterns, bool ignore_merges,
                                         bool clean_up_spaces);

// The expression that GPT-2's byte-level tokenizer cuts by, and the one for single digits, as the table has them.
extern const char* const kGpt2Pattern;
extern const char* const kSingleDigitPattern;

// What stands in for a pre-tokenizer that is missing or unknown.
const PreTokenizerSpec& DefaultPreTokenizer();

// All of them, for tests.
std::span<const PreTokenizerSpec> PreTokenizers();

}  // namespace sluice::text
