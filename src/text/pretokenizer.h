// PreTokenizer: cuts text into the words within which a byte-level BPE merges.
//
// Every byte of the text ends up in exactly one piece. Bytes that aren't valid UTF-8 become pieces of their
// own. Immutable after Create; any number of threads may split at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/pretokenizer_table.h"

// PCRE2's types, so that its header stays in the .cc file.
struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace sluice::text {

class PreTokenizer {
 public:
  explicit PreTokenizer(const PreTokenizerSpec& spec);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Replaces *ends with the offset behind each piece, ascending; the last is text.size(). `text` is shorter
  // than 4 GiB. Errors: kResourceExhausted when a pattern runs into its step limit, which no known text does.
  Status Split(std::string_view text, std::vector<uint32_t>* ends) const;

  size_t memory_bytes() const;

 private:
  struct CodeDeleter {
    void operator()(pcre2_real_code_8* code) const;
  };
  struct ContextDeleter {
    void operator()(pcre2_real_match_context_8* context) const;
  };
  struct Step {
    SplitStep::Kind kind;
    std::unique_ptr<pcre2_real_code_8, CodeDeleter> code;  // kPattern only
  };

  Status SplitValid(std::string_view text, uint32_t base, pcre2_real_match_data_8* match,
                    std::vector<uint32_t>* ends) const;
  Status ApplyPattern(const Step& step, std::string_view piece, uint32_t base, pcre2_real_match_data_8* match,
                      std::vector<uint32_t>* ends) const;

  std::vector<Step> steps_;
  std::unique_ptr<pcre2_real_match_context_8, ContextDeleter> limits_;
};

}  // namespace sluice::text
