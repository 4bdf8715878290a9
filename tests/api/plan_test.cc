// What the plan says before a byte is read is what the ledger shows afterwards.
#include <gmock/gmock.h>

#include "api/fixture.h"
#include "plan/planner.h"

namespace sluice {
namespace {

using memory::Account;
using testing::HasSubstr;

class PlanTest : public ApiTest {};

TEST_F(PlanTest, AccountsAreWhatTheLedgerThenShows) {
  for (const kv::KvType type : {kv::KvType::kF32, kv::KvType::kF16, kv::KvType::kQ8_0, kv::KvType::kQ4_0}) {
    for (const int64_t batch : {1, 7, 512}) {
      const ConversationOptions options{
          .context_length = 1000, .batch = batch, .k_type = type, .v_type = type};
      const auto engine = MakeEngine();
      const auto model =
          Model::Open(*engine, folder_.Write("model.gguf", whole::TinyLlama(1024).BuildString()),
                      {.conversation = options});
      ASSERT_TRUE(model) << model.error().message;
      const auto conversation = Conversation::Create(*engine, *model);
      ASSERT_TRUE(conversation) << conversation.error().message;
      const memory::LedgerSnapshot ledger = engine->context().ledger->Snapshot();
      const plan::Plan& plan = (*model)->plan();
      EXPECT_EQ((*conversation)->context_length(), 1000);
      for (size_t i = 0; i < memory::kAccountCount; ++i) {
        const auto account = static_cast<Account>(i);
        if (account == Account::kReserve) continue;
        EXPECT_GE(plan.bytes(account), ledger.used(account)) << memory::AccountName(account);
        EXPECT_LE(plan.bytes(account), ledger.used(account) + ledger.used(account) / 20 + 4096)
            << memory::AccountName(account);
      }
      EXPECT_GE(plan.total_bytes() - plan.unaccounted_bytes,
                ledger.total_bytes() - ledger.used(Account::kReserve));
    }
  }
}

TEST_F(PlanTest, ABudgetTooShortForWhatWasTypedNamesWhatFits) {
  const auto engine = MakeEngine({.threads = 1, .memory_bytes = 14 * kMiB});
  const auto model =
      Model::Open(*engine, folder_.Write("model.gguf", whole::TinyLlama(100'000).BuildString()),
                  {.conversation = {.context_length = 100'000}});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(model.error().message, AllOf(HasSubstr("100000 tokens"), HasSubstr("or a context of")));
  // Not typed, it is shortened, and the plan says so.
  const auto fitted = Model::Open(*engine, folder_ / "model.gguf");
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_LE((*fitted)->plan().total_bytes(), 14 * kMiB);
}

TEST_F(PlanTest, ASecondConversationHasToFitBesideTheFirst) {
  const std::string path = folder_.Write("model.gguf", whole::TinyLlama(8192).BuildString());
  const auto engine = MakeEngine({.threads = 1, .memory_bytes = 12 * kMiB});
  const auto model = Model::Open(*engine, path);
  ASSERT_TRUE(model) << model.error().message;
  std::vector<std::unique_ptr<Conversation>> conversations;
  for (;;) {
    auto next = Conversation::Create(*engine, *model);
    if (!next) {
      EXPECT_EQ(next.error().code, ErrorCode::kDoesNotFit);
      break;
    }
    conversations.push_back(*std::move(next));
    ASSERT_LT(conversations.size(), 100u);
  }
  EXPECT_GE(conversations.size(), 1u);
  EXPECT_LE(engine->context().ledger->Snapshot().total_bytes(), 12 * kMiB);
}

}  // namespace
}  // namespace sluice
