#include "text/stream_decoder.h"

#include <string_view>

namespace sluice::text {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, StreamOptions options)
    : tokenizer_(tokenizer), options_(options) {}

void StreamDecoder::Push(TokenId id, std::string* out) {
  piece_.clear();
  tokenizer_.AppendPiece(id, options_.render_special, &piece_);
  std::string_view bytes = piece_;
  if (at_start_ && !bytes.empty()) {
    at_start_ = false;
    if (options_.strip_leading_space && bytes.front() == ' ') bytes.remove_prefix(1);
  }
  stream_.Append(bytes, out);
}

void StreamDecoder::Finish(std::string* out) {
  stream_.Finish(out);
  at_start_ = true;
}

}  // namespace sluice::text
