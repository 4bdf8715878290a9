// Conversations with scripted models: what is streamed, where answers end, what is kept from turn to turn.
#include "sluice/conversation.h"

#include <gmock/gmock.h>

#include "api/fixture.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using whole::Script;
using whole::ScriptedModel;
using whole::TinyLlama;
using whole::TinyVocabulary;

using namespace std::string_literals;

// ChatML for a model that thinks: earlier thoughts are cut away, and thinking can be switched off.
constexpr char kThinking[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split('</think>')[-1] if m.role == 'assistant' else m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}";

struct Heard {
  Answer answer;
  std::vector<std::string> pieces;  // of the answer, as streamed
  std::string streamed, streamed_reasoning;
};

class ConversationTest : public ApiTest {
 protected:
  static AnswerOptions Greedy() {
    AnswerOptions options;
    options.sampling.temperature = 0;
    return options;
  }

  static Heard Listen(Conversation& conversation, const AnswerOptions& options) {
    Heard heard;
    auto answer = conversation.Reply(options, [&](const chat::OutputEvent& event) {
      if (event.kind == chat::OutputEvent::Kind::kAnswer) {
        heard.pieces.push_back(event.text);
        heard.streamed += event.text;
      } else {
        heard.streamed_reasoning += event.text;
      }
    });
    EXPECT_TRUE(answer) << answer.error().message;
    if (answer) heard.answer = *std::move(answer);
    return heard;
  }

  // How many tokens the prompt for "hi" has.
  int64_t PromptTokens(std::string_view chat_template = whole::kChatMl) {
    const auto conversation = Converse(Open(ScriptedModel({}, "</s>", chat_template)));
    conversation->Add(chat::TextMessage("user", "hi"));
    return Listen(*conversation, Greedy()).answer.prompt_tokens;
  }

  // What a model whose tokens after the prompt are `script` answers to "hi".
  Heard Hear(const std::vector<int32_t>& script, const AnswerOptions& options = Greedy(),
             std::string_view chat_template = whole::kChatMl) {
    const auto conversation =
        Converse(Open(ScriptedModel(Script(PromptTokens(chat_template), script), "z", chat_template)));
    conversation->Add(chat::TextMessage("user", "hi"));
    return Listen(*conversation, options);
  }

  std::vector<int32_t> Tokens(std::string_view bytes, std::string_view end = "<|im_end|>") const {
    std::vector<int32_t> ids = vocabulary_.ByteIds(bytes);
    if (!end.empty()) ids.push_back(vocabulary_.Id(end));
    return ids;
  }

  const TinyVocabulary vocabulary_;
};

// P25.
TEST_F(ConversationTest, CharactersOfSeveralTokensAppearWhole) {
  const std::string text = "👩‍👩‍👧é漢 a\0b"s;
  const Heard heard = Hear(Tokens(text));
  EXPECT_EQ(heard.answer.generation.text, text);
  EXPECT_EQ(heard.streamed, text);
  EXPECT_GT(heard.pieces.size(), 5u);
  for (const std::string& piece : heard.pieces) EXPECT_TRUE(text::IsValidUtf8(piece)) << piece;
  EXPECT_EQ(heard.answer.generation.finish, session::FinishReason::kEndOfTurn);
}

// P26.
TEST_F(ConversationTest, AnAnswerThatEndsInsideACharacterGetsOneReplacement) {
  for (const std::string cut : {"ok \xf0", "ok \xf0\x9f", "ok \xf0\x9f\x98"}) {
    AnswerOptions options = Greedy();
    options.max_tokens = static_cast<int64_t>(cut.size());
    const Heard heard = Hear(Tokens("ok \xf0\x9f\x98\x80 and more"), options);
    EXPECT_EQ(heard.streamed, "ok \uFFFD");
    EXPECT_EQ(heard.answer.generation.text, heard.streamed);
    EXPECT_EQ(heard.answer.generation.finish, session::FinishReason::kMaxTokens);
  }
  EXPECT_EQ(Hear(Tokens("\x80\xff!")).streamed, "\uFFFD\uFFFD!");
}

TEST_F(ConversationTest, StopStringsAcrossTokensAreNeverShown) {
  AnswerOptions options = Greedy();
  options.stop = {"STOP", "漢"};
  const Heard heard = Hear(Tokens("one ST two STO STOP three"), options);
  EXPECT_EQ(heard.streamed, "one ST two STO ");
  EXPECT_EQ(heard.answer.generation.text, heard.streamed);
  EXPECT_EQ(heard.answer.generation.finish, session::FinishReason::kStopString);
  EXPECT_EQ(Hear(Tokens("a漢b"), options).streamed, "a");
  // Begun and never finished: nothing is lost.
  EXPECT_EQ(Hear(Tokens("to the STO"), options).streamed, "to the STO");
  // At the very beginning: nothing but the stop.
  EXPECT_EQ(Hear(Tokens("STOP"), options).streamed, "");
}

TEST_F(ConversationTest, AnEmptyStopStringStopsNothing) {
  AnswerOptions options = Greedy();
  options.stop = {""};
  EXPECT_EQ(Hear(Tokens("abc"), options).streamed, "abc");
}

// "漢" ends in the byte that this begins with: holding it back would cut the character.
TEST_F(ConversationTest, AStopStringOfHalfCharactersIsRefused) {
  const auto conversation = Converse(Open(ScriptedModel({})));
  conversation->Add(chat::TextMessage("user", "hi"));
  AnswerOptions options = Greedy();
  options.stop = {"\xa2!"};
  const auto answer = conversation->Reply(options, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ConversationTest, EveryEndOfGenerationTokenEndsAndIsNotShown) {
  for (const char* end : {"</s>", "<|im_end|>", "<|eot_id|>"}) {
    const Heard heard = Hear(Tokens("yes", end));
    EXPECT_EQ(heard.streamed, "yes") << end;
    EXPECT_EQ(heard.answer.generation.tokens, 4) << end;
    EXPECT_EQ(heard.answer.generation.finish, session::FinishReason::kEndOfTurn) << end;
  }
}

TEST_F(ConversationTest, IgnoredEndsAreNotShownEither) {
  AnswerOptions options = Greedy();
  options.ignore_end_of_turn = true;
  options.max_tokens = 8;
  std::vector<int32_t> script = Tokens("yes");
  for (const int32_t id : Tokens("no")) script.push_back(id);
  const Heard heard = Hear(script, options);
  EXPECT_EQ(heard.streamed, "yesnoz");
  EXPECT_EQ(heard.answer.generation.finish, session::FinishReason::kMaxTokens);
}

TEST_F(ConversationTest, AnAnswerThatSaysNothing) {
  const Heard heard = Hear(Tokens(""));
  EXPECT_EQ(heard.answer.generation.text, "");
  EXPECT_EQ(heard.answer.generation.tokens, 1);
  EXPECT_GE(heard.answer.decode_tokens_per_second(), 0);
}

TEST_F(ConversationTest, ThoughtsAreKeptApart) {
  const Heard heard = Hear([this] {
    std::vector<int32_t> script{vocabulary_.Id("<think>")};
    for (const int32_t id : vocabulary_.ByteIds("hmm")) script.push_back(id);
    script.push_back(vocabulary_.Id("</think>"));
    for (const int32_t id : Tokens("yes")) script.push_back(id);
    return script;
  }(), Greedy(), kThinking);
  EXPECT_EQ(heard.streamed, "yes");
  EXPECT_EQ(heard.streamed_reasoning, "hmm");
  EXPECT_EQ(heard.answer.generation.reasoning, "hmm");
}

// The model would think for ever; the budget puts the closing tag into its mouth.
TEST_F(ConversationTest, ASpentThinkBudgetClosesTheThought) {
  std::vector<int32_t> script{vocabulary_.Id("<think>")};
  for (const int32_t id : vocabulary_.ByteIds(std::string(100, 'h'))) script.push_back(id);
  AnswerOptions options = Greedy();
  options.thinking = chat::Thinking::kOn;
  options.think_budget = 5;
  options.max_tokens = 40;
  const Heard heard = Hear(script, options, kThinking);
  EXPECT_THAT(heard.answer.generation.reasoning.size(), testing::AllOf(testing::Ge(4u), testing::Le(7u)));
  EXPECT_EQ(heard.streamed_reasoning, heard.answer.generation.reasoning);
  EXPECT_GT(heard.streamed.size(), 10u) << "what follows is the answer";
  EXPECT_THAT(heard.streamed, Not(HasSubstr("think>")));
}

TEST_F(ConversationTest, TheSecondTurnReadsOnlyWhatIsNew) {
  const auto conversation = Converse(Open(TinyLlama(2048)));
  AnswerOptions options = Greedy();
  options.max_tokens = 6;
  int64_t before = 0;
  for (int turn = 0; turn < 20; ++turn) {
    conversation->Add(chat::TextMessage("user", "go on"));
    const Heard heard = Listen(*conversation, options);
    EXPECT_GE(heard.answer.cached_tokens, before) << turn;
    EXPECT_GT(heard.answer.prompt_tokens, heard.answer.cached_tokens);
    before = heard.answer.prompt_tokens;
    EXPECT_LE(conversation->held_tokens(), heard.answer.prompt_tokens + 6);
  }
  EXPECT_EQ(conversation->messages().size(), 40u);
}

TEST_F(ConversationTest, WhatWasKeptChangesNothing) {
  const auto model = Open(TinyLlama(2048));
  AnswerOptions options = Greedy();
  options.max_tokens = 6;
  const auto kept = Converse(model);
  kept->Add(chat::TextMessage("user", "one"));
  Listen(*kept, options);
  kept->Add(chat::TextMessage("user", "two"));
  const Heard second = Listen(*kept, options);
  EXPECT_GT(second.answer.cached_tokens, 0);

  const auto fresh = Converse(model);
  std::vector<chat::Message> messages = kept->messages();
  messages.pop_back();
  fresh->SetMessages(messages);
  EXPECT_EQ(Listen(*fresh, options).answer.generation.text, second.answer.generation.text);
}

// P36: one below, at and above the context.
TEST_F(ConversationTest, PromptsAtTheEdgeOfTheContext) {
  const auto model = Open(TinyLlama());
  const auto complete = [&](int64_t prompt, int64_t max_tokens) {
    const auto conversation = Converse(model, {.context_length = 32});
    AnswerOptions options = Greedy();
    options.ignore_end_of_turn = true;
    options.max_tokens = max_tokens;
    return conversation->CompleteIds(std::vector<TokenId>(static_cast<size_t>(prompt), 10), options, {});
  };
  const auto below = complete(31, 0);
  ASSERT_TRUE(below);
  EXPECT_EQ(below->generation.tokens, 1);
  EXPECT_EQ(session::Name(below->generation.finish), "length");
  for (const int64_t prompt : {32, 33, 320}) {
    const auto full = complete(prompt, 0);
    ASSERT_FALSE(full) << prompt;
    EXPECT_EQ(full.error().code, ErrorCode::kDoesNotFit);
    EXPECT_THAT(full.error().message, AllOf(HasSubstr(std::to_string(prompt) + " tokens"), HasSubstr("holds 32")));
  }
  EXPECT_FALSE(complete(0, 0));
  const auto endless = complete(10, INT64_MAX);
  ASSERT_TRUE(endless);
  EXPECT_EQ(endless->generation.finish, session::FinishReason::kContextFull);
  EXPECT_EQ(endless->generation.tokens, 32 - 10 + 1);
}

TEST_F(ConversationTest, ContextsThatCannotBeAreRefused) {
  const auto model = Open(TinyLlama());
  for (const int64_t context : {int64_t{-1}, INT64_MAX, int64_t{1} << 40}) {
    const auto made = Conversation::Create(*engine_, model, {.context_length = context});
    ASSERT_FALSE(made) << context;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument) << made.error().message;
  }
  EXPECT_FALSE(Conversation::Create(*engine_, model, {.batch = 0}));
  EXPECT_TRUE(Conversation::Create(*engine_, model, {.batch = INT64_MAX}));
}

// Reading past the table of learned positions would read past the tensor.
TEST_F(ConversationTest, LearnedPositionsBoundTheContext) {
  const auto model = Open(ScriptedModel({}, "z", whole::kChatMl, 64));
  const auto made = Conversation::Create(*engine_, model, {.context_length = 65});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, AllOf(HasSubstr("65"), HasSubstr("64 positions")));
  EXPECT_TRUE(Conversation::Create(*engine_, model, {.context_length = 64}));
}

TEST_F(ConversationTest, ABudgetTooSmallForTheContextNamesOneThatFits) {
  const auto engine = MakeEngine({.threads = 1, .memory_bytes = 14 * kMiB});
  const auto model = Model::Open(*engine, folder_.Write("model.gguf", TinyLlama(100'000).BuildString()));
  ASSERT_TRUE(model) << model.error().message;
  const auto made = Conversation::Create(*engine, *model, {.context_length = 100'000});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(made.error().message, AllOf(HasSubstr("100000 tokens does not fit"), HasSubstr("14.0 MiB"),
                                          HasSubstr("it takes a budget of"), HasSubstr("or a context of")));
  // Asked for nothing, it takes what fits.
  const auto fitted = Conversation::Create(*engine, *model, {});
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_LE(engine->context().ledger->Snapshot().total_bytes(), 14 * kMiB);
}

TEST_F(ConversationTest, StoppingWhileThePromptIsReadKeepsWhatWasRead) {
  const auto conversation = Converse(Open(TinyLlama(512)), {.batch = 16});
  const std::vector<TokenId> ids(100, 10);
  AnswerOptions options = Greedy();
  options.max_tokens = 1;
  options.progress = [](int64_t done, int64_t) { return done < 32; };
  const auto stopped = conversation->CompleteIds(ids, options, {});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(conversation->held_tokens(), 32);
  options.progress = {};
  const auto done = conversation->CompleteIds(ids, options, {});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->cached_tokens, 32);
}

// A batch of a big model takes seconds: it is left in the middle, and nothing of it stays.
TEST_F(ConversationTest, ABatchUnderWayCanBeStopped) {
  const auto conversation = Converse(Open(TinyLlama(512)));
  session::Session& session = conversation->session();
  const std::vector<TokenId> ids(100, 10);
  int calls = 0;
  const auto stopped = session.Read(ids, [&](int64_t, int64_t) { return ++calls < 4; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(session.tokens().size(), 0u);
  ASSERT_TRUE(session.Read(ids));
  const std::vector<float> after(session.logits().begin(), session.logits().end());
  session.Truncate(0);
  ASSERT_TRUE(session.Read(ids));
  EXPECT_TRUE(std::ranges::equal(after, session.logits()));
}

TEST_F(ConversationTest, AnInterruptEndsTheAnswerWithWhatThereIs) {
  std::atomic<bool> interrupt{false};
  const auto conversation = Converse(Open(ScriptedModel({})));
  conversation->Add(chat::TextMessage("user", "hi"));
  AnswerOptions options = Greedy();
  options.interrupt = &interrupt;
  int64_t pieces = 0;
  const auto answer = conversation->Reply(options, [&](const chat::OutputEvent&) { interrupt = ++pieces == 5; });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->generation.finish, session::FinishReason::kInterrupted);
  EXPECT_EQ(answer->generation.text, "zzzzz");
  EXPECT_EQ(conversation->messages().back().Text(), "zzzzz");
}

// The sampler sees no token it may draw.
TEST_F(ConversationTest, WithEveryTokenForbiddenTheAnswerIsEmpty) {
  AnswerOptions options = Greedy();
  for (int64_t id = 0; id < static_cast<int64_t>(vocabulary_.tokens.size()); ++id)
    options.sampling.logit_bias.push_back({id, -std::numeric_limits<double>::infinity()});
  const Heard heard = Hear(Tokens("abc"), options);
  EXPECT_EQ(heard.answer.generation.text, "");
}

TEST_F(ConversationTest, AModelOfNaNsAnswersNothing) {
  whole::ModelParts parts = TinyLlama();
  std::ranges::fill(parts.At("output_norm.weight").data, std::byte{0xff});
  const auto conversation = Converse(Open(parts));
  conversation->Add(chat::TextMessage("user", "hi"));
  const Heard heard = Listen(*conversation, {});
  EXPECT_EQ(heard.answer.generation.text, "");
}

}  // namespace
}  // namespace sluice
