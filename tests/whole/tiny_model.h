// Tiny models for whole-program tests, made in memory and open to being spoiled:
//
//   TinyLlama()      two llama layers of random weights; every tensor and key can be changed before Build
//   ScriptedModel()  a model whose answer is written down beforehand: after position p it says script[p]
//
// Plain values, no thread affinity.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "formats/dtype.h"
#include "gguf/builder.h"
#include "gguf/byte_sink.h"
#include "gguf/writer.h"

namespace sluice::whole {

using formats::DType;
using gguf::testing::Bytes;

// The parts of a model file, to be changed before it is built.
struct ModelParts {
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<uint64_t> dims;  // as GGUF has them: columns first
    Bytes data;
  };
  gguf::Metadata metadata;
  std::vector<Tensor> tensors;

  Tensor& At(std::string_view name) {
    const auto found = std::ranges::find(tensors, name, &Tensor::name);
    SLUICE_CHECK(found != tensors.end());
    return *found;
  }
  void Remove(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  }
  // Small numbers about `mean`, the same on every machine.
  void AddRandom(std::string name, std::vector<uint64_t> dims, float mean = 0, DType dtype = DType::kF32) {
    uint64_t elements = 1;
    for (const uint64_t dim : dims) elements *= dim;
    Bytes data(formats::RowBytes(dtype, elements));
    if (dtype == DType::kF32) {
      for (uint64_t i = 0; i < elements; ++i) {
        const float value = mean + 0.25f * (static_cast<float>(random_() >> 8) / 8388608.0f - 1.0f);
        std::memcpy(data.data() + 4 * i, &value, 4);
      }
    }
    tensors.push_back({std::move(name), dtype, std::move(dims), std::move(data)});
  }
  void AddF32(std::string name, std::vector<uint64_t> dims, const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    tensors.push_back({std::move(name), DType::kF32, std::move(dims), Bytes(bytes.begin(), bytes.end())});
  }
  void AddFilled(std::string name, std::vector<uint64_t> dims, float value) {
    uint64_t elements = 1;
    for (const uint64_t dim : dims) elements *= dim;
    AddF32(std::move(name), std::move(dims), std::vector<float>(elements, value));
  }

  Bytes Build() const {
    gguf::Metadata copy;
    for (const gguf::Entry& entry : metadata.entries()) copy.Set(entry);
    gguf::Writer writer(std::move(copy));
    for (const Tensor& tensor : tensors)
      SLUICE_CHECK(writer.AddTensor(tensor.name, tensor.dtype, tensor.dims).has_value());
    Bytes file;
    gguf::MemorySink sink(&file);
    SLUICE_CHECK(writer.Begin(sink).has_value());
    for (const Tensor& tensor : tensors) SLUICE_CHECK(writer.WriteData(tensor.data).has_value());
    SLUICE_CHECK(writer.Finish().has_value());
    return file;
  }
  std::string BuildString() const {
    const Bytes bytes = Build();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::mt19937 random_{1};
};

// A SentencePiece vocabulary: <unk> <s> </s>, 256 byte tokens, a few characters, and control tokens as chat
// models have them. Characters without a token are spelled in bytes.
struct TinyVocabulary {
  enum Kind : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;

  TinyVocabulary() {
    Add("<unk>", kUnknown);
    Add("<s>", kControl);
    Add("</s>", kControl);
    for (int byte = 0; byte < 256; ++byte) Add(fmt::format("<0x{:02X}>", byte), kByte);
    Add("\xe2\x96\x81", kNormal);  // the space
    for (char c = 'a'; c <= 'z'; ++c) Add(std::string(1, c), kNormal);
    for (const char* text : {"<|im_start|>", "<|im_end|>", "<|eot_id|>", "<think>", "</think>"})
      Add(text, kControl);
  }
  void Add(std::string text, Kind kind) {
    tokens.push_back(std::move(text));
    kinds.push_back(kind);
  }
  int32_t Id(std::string_view text) const {
    const auto found = std::ranges::find(tokens, text);
    SLUICE_CHECK(found != tokens.end());
    return static_cast<int32_t>(found - tokens.begin());
  }
  // One byte token for each byte of `text`.
  std::vector<int32_t> ByteIds(std::string_view text) const {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(3 + static_cast<unsigned char>(c));
    return ids;
  }
  void WriteTo(gguf::Metadata& metadata) const {
    metadata.SetString("tokenizer.ggml.model", "llama");
    metadata.SetStrings("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
    metadata.SetF32s("tokenizer.ggml.scores", std::vector<float>(tokens.size(), 0.0f));
    metadata.SetI32s("tokenizer.ggml.token_type", kinds);
    metadata.SetU32("tokenizer.ggml.bos_token_id", 1);
    metadata.SetU32("tokenizer.ggml.eos_token_id", 2);
    metadata.SetU32("tokenizer.ggml.unknown_token_id", 0);
  }
};

inline constexpr char kChatMl[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// Two llama layers of width 32: 4 heads of 8 and 2 for keys and values.
inline ModelParts TinyLlama(int64_t context = 128) {
  ModelParts model;
  const TinyVocabulary vocabulary;
  const uint64_t vocab_size = vocabulary.tokens.size();
  gguf::Metadata& metadata = model.metadata;
  metadata.SetString("general.architecture", "llama");
  metadata.SetString("general.name", "tiny");
  metadata.SetU32("llama.context_length", static_cast<uint32_t>(context));
  metadata.SetU32("llama.embedding_length", 32);
  metadata.SetU32("llama.block_count", 2);
  metadata.SetU32("llama.feed_forward_length", 64);
  metadata.SetU32("llama.attention.head_count", 4);
  metadata.SetU32("llama.attention.head_count_kv", 2);
  metadata.SetF32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  metadata.SetString("tokenizer.chat_template", kChatMl);
  vocabulary.WriteTo(metadata);
  model.AddRandom("token_embd.weight", {32, vocab_size});
  for (const std::string blk : {"blk.0.", "blk.1."}) {
    model.AddRandom(blk + "attn_norm.weight", {32}, 1);
    model.AddRandom(blk + "attn_q.weight", {32, 32});
    model.AddRandom(blk + "attn_k.weight", {32, 16});
    model.AddRandom(blk + "attn_v.weight", {32, 16});
    model.AddRandom(blk + "attn_output.weight", {32, 32});
    model.AddRandom(blk + "ffn_norm.weight", {32}, 1);
    model.AddRandom(blk + "ffn_gate.weight", {32, 64});
    model.AddRandom(blk + "ffn_up.weight", {32, 64});
    model.AddRandom(blk + "ffn_down.weight", {64, 32});
  }
  model.AddRandom("output_norm.weight", {32}, 1);
  model.AddRandom("output.weight", {32, vocab_size});
  return model;
}

// The same as gemma2 has it: layer 0 sees a sliding window, layer 1 everything.
inline ModelParts TinyGemma(uint32_t window, int64_t context = 128) {
  ModelParts model = TinyLlama(context);
  gguf::Metadata& metadata = model.metadata;
  metadata.SetString("general.architecture", "gemma2");
  metadata.SetU32("gemma2.context_length", static_cast<uint32_t>(context));
  metadata.SetU32("gemma2.embedding_length", 32);
  metadata.SetU32("gemma2.block_count", 2);
  metadata.SetU32("gemma2.feed_forward_length", 64);
  metadata.SetU32("gemma2.attention.head_count", 4);
  metadata.SetU32("gemma2.attention.head_count_kv", 2);
  metadata.SetU32("gemma2.attention.sliding_window", window);
  metadata.SetF32("gemma2.attention.layer_norm_rms_epsilon", 1e-5f);
  for (const std::string blk : {"blk.0.", "blk.1."}) {
    model.AddRandom(blk + "post_attention_norm.weight", {32}, 1);
    model.AddRandom(blk + "post_ffw_norm.weight", {32}, 1);
  }
  return model;
}

// Says script[p] after position p, whatever it has read: one layer that adds nothing to the embedding of the
// position (gpt2's), and an output matrix that looks up the script. Beyond the script it says `otherwise`.
inline ModelParts ScriptedModel(const std::map<int64_t, int32_t>& script, std::string_view otherwise = "z",
                                std::string_view chat_template = kChatMl, int64_t context = 256,
                                const TinyVocabulary& vocabulary = TinyVocabulary()) {
  ModelParts model;
  const uint64_t width = static_cast<uint64_t>(context), vocab_size = vocabulary.tokens.size();
  gguf::Metadata& metadata = model.metadata;
  metadata.SetString("general.architecture", "gpt2");
  metadata.SetString("general.name", "scripted");
  metadata.SetU32("gpt2.context_length", static_cast<uint32_t>(context));
  metadata.SetU32("gpt2.embedding_length", static_cast<uint32_t>(width));
  metadata.SetU32("gpt2.block_count", 1);
  metadata.SetU32("gpt2.feed_forward_length", 16);
  metadata.SetU32("gpt2.attention.head_count", 1);
  metadata.SetU32("gpt2.attention.key_length", 16);
  metadata.SetU32("gpt2.attention.value_length", 16);
  metadata.SetF32("gpt2.attention.layer_norm_epsilon", 1e-5f);
  if (!chat_template.empty()) metadata.SetString("tokenizer.chat_template", chat_template);
  vocabulary.WriteTo(metadata);

  std::vector<float> positions(width * width, 0.0f), output(width * vocab_size, 0.0f);
  for (uint64_t position = 0; position < width; ++position) {
    positions[position * width + position] = 1;
    const auto line = script.find(static_cast<int64_t>(position));
    const int32_t next = line != script.end() ? line->second : vocabulary.Id(otherwise);
    output[static_cast<uint64_t>(next) * width + position] = 4;
  }
  model.AddFilled("token_embd.weight", {width, vocab_size}, 0);
  model.AddF32("position_embd.weight", {width, width}, positions);
  for (const char* norm : {"blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"}) {
    model.AddFilled(std::string(norm) + ".weight", {width}, 1);
    model.AddFilled(std::string(norm) + ".bias", {width}, 0);
  }
  model.AddFilled("blk.0.attn_qkv.weight", {width, 48}, 0);
  model.AddFilled("blk.0.attn_output.weight", {16, width}, 0);
  model.AddFilled("blk.0.ffn_up.weight", {width, 16}, 0);
  model.AddFilled("blk.0.ffn_down.weight", {16, width}, 0);
  model.AddF32("output.weight", {width, vocab_size}, output);
  return model;
}

// The script of an answer that begins behind a prompt of `prompt_tokens`.
inline std::map<int64_t, int32_t> Script(int64_t prompt_tokens, const std::vector<int32_t>& answer) {
  std::map<int64_t, int32_t> script;
  for (size_t i = 0; i < answer.size(); ++i) script[prompt_tokens - 1 + static_cast<int64_t>(i)] = answer[i];
  return script;
}

}  // namespace sluice::whole
