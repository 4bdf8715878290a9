// What a checkpoint's folder holds is hostile: the first byte says which of its files the rest is.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "convert/hyperparameters.h"
#include "convert/json_file.h"
#include "convert/pickle.h"
#include "convert/safetensors.h"
#include "convert/sentencepiece_model.h"
#include "convert/tokenizer_json.h"
#include "convert/zip_directory.h"

using namespace sluice;
using namespace sluice::convert;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: {
      const uint64_t data_bytes = size * 7;
      const auto tensors = ParseSafetensorsHeader(text, data_bytes);
      if (!tensors) break;
      uint64_t end = 0;
      for (const SourceTensor& tensor : *tensors) {
        if (tensor.offset != end || tensor.rows() * tensor.columns() != tensor.elements()) __builtin_trap();
        end += tensor.size_bytes;
      }
      if (end != data_bytes) __builtin_trap();
      break;
    }
    case 1: {
      const auto list = ReadSentencePieceModel(std::as_bytes(std::span(text)));
      if (list && (list->texts.size() != list->kinds.size() || list->texts.size() != list->scores.size()))
        __builtin_trap();
      break;
    }
    case 2: {
      const auto json = ParseJsonObject(text, "tokenizer.json");
      if (json) (void)ReadTokenizerJson(JsonObject(*json, "tokenizer.json"), "", true);
      break;
    }
    case 3: {
      const auto entries = ParseZipDirectory(std::as_bytes(std::span(text)), size * 7);
      if (!entries) break;
      for (const ZipEntry& entry : *entries) {
        if (entry.header_offset > size * 7 || entry.size_bytes > size * 7 - entry.header_offset)
          __builtin_trap();
      }
      break;
    }
    case 4: {
      const auto tensors = ReadStateDict(std::as_bytes(std::span(text)));
      if (!tensors) break;
      for (const PickledTensor& tensor : *tensors) {
        if (tensor.shape.size() != tensor.strides.size()) __builtin_trap();
      }
      break;
    }
    default: {
      const auto json = ParseJsonObject(text, "config.json");
      gguf::Metadata metadata;
      if (json) (void)ReadHyperparameters(JsonObject(*json, "config.json"), metadata);
      break;
    }
  }
  return 0;
}
