// Reading of test data, and the short way to render a template for a test.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/interpreter.h"
#include "chat/jinja/parser.h"
#include "chat/jinja/print.h"

namespace sluice::chat {

using Json = nlohmann::ordered_json;

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// A file of tests/chat/data.
inline Json ReadData(const std::string& name) {
  return Json::parse(ReadFile(SLUICE_SOURCE_DIR "/tests/chat/data/" + name));
}

inline const std::string kReferenceDir = SLUICE_REFERENCE_DIR "/chat-templates/";
inline bool HasReference() { return std::ifstream(kReferenceDir + "cases.json").good(); }

// The template with the JSON object as its variables. The clock stands at `local_time`, if it is given.
inline Result<std::string> RenderText(std::string_view source, const std::string& context = "{}",
                                      std::optional<int64_t> local_time = std::nullopt,
                                      const jinja::Limits& limits = {}) {
  SLUICE_TRY_ASSIGN(const jinja::Template parsed, jinja::Parse(source, limits));
  jinja::Heap heap(limits);
  SLUICE_TRY_ASSIGN(const jinja::Value variables, jinja::ParseJson(context, /*trusted=*/false, &heap));
  jinja::Interpreter interpreter(parsed, limits, &heap, local_time);
  SLUICE_TRY_ASSIGN(const jinja::Text text, interpreter.Run(*variables.dict()));
  return std::string(text.view());
}

}  // namespace sluice::chat
