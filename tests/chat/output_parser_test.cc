// What models write, by data/outputs.json, in chunks of every size.
#include "chat/output_parser.h"

#include <gmock/gmock.h>

#include <random>

#include "chat/test_data.h"
#include "chat/tool_calls.h"

namespace sluice::chat {
namespace {

Capabilities ReadCapabilities(const Json& json) {
  Capabilities c;
  const auto text = [&](const char* key) { return json.value(key, std::string()); };
  c.think_open = text("think_open");
  c.think_close = text("think_close");
  if (!c.think_open.empty()) c.reasoning = ReasoningFormat::kTags;
  if (json.value("harmony", false)) c.reasoning = ReasoningFormat::kHarmony;
  c.tool_call_markers = {text("tool_open"), text("tool_close"), json.value("bare_json", false)};
  return c;
}

ParsedOutput Collect(OutputParser* parser, const std::vector<std::string_view>& chunks) {
  ParsedOutput output;
  const auto add = [&](const std::vector<OutputEvent>& events) {
    for (const OutputEvent& event : events) {
      if (event.kind == OutputEvent::Kind::kToolCall) {
        output.tool_calls.push_back(event.call);
      } else {
        EXPECT_FALSE(event.text.empty());
        (event.kind == OutputEvent::Kind::kReasoning ? output.reasoning : output.answer) += event.text;
      }
    }
  };
  for (const std::string_view chunk : chunks) add(parser->Feed(chunk));
  add(parser->Finish());
  return output;
}

std::vector<std::string_view> Cut(std::string_view text, size_t size) {
  std::vector<std::string_view> chunks;
  for (size_t i = 0; i < text.size(); i += size) chunks.push_back(text.substr(i, size));
  return chunks;
}

TEST(OutputParser, AsTheDataSays) {
  const Json data = ReadData("outputs.json");
  for (const Json& entry : data["cases"]) {
    const auto name = entry["name"].get<std::string>();
    const Json& model = data["models"][entry["model"].get<std::string>()];
    const Capabilities capabilities = ReadCapabilities(model);
    const auto text = entry["text"].get<std::string>();
    std::vector<ToolCall> calls;
    for (const Json& call : entry.value("calls", Json::array())) {
      calls.push_back(
          {call.value("id", ""), call["name"].get<std::string>(), call["arguments"].get<std::string>()});
    }
    const auto check = [&](const std::vector<std::string_view>& chunks, const std::string& how) {
      OutputParser parser(capabilities, entry.value("tools", true), entry.value("in_reasoning", false));
      const ParsedOutput output = Collect(&parser, chunks);
      EXPECT_EQ(output.reasoning, entry.value("reasoning", "")) << name << how;
      EXPECT_EQ(output.answer, entry.value("answer", "")) << name << how;
      EXPECT_EQ(output.tool_calls, calls) << name << how;
    };
    for (size_t size = 1; size <= text.size(); ++size)
      check(Cut(text, size), ", chunks of " + std::to_string(size));
    for (size_t at = 1; at < text.size(); ++at) {
      const std::string_view view = text;
      check({view.substr(0, at), view.substr(at)}, ", cut at " + std::to_string(at));
    }
  }
}

TEST(OutputParser, TextComesAsSoonAsItIsDecided) {
  Capabilities c;
  c.reasoning = ReasoningFormat::kTags;
  c.think_open = "<think>";
  c.think_close = "</think>";
  OutputParser parser(c, false, false);
  const auto reasoning = [](std::string text) {
    return OutputEvent{OutputEvent::Kind::kReasoning, std::move(text), {}};
  };
  const auto answer = [](std::string text) {
    return OutputEvent{OutputEvent::Kind::kAnswer, std::move(text), {}};
  };
  EXPECT_TRUE(parser.Feed("<th").empty());
  EXPECT_TRUE(parser.Feed("ink>\n").empty());
  EXPECT_TRUE(parser.in_reasoning());
  EXPECT_THAT(parser.Feed("I th"), testing::ElementsAre(reasoning("I th")));
  EXPECT_THAT(parser.Feed("ink <b> \n</"), testing::ElementsAre(reasoning("ink <b>")));
  EXPECT_THAT(parser.Feed("i>"), testing::ElementsAre(reasoning(" \n</i>")));
  EXPECT_TRUE(parser.Feed("\n</think>\n").empty());
  EXPECT_FALSE(parser.in_reasoning());
  EXPECT_THAT(parser.Feed("\nYes."), testing::ElementsAre(answer("Yes.")));
  EXPECT_THAT(parser.Feed("  "), testing::ElementsAre(answer("  ")));
  EXPECT_TRUE(parser.Finish().empty());
}

TEST(OutputParser, ReadsTheControlTokensThatAreMarkers) {
  Capabilities c;
  c.reasoning = ReasoningFormat::kTags;
  c.think_open = "<|channel>thought\n";
  c.think_close = "<channel|>";
  c.tool_call_markers = {"<calls>", "</calls>", false};
  OutputParser parser(c, true, false);
  EXPECT_TRUE(parser.Reads("<|channel>"));
  EXPECT_TRUE(parser.Reads("<channel|>"));
  EXPECT_TRUE(parser.Reads("<calls>"));
  EXPECT_FALSE(parser.Reads("<|im_start|>"));
  EXPECT_FALSE(parser.Reads("<call>"));
  parser.Feed("<calls>");
  EXPECT_TRUE(parser.Reads("<call>"));  // its inside may be made of control tokens
  EXPECT_FALSE(OutputParser(c, false, false).Reads("<calls>"));
}

// Whatever comes: no crash, and all text that isn't part of a marker comes out once, in order, in any chunks.
TEST(OutputParser, HostileOutput) {
  const Json data = ReadData("outputs.json");
  const std::string_view pieces[] = {"<think>",
                                     "</think>",
                                     "<tool_call>",
                                     "</tool_call>",
                                     "{\"name\": \"f\"",
                                     "}",
                                     "[",
                                     "{",
                                     "<|channel|>",
                                     "<|message|>",
                                     "analysis",
                                     "<|end|>",
                                     "<|start|>",
                                     "to=functions.f",
                                     "[TOOL_CALLS]",
                                     "<function=",
                                     ">",
                                     "<parameter=",
                                     "\"",
                                     "\\",
                                     " ",
                                     "\n",
                                     "x",
                                     "é",
                                     "<arg_key>",
                                     "</arg_key>",
                                     "<arg_value>",
                                     "<invoke name=\"",
                                     "f[ARGS]",
                                     "functools"};
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) text += pieces[random() % std::size(pieces)];
    for (const auto& [name, model] : data["models"].items()) {
      const Capabilities capabilities = ReadCapabilities(model);
      const bool in_reasoning = random() % 2 == 0;
      const ParsedOutput whole = ParseOutput(capabilities, true, in_reasoning, text);
      OutputParser parser(capabilities, true, in_reasoning);
      const ParsedOutput cut = Collect(&parser, Cut(text, 1 + random() % 5));
      ASSERT_EQ(cut.reasoning, whole.reasoning) << name << ": " << text;
      ASSERT_EQ(cut.answer, whole.answer) << name << ": " << text;
      ASSERT_EQ(cut.tool_calls, whole.tool_calls) << name << ": " << text;
      ASSERT_LE(whole.answer.size() + whole.reasoning.size(), text.size());
    }
  }
}

TEST(OutputParser, LongHostileOutputIsLinear) {
  Capabilities c;
  c.tool_call_markers = {"<tool_call>", "</tool_call>", true};
  for (const char* unit :
       {"<tool_call>", "{", "[", "{\"name\":", "<function=", "<tool_call>{}</tool_call>", "<"}) {
    std::string text = "<tool_call>";
    while (text.size() < 200'000) text += unit;
    OutputParser parser(c, true, false);
    const ParsedOutput output = Collect(&parser, Cut(text, 7));
    EXPECT_EQ(output.answer, text) << unit;
  }
}

TEST(ToolCalls, AnswersThatOnlyLookLikeCalls) {
  for (const char* text :
       {"", "hello", "{}", "[]", "[1]", R"({"name": ""})", R"({"name": 5, "arguments": {}})",
        R"({"name": "f", "arguments": {}} and more)", R"({"name": "f")", R"(x {"a": 1)", "<function=>",
        "<function=f", "<arg_key>k</arg_key>"}) {
    EXPECT_TRUE(ParseToolCalls(text).empty()) << text;
  }
  for (const char* text :
       {R"({"name": "Ann", "age": 5})", R"(f{"a": 1})", R"([{"name": "f"}])", R"({"a": {"name": "f"}})"}) {
    EXPECT_TRUE(ParseBareToolCalls(text).empty()) << text;
  }
}

}  // namespace
}  // namespace sluice::chat
