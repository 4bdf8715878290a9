#include "text/wordpiece.h"

#include <utf8proc.h>

#include <algorithm>
#include <string>
#include <utility>

#include "text/pieces.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

bool IsWhitespace(uint32_t c, utf8proc_category_t category) {
  return (c >= '\t' && c <= '\r') || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool IsIgnored(uint32_t c, utf8proc_category_t category) {
  return c == kReplacementCharacter || category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool IsMark(utf8proc_category_t category) {
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsPunctuation(uint32_t c, utf8proc_category_t category) {
  const bool ascii_symbol = c < 0x7F && category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
  return ascii_symbol || (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO);
}

bool IsChinese(uint32_t c) {
  static constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},  // 2B920: as in the tokenizers library
      {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

// Takes `text` apart into code points, accents separate if they are to be dropped. Invalid bytes become
// U+FFFD.
std::vector<uint32_t> CodePoints(std::string_view text, bool decompose) {
  std::vector<uint32_t> out;
  while (!text.empty()) {
    const Utf8Step step = DecodeUtf8(text);
    text.remove_prefix(step.size);
    utf8proc_int32_t parts[8];
    utf8proc_ssize_t count = 0;
    if (decompose) {
      int boundary = 0;
      count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.code_point), parts, 8,
                                      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE),
                                      &boundary);
    }
    if (count <= 0 || count > 8) {
      out.push_back(step.code_point);
    } else {
      out.insert(out.end(), parts, parts + count);
    }
  }
  return out;
}

std::vector<std::string> Words(std::string_view text, WordPieceOptions options) {
  std::vector<std::string> words(1);
  const auto finish_word = [&] {
    if (!words.back().empty()) words.emplace_back();
  };
  for (const uint32_t c : CodePoints(text, options.strip_accents)) {
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    if (IsWhitespace(c, category)) {
      finish_word();
      continue;
    }
    if (IsIgnored(c, category)) continue;
    if (options.strip_accents && IsMark(category)) continue;
    const uint32_t shown =
        options.lowercase ? static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))) : c;
    const bool alone = IsPunctuation(c, category) || IsChinese(c);
    if (alone) finish_word();
    AppendUtf8(shown, &words.back());
    if (alone) finish_word();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Appends the longest tokens that cover `word` one after the other. False when nothing fits at some place.
bool CoverWord(const Vocabulary& vocabulary, std::string_view word, std::vector<TokenId>* out) {
  while (!word.empty()) {
    TokenId longest = kNoToken;
    size_t longest_size = 0;
    uint64_t hash = kHashSeed;
    const size_t limit = std::min(word.size(), vocabulary.longest_token());
    for (size_t size = 1; size <= limit; ++size) {
      hash = Vocabulary::Hash(word.substr(size - 1, 1), hash);
      const TokenId token = vocabulary.Find(word.substr(0, size), hash);
      if (token == kNoToken) continue;
      longest = token;
      longest_size = size;
    }
    if (longest == kNoToken) return false;
    out->push_back(longest);
    word.remove_prefix(longest_size);
  }
  return true;
}

}  // namespace

void EncodeWordPiece(const Vocabulary& vocabulary, std::string_view text, WordPieceOptions options,
                     std::vector<TokenId>* out) {
  std::string marked;
  for (const std::string& word : Words(text, options)) {
    marked.clear();
    AppendMarkingSpaces(" ", &marked);
    marked += word;
    const size_t before = out->size();
    if (CoverWord(vocabulary, marked, out)) continue;
    out->resize(before);
    if (vocabulary.unknown() != kNoToken) out->push_back(vocabulary.unknown());
  }
}

}  // namespace sluice::text
