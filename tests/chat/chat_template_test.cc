#include "chat/chat_template.h"

#include <gmock/gmock.h>

#include "chat/test_data.h"

namespace sluice::chat {
namespace {

using testing::HasSubstr;

constexpr std::string_view kGemmaLike =
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') "
    "}}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "<{{ message['role'] }}>{{ message['content'] | trim }}{% endfor %}";

constexpr std::string_view kQwen3Like =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.content is string %}{{ m.content.split('</think>')[-1].lstrip('\n') }}{% endif %}<|im_end|>\n{% "
    "endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% "
    "endif %}";

std::string Rendered(const ChatTemplate& chat, const std::vector<Message>& messages,
                     Thinking thinking = Thinking::kDefault) {
  const auto prompt = chat.Render({.messages = messages, .thinking = thinking});
  return prompt ? Flatten(prompt->segments) : "error: " + prompt.error().message;
}

TEST(ChatTemplate, SystemIsMergedWhereTheTemplateRefusesIt) {
  const ChatTemplate chat = ChatTemplate::Create({.text = kGemmaLike, .bos_token = "<bos>"});
  EXPECT_EQ(chat.origin(), "model");
  EXPECT_FALSE(chat.capabilities().system);
  const Message system = TextMessage("system", "Be brief."), user = TextMessage("user", "Hi"),
                answer = TextMessage("assistant", "Ho");
  EXPECT_EQ(Rendered(chat, {system, user}), "<bos><user>Be brief.\n\nHi");
  EXPECT_EQ(Rendered(chat, {system, user, answer, user}), "<bos><user>Be brief.\n\nHi<assistant>Ho<user>Hi");
  EXPECT_EQ(Rendered(chat, {system}), "<bos><user>Be brief.");
  EXPECT_EQ(Rendered(chat, {user, answer, system, user}), "<bos><user>Hi<assistant>Ho<user>Be brief.\n\nHi");
  EXPECT_EQ(Rendered(chat, {system, system, user}), "<bos><user>Be brief.\n\nBe brief.\n\nHi");
}

TEST(ChatTemplate, ARefusalIsTheTemplatesOwnMessage) {
  const ChatTemplate chat = ChatTemplate::Create({.text = kGemmaLike});
  for (const std::vector<Message>& messages :
       {std::vector<Message>{TextMessage("user", "a"), TextMessage("user", "b")},
        {TextMessage("assistant", "a")}}) {
    const auto prompt = chat.Render({.messages = messages});
    ASSERT_FALSE(prompt);
    EXPECT_EQ(prompt.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(prompt.error().message, "Conversation roles must alternate user/assistant/user/assistant/...");
  }
}

TEST(ChatTemplate, NoMessagesIsNoCrash) {
  for (const std::string_view source : {kGemmaLike, kQwen3Like}) {
    (void)ChatTemplate::Create({.text = source}).Render({});
  }
  EXPECT_EQ(Rendered(ChatTemplate::Create({.text = kQwen3Like}), {}), "<|im_start|>assistant\n");
}

TEST(ChatTemplate, UnusableTemplatesAreReplacedWithAWarning) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "the model's file has no chat template"},
      {"{% for m in messages %}", "the template ends; expected {% endfor %}"},
      {"{{ messages | frobnicate }}", "no filter named 'frobnicate'"},
      {"{% include 'x' %}{{ messages[0].content }}", "'include' is not supported"},
      {"{{ ''.__class__ }}{{ messages[0].content }}", "unknown attribute '__class__'"},
      {"no messages in here", "leaves out what the user says"},
      {"{{ raise_exception('never') }}", "never"},
  };
  for (const auto& [source, reason] : cases) {
    const ChatTemplate chat = ChatTemplate::Create({.text = source});
    EXPECT_EQ(chat.origin(), "chatml") << source;
    ASSERT_EQ(chat.warnings().size(), 1u) << source;
    EXPECT_THAT(chat.warnings()[0], HasSubstr(reason));
    EXPECT_THAT(chat.warnings()[0], HasSubstr("built-in template 'chatml'"));
    EXPECT_EQ(Rendered(chat, {TextMessage("user", "Hi")}),
              "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    EXPECT_FALSE(ChatTemplate::CreateExactly({.text = source})) << source;
  }
}

TEST(ChatTemplate, WhatIsUnknownButNotReachedIsOnlyAWarning) {
  const ChatTemplate chat = ChatTemplate::Create(
      {.text = "{% for m in messages %}{% if m.content == 'x' %}{{ m | nosuch }}{% endif %}"
               "{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"});
  EXPECT_EQ(chat.origin(), "model");
  EXPECT_THAT(chat.warnings(), testing::ElementsAre(HasSubstr("no filter named 'nosuch'")));
  EXPECT_EQ(Rendered(chat, {TextMessage("user", "a")}), "a");
  const std::vector<Message> messages = {TextMessage("user", "x")};
  const auto prompt = chat.Render({.messages = messages});
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().code, ErrorCode::kUnsupported);
}

TEST(ChatTemplate, FallbackByVocabularyThenByName) {
  const auto origin = [](std::string_view token, std::string_view name, std::string_view architecture) {
    const ChatTemplate chat = ChatTemplate::Create(
        {.architecture = architecture, .model_name = name, .has_token = [=](std::string_view t) {
           return t == token;
         }});
    return std::string(chat.origin());
  };
  EXPECT_EQ(origin("<|im_start|>", "Llama-2", "llama"), "chatml");
  EXPECT_EQ(origin("<|start_header_id|>", "", "llama"), "llama3");
  EXPECT_EQ(origin("<start_of_turn>", "", "gemma2"), "gemma");
  EXPECT_EQ(origin("<|end|>", "", "phi3"), "phi3");
  EXPECT_EQ(origin("[INST]", "", "llama"), "mistral");
  EXPECT_EQ(origin("<|start_of_role|>", "", "granite"), "granite");
  EXPECT_EQ(origin("<|START_OF_TURN_TOKEN|>", "", "command-r"), "command-r");
  EXPECT_EQ(origin("", "Llama-2-7b-chat", "llama"), "llama2");
  EXPECT_EQ(origin("", "TinyLlama 1.1B", "llama"), "zephyr");
  EXPECT_EQ(origin("", "vicuna-13b", "llama"), "vicuna");
  EXPECT_EQ(origin("", "Alpaca", "llama"), "alpaca");
  EXPECT_EQ(origin("", "x", "gemma3"), "gemma");
  EXPECT_EQ(origin("", "x", "llama"), "chatml");
}

TEST(ChatTemplate, BuiltInTemplates) {
  const std::vector<Message> conversation = {TextMessage("system", "S"), TextMessage("user", "U"),
                                             TextMessage("assistant", "A"), TextMessage("user", "V")};
  const Json data = ReadData("builtin_templates.json");
  for (const Json& entry : data["cases"]) {
    const auto name = entry[0].get<std::string>();
    const ChatTemplate chat = ChatTemplate::Create({.text = name, .bos_token = "<s>", .eos_token = "</s>"});
    EXPECT_EQ(chat.origin(), name);
    EXPECT_TRUE(chat.warnings().empty()) << name;
    EXPECT_EQ(Rendered(chat, conversation), entry[1].get<std::string>()) << name;
  }
}

TEST(ChatTemplate, ContentAsPartsForTemplatesThatWantThem) {
  const ChatTemplate chat = ChatTemplate::Create(
      {.text =
           "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}[{{ p.text }}]{% endif %}"
           "{% endfor %}{% endfor %}"});
  EXPECT_EQ(chat.origin(), "model");
  Message message = TextMessage("user", "a");
  message.content.push_back({ContentPart::Kind::kText, "b"});
  EXPECT_EQ(Rendered(chat, {message}), "[a][b]");
}

TEST(ChatTemplate, DeveloperIsSystemForTemplatesThatDoNotKnowIt) {
  const Message message = TextMessage("developer", "x");
  EXPECT_EQ(Rendered(ChatTemplate::Create(
                         {.text = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"}),
                     {message, TextMessage("user", "u")}),
            "<system>x<user>u");
  EXPECT_EQ(Rendered(ChatTemplate::Create({.text = "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
                                                   "{% if m.role == 'developer' %}!{% endif %}{% endfor %}"}),
                     {message, TextMessage("user", "u")}),
            "<developer>x!<user>u");
}

std::vector<Message> Calls() {
  Message call;
  call.role = "assistant";
  call.tool_calls.push_back({"c1", "f", R"({"x": [1, "é"]})"});
  Message result = TextMessage("tool", "42");
  result.tool_call_id = "c1";
  return {TextMessage("user", "U"), call, result};
}

// Templates want a call's arguments as an object or as text, and no content as none or "": the probe finds
// out.
TEST(ChatTemplate, ToolCallsInTheShapeThatTheTemplateTakes) {
  constexpr std::string_view kBefore =
      "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>"
      "{{ c.function.name }}:";
  constexpr std::string_view kAfter =
      "</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  for (const std::string_view show :
       {"{{ c.function.arguments | tojson }}", "{{ c.function.arguments }}",
        "{{ '' + c.function.arguments }}",
        "{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}"
        "{{ c.function.arguments | tojson }}{% endif %}{{ m.content[:0] }}"}) {
    const std::string source = std::string(kBefore) + std::string(show) + std::string(kAfter);
    const ChatTemplate chat = ChatTemplate::Create({.text = source});
    EXPECT_EQ(chat.origin(), "model");
    EXPECT_TRUE(chat.capabilities().tool_calls) << show;
    EXPECT_EQ(chat.capabilities().tool_call_markers.open, "<tool_call>");
    EXPECT_EQ(Rendered(chat, Calls()), R"(U<tool_call>f:{"x": [1, "é"]}</tool_call>42)") << show;
  }
}

TEST(ChatTemplate, AResultGetsTheNameOfItsCall) {
  const ChatTemplate chat =
      ChatTemplate::Create({.text = "{% for m in messages %}{% if m.role == 'tool' %}{{ m.name }}={% endif "
                                    "%}{{ m.content }}{% endfor %}"});
  EXPECT_EQ(Rendered(chat, Calls()), "Uf=42");
}

TEST(ChatTemplate, ToolDefinitions) {
  const auto tools =
      *ToolsFromJson(R"([{"name": "f", "description": "d", "parameters": {"type": "object"}}])");
  const std::vector<Message> messages = {TextMessage("user", "U")};
  const ChatTemplate with =
      ChatTemplate::Create({.text = "{% if tools %}{{ tools | map(attribute='function.name') | join }}:{% "
                                    "endif %}{{ messages[0].content }}"});
  EXPECT_TRUE(with.capabilities().tools);
  EXPECT_EQ(Flatten(with.Render({.messages = messages, .tools = tools})->segments), "f:U");
  EXPECT_EQ(Rendered(with, messages), "U");
  const ChatTemplate without = ChatTemplate::Create({.text = "chatml"});
  EXPECT_FALSE(without.capabilities().tools);
  EXPECT_FALSE(without.capabilities().tool_calls);
}

TEST(ChatTemplate, ThinkingByVariable) {
  const ChatTemplate chat = ChatTemplate::Create({.text = kQwen3Like});
  EXPECT_EQ(chat.capabilities().reasoning, ReasoningFormat::kTags);
  EXPECT_EQ(chat.capabilities().thinking_switch, ThinkingSwitch::kVariable);
  EXPECT_EQ(chat.capabilities().think_open, "<think>");
  EXPECT_EQ(chat.capabilities().think_close, "</think>");
  const std::vector<Message> messages = {TextMessage("user", "U")};
  EXPECT_THAT(Rendered(chat, messages), testing::EndsWith("assistant\n"));
  EXPECT_THAT(Rendered(chat, messages, Thinking::kOn), testing::EndsWith("assistant\n"));
  EXPECT_THAT(Rendered(chat, messages, Thinking::kOff),
              testing::EndsWith("assistant\n<think>\n\n</think>\n\n"));
  // A request's own variable decides where the caller says nothing.
  const auto prompt = chat.Render({.messages = messages, .extra_json = R"({"enable_thinking": false})"});
  EXPECT_THAT(Flatten(prompt->segments), testing::EndsWith("</think>\n\n"));
}

TEST(ChatTemplate, ThinkingByCommand) {
  const ChatTemplate chat = ChatTemplate::Create(
      {.text = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}|{% endfor %}"
               "{{ '<think></think>' if '/no_think' in messages[-1].content else '<think>\n' }}"});
  EXPECT_EQ(chat.capabilities().thinking_switch, ThinkingSwitch::kCommand);
  const std::vector<Message> messages = {TextMessage("user", "U")};
  EXPECT_EQ(Rendered(chat, messages), "U|<think>\n");
  EXPECT_EQ(Rendered(chat, messages, Thinking::kOff), "U /no_think|<think></think>");
  EXPECT_TRUE(chat.Render({.messages = messages})->opens_reasoning);
  EXPECT_FALSE(chat.Render({.messages = messages, .thinking = Thinking::kOff})->opens_reasoning);
}

TEST(ChatTemplate, ThinkingByPrefill) {
  // One that opens the thought itself, and one whose model does.
  for (const bool opens : {true, false}) {
    const std::string source =
        std::string("{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}<a>") +
        (opens ? "{{ '<think>\n' }}" : "");
    const ChatTemplate chat = ChatTemplate::Create({.text = source});
    EXPECT_EQ(chat.capabilities().thinking_switch, ThinkingSwitch::kPrefill);
    const std::vector<Message> messages = {TextMessage("user", "<think>")};
    const auto on = chat.Render({.messages = messages});
    EXPECT_EQ(on->opens_reasoning, opens);
    const auto off = chat.Render({.messages = messages, .thinking = Thinking::kOff});
    EXPECT_EQ(Flatten(off->segments), "<think><a><think>\n\n</think>\n\n");
    EXPECT_FALSE(off->opens_reasoning);
    EXPECT_TRUE(off->segments.back().trusted);
  }
}

TEST(ChatTemplate, ThinkingByEffort) {
  const ChatTemplate chat =
      ChatTemplate::Create({.text = "{{ 'Reasoning: ' ~ reasoning_effort | default('medium') "
                                    "}}<|channel|>analysis{{ messages[0].content }}"});
  EXPECT_EQ(chat.capabilities().reasoning, ReasoningFormat::kHarmony);
  EXPECT_EQ(chat.capabilities().thinking_switch, ThinkingSwitch::kVariable);
  const std::vector<Message> messages = {TextMessage("user", "U")};
  EXPECT_THAT(Rendered(chat, messages), HasSubstr("medium"));
  EXPECT_THAT(Rendered(chat, messages, Thinking::kOff), HasSubstr("low"));
}

TEST(ChatTemplate, NoThinkingIsNoSwitch) {
  const ChatTemplate chat = ChatTemplate::Create({.text = "chatml"});
  EXPECT_EQ(chat.capabilities().reasoning, ReasoningFormat::kNone);
  EXPECT_EQ(chat.capabilities().thinking_switch, ThinkingSwitch::kNone);
  const std::vector<Message> messages = {TextMessage("user", "U")};
  EXPECT_EQ(Rendered(chat, messages), Rendered(chat, messages, Thinking::kOff));
}

TEST(ChatTemplate, ExtraVariablesAndDocuments) {
  const ChatTemplate chat =
      ChatTemplate::Create({.text = "{{ greeting }}{% if documents %}{{ documents[0].title }}{% endif %}{{ "
                                    "messages[0].content }}{{ bos_token }}",
                            .bos_token = "<s>"});
  const std::vector<Message> messages = {TextMessage("user", "U")};
  RenderInput input = {.messages = messages};
  input.extra_json = R"({"greeting": "<hi>", "bos_token": "evil"})";
  input.documents_json = R"([{"title": "T"}])";
  const auto prompt = chat.Render(input);
  ASSERT_TRUE(prompt);
  const std::vector<Segment> expected = {{"<hi>TU", false}, {"<s>", true}};
  EXPECT_EQ(prompt->segments, expected);
  input.extra_json = "{";
  EXPECT_THAT(chat.Render(input).error().message, HasSubstr("chat_template_kwargs: not JSON"));
  input.extra_json = "[]";
  EXPECT_EQ(chat.Render(input).error().code, ErrorCode::kInvalidArgument);
}

TEST(ChatTemplate, OddTokenTextsAreNoTrouble) {
  const std::string huge(50u << 20, 'x');
  const ChatTemplate chat = ChatTemplate::Create({.bos_token = huge, .eos_token = huge});
  EXPECT_EQ(Rendered(chat, {TextMessage("user", "U")}),
            "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
}

// P19: {the prompt begins with BOS, or not} × {the vocabulary wants one, or not} × {chat, plain text}.
TEST(Bos, ExactlyOne) {
  const std::vector<Segment> with = {{"<s>[INST]", true}, {"hi", false}};
  const std::vector<Segment> without = {{"[INST]", true}, {"hi", false}};
  const std::vector<Segment> plain = {{"<s>hi", false}};  // a user typed it: text
  EXPECT_FALSE(TokenizerAddsBos(true, "<s>", with));
  EXPECT_FALSE(TokenizerAddsBos(false, "<s>", with));
  EXPECT_TRUE(TokenizerAddsBos(true, "<s>", without));
  EXPECT_FALSE(TokenizerAddsBos(false, "<s>", without));
  EXPECT_TRUE(TokenizerAddsBos(true, "<s>", plain));
  EXPECT_FALSE(TokenizerAddsBos(false, "<s>", plain));
  EXPECT_TRUE(TokenizerAddsBos(true, "<s>", {}));
  EXPECT_TRUE(TokenizerAddsBos(true, "", with));
}

}  // namespace
}  // namespace sluice::chat
