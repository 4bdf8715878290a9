// Builds a tokenizer from arbitrary lists and encodes arbitrary text with it: no crash, no hang, ids in
// range, and streaming equal to decoding at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/pretokenizer_table.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Takes the input apart; zeros once it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }
  std::string_view Text() {
    const size_t size = Byte() % 24;
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(text.size());
    return text;
  }
  template <typename T>
  T Number() {
    T number{};
    const size_t size = std::min(sizeof(T), rest_.size());
    std::memcpy(&number, rest_.data(), size);
    rest_.remove_prefix(size);
    return number;
  }
  std::string_view Rest() const { return rest_; }

 private:
  std::string_view rest_;
};

VocabularySource Source(Input* input, std::vector<std::string>* spelled) {
  constexpr std::string_view kModels[] = {"llama", "gpt2", "gemma4", "t5", "bert", "none", "rwkv"};
  VocabularySource source;
  source.model = kModels[input->Byte() % std::size(kModels)];
  const auto specs = PreTokenizers();
  const size_t pre = input->Byte();
  source.pre = pre < specs.size() ? specs[pre].names[0] : std::string_view("unknown");
  const uint8_t flags = input->Byte();
  if (flags & 1) {
    for (int byte = 0; byte < 256; ++byte) spelled->push_back(fmt::format("<0x{:02X}>", byte));
    for (const std::string& text : *spelled) {
      source.tokens.push_back(text);
      source.token_types.push_back(6);
    }
  }
  for (size_t n = input->Byte(); n > 0; --n) {
    source.tokens.push_back(input->Text());
    if (flags & 2) source.token_types.push_back(input->Byte() % 9);
  }
  if ((flags & 2) == 0) source.token_types.clear();
  if (flags & 4) {
    for (size_t n = source.tokens.size(); n > 0; --n) source.scores.push_back(input->Number<float>());
  }
  for (size_t n = input->Byte() % 64; n > 0; --n) source.merges.push_back(input->Text());
  if (flags & 8) {
    source.bos = input->Number<int64_t>();
    source.eos = input->Byte();
    source.unknown = input->Byte();
    source.end_of_generation = {input->Byte(), input->Number<int64_t>()};
  }
  if (flags & 16) source.add_bos = source.add_eos = source.add_sep = true;
  if (flags & 32) source.add_space_prefix = source.remove_extra_whitespaces = (input->Byte() & 1) != 0;
  if (flags & 64) source.name = "phi-3";
  if (flags & 128) source.precompiled_charsmap = std::as_bytes(std::span(input->Text()));
  return source;
}

void CheckStreaming(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(tokenizer, {.render_special = true});
  std::string streamed;
  for (const TokenId id : ids) {
    decoder.Push(id, &streamed);
    SLUICE_CHECK(IsValidUtf8(streamed));
  }
  decoder.Finish(&streamed);
  const std::string whole = tokenizer.DecodeText(ids, {.render_special = true});
  SLUICE_CHECK(streamed == whole || (streamed.starts_with(' ') && streamed.substr(1) == whole));
}

}  // namespace
}  // namespace sluice::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  text::Input input(data, size);
  std::vector<std::string> spelled;
  const Result<text::Tokenizer> tokenizer = text::Tokenizer::Create(text::Source(&input, &spelled));
  if (!tokenizer) return 0;
  const std::string_view stop = input.Text();
  const std::string_view cut = input.Text();
  const std::string_view body = input.Rest();

  for (const bool special : {false, true}) {
    const Result<std::vector<text::TokenId>> ids = tokenizer->Encode(body, {special, special});
    if (!ids) continue;
    for (const text::TokenId id : *ids) SLUICE_CHECK(tokenizer->vocabulary().Contains(id));
    text::CheckStreaming(*tokenizer, *ids);
    (void)tokenizer->Decode(*ids, {.strip_bos_eos = true, .clean_up_spaces = true});
  }
  const text::TextSpan spans[] = {{cut, true}, {body, false}, {stop, true}};
  (void)tokenizer->EncodeSpans(spans, true);

  text::StopMatcher once({std::string(stop), std::string(cut)}),
      bytewise({std::string(stop), std::string(cut)});
  std::string shown_once, shown_bytewise;
  once.Push(body, &shown_once);
  for (const char c : body) bytewise.Push(std::string_view(&c, 1), &shown_bytewise);
  once.Finish(&shown_once);
  bytewise.Finish(&shown_bytewise);
  SLUICE_CHECK(shown_once == shown_bytewise && once.matched() == bytewise.matched());
  return 0;
}
