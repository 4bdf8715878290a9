#include "sluice/conversation_store.h"

#include <gmock/gmock.h>

#include "platform/temp_folder.h"

namespace sluice::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConversationStoreTest : public testing::Test {
 protected:
  Error LoadError(std::string_view contents) {
    folder_.Write("conversations/bad.json", contents);
    const auto loaded = store_.Load("bad");
    return loaded ? Error{} : loaded.error();
  }

  TempFolder folder_;
  ConversationStore store_{folder_ / "conversations"};
};

TEST_F(ConversationStoreTest, ComesBackAsItWas) {
  SavedConversation saved{"/models/m.gguf", {chat::TextMessage("system", "Be brief."), chat::TextMessage("user", "Grüße 👍 \"x\"\n")}};
  saved.messages.push_back(chat::TextMessage("assistant", "Hello."));
  saved.messages.back().reasoning = "They greet me.";
  ASSERT_TRUE(store_.Save("my talk", saved));
  const auto loaded = store_.Load("my talk");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->model, saved.model);
  EXPECT_EQ(loaded->messages, saved.messages);
}

TEST_F(ConversationStoreTest, OnlyTheOwnerMayLook) {
  ASSERT_TRUE(store_.Save("a", {}));
  EXPECT_EQ(std::filesystem::status(store_.folder()).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(ConversationStoreTest, ListsNewestFirst) {
  EXPECT_THAT(store_.List(), IsEmpty());
  const auto now = std::filesystem::file_time_type::clock::now();
  int age = 0;
  for (const char* name : {"new", "older", "oldest"}) {
    ASSERT_TRUE(store_.Save(name, {}));
    std::filesystem::last_write_time(store_.folder() + "/" + name + ".json", now - std::chrono::hours(age++));
  }
  folder_.Write("conversations/readme.txt", "");
  folder_.Write("conversations/\x1b[2J.json", "");
  EXPECT_THAT(store_.List(), ElementsAre("new", "older", "oldest"));
}

TEST_F(ConversationStoreTest, NamesStayInTheFolder) {
  for (const std::string name : {"", "../x", "a/b", ".hidden", "a\nb", "\x1b[2J"}) {
    EXPECT_EQ(store_.Save(name, {}).error().code, ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(store_.Load(name).error().code, ErrorCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(store_.Save(std::string(101, 'x'), {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(store_.Save("Gespräch 日本", {}));
}

TEST_F(ConversationStoreTest, UnknownNamesSuggestTheNearest) {
  ASSERT_TRUE(store_.Save("holiday", {}));
  const auto loaded = store_.Load("holyday");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(loaded.error().message, HasSubstr("Did you mean holiday?"));
}

TEST_F(ConversationStoreTest, CorruptFilesAreNamed) {
  const std::string head = R"({"format":"sluice-conversation","version":1,)";
  for (const std::string& contents : {std::string(""), std::string("[]"), std::string("{\"format\":"),
                                     std::string(R"({"format":"other","version":1,"messages":[]})"),
                                     std::string(R"({"format":"sluice-conversation","version":2,"messages":[]})"),
                                     head + R"("model":"m"})", head + R"("messages":3})",
                                     head + R"("messages":[{"role":7}]})", head + "\"messages\":[\"\xff\"]}",
                                     head + "\"messages\":" + std::string(200'000, '[')}) {
    const Error error = LoadError(contents);
    EXPECT_EQ(error.code, ErrorCode::kCorrupt) << contents.substr(0, 80);
    EXPECT_THAT(error.message, HasSubstr("bad.json"));
  }
}

TEST_F(ConversationStoreTest, DeepNestingIsRefused) {
  const std::string deep = R"({"format":"sluice-conversation","version":1,"messages":)" + std::string(100'000, '[') +
                           std::string(100'000, ']') + "}";
  EXPECT_THAT(LoadError(deep).message, HasSubstr("nested"));
}

}  // namespace
}  // namespace sluice::app
