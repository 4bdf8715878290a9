#include "calibration_text.h"

#include <algorithm>
#include <span>

#include "sluice/usage.h"

namespace sluice::app {

void TextFlags::AddTo(CLI::App& command) {
  command.add_option("--chunk", chunk, "Tokens of the text that are read on their own")
      ->capture_default_str();
  command.add_option("--chunks", chunks, "Read at most so many (default: all)");
  command.add_flag("--special", special, "Control tokens in the text (<|im_start|> …) are meant as such");
}

Result<std::vector<TokenId>> ReadIds(const std::string& file, const text::Tokenizer& tokenizer,
                                     bool special) {
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(file));
  SLUICE_TRY_ASSIGN(std::vector<TokenId> ids,
                    tokenizer.EncodeSpans(std::vector{text::TextSpan{text, special}}));
  if (ids.empty()) return Fail(ErrorCode::kInvalidArgument, "{}: a text of no tokens says nothing", file);
  return ids;
}

Result<std::vector<std::vector<TokenId>>> ReadChunks(const std::string& file,
                                                     const text::Tokenizer& tokenizer,
                                                     const TextFlags& flags) {
  const int64_t chunk = flags.chunk;
  if (chunk < 1) return Fail(ErrorCode::kInvalidArgument, "chunks of {} tokens; expected 1 or more", chunk);
  SLUICE_TRY_ASSIGN(const std::vector<TokenId> ids, ReadIds(file, tokenizer, flags.special));
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const size_t begin = vocabulary.add_bos() && chunk > 1 ? 1 : 0;
  const size_t step = static_cast<size_t>(chunk) - begin;
  std::vector<std::vector<TokenId>> pieces;
  for (size_t i = 0;
       i < ids.size() && (flags.chunks == 0 || pieces.size() < static_cast<size_t>(flags.chunks));
       i += step) {
    std::vector<TokenId>& piece = pieces.emplace_back(begin, vocabulary.bos());
    const auto part = std::span(ids).subspan(i, std::min(step, ids.size() - i));
    piece.insert(piece.end(), part.begin(), part.end());
  }
  return pieces;
}

}  // namespace sluice::app
