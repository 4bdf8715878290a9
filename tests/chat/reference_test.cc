// Real templates against what other programs render of them.
#include "chat/chat_template.h"
#include "chat/test_data.h"

namespace sluice::chat {
namespace {

TEST(Reference, EveryCase) {
  if (!HasReference()) GTEST_SKIP() << "no reference templates at " << kReferenceDir;
  constexpr int64_t kTime = 1752105600;  // 10 July 2025, the day one of them was rendered on
  size_t count = 0;
  const Json data = Json::parse(ReadFile(kReferenceDir + "cases.json"));
  for (const auto& [name, entry] : data.items()) {
    const auto source = entry["chat_template"].get<std::string>();
    const Result<std::string> text = RenderText(source, entry["data"].dump(), kTime);
    ASSERT_TRUE(text) << name << ": " << text.error().message;
    EXPECT_EQ(*text, entry["target"].get<std::string>()) << name;
    ++count;
  }
  EXPECT_EQ(count, 45u);
}

// Through ChatTemplate: the probe must not change what a plain conversation looks like.
TEST(Reference, EveryRendering) {
  if (!HasReference()) GTEST_SKIP() << "no reference templates at " << kReferenceDir;
  const std::vector<Message> conversation = {
      TextMessage("system", "You are helpful."), TextMessage("user", "Hi <there>"),
      TextMessage("assistant", "Hello!"), TextMessage("user", "你好?")};
  size_t count = 0;
  const Json data = Json::parse(ReadFile(kReferenceDir + "rendered.json"));
  for (const auto& [name, entry] : data.items()) {
    const std::string source = ReadFile(kReferenceDir + name);
    const auto chat =
        ChatTemplate::CreateExactly({.text = source, .bos_token = "<BOS>", .eos_token = "<EOS>"});
    ASSERT_TRUE(chat) << name << ": " << chat.error().message;
    RenderInput input;
    input.messages = std::span(conversation).subspan(entry["messages"] == "sys" ? 0 : 1);
    input.local_time = 1795910400;  // 29 November 2026
    const auto prompt = chat->Render(input);
    ASSERT_TRUE(prompt) << name << ": " << prompt.error().message;
    EXPECT_EQ(Flatten(prompt->segments), entry["text"].get<std::string>()) << name;
    ++count;
  }
  EXPECT_EQ(count, 47u);
}

}  // namespace
}  // namespace sluice::chat
