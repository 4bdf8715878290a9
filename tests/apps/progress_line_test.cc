#include <gmock/gmock.h>

#include "platform/temp_folder.h"
#include "sluice/loading_progress.h"
#include "sluice/output.h"
#include "whole/tiny_model.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

// The time that a line is told, moved by hand. Standard error is no terminal here.
ProgressLine::TimePoint now;
ProgressLine::TimePoint Now() { return now; }

class ProgressLineTest : public testing::Test {
 protected:
  std::string Show(ProgressLine& line, double done, double total) {
    testing::internal::CaptureStderr();
    line.Show(done, total);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(ProgressLineTest, SaysPercentAndTimeLeftNowAndThen) {
  ProgressLine line("loading", 0, &Now);
  now += 9s;
  EXPECT_FALSE(line.due());
  EXPECT_THAT(Show(line, 10, 100), IsEmpty());
  now += 1s;
  EXPECT_TRUE(line.due());
  EXPECT_EQ(Show(line, 20, 100), "loading 20 %, 40 s left\n");
  now += 5s;
  EXPECT_THAT(Show(line, 40, 100), IsEmpty());
  now += 5s;
  EXPECT_EQ(Show(line, 80, 100), "loading 80 %, 5 s left\n");
}

TEST_F(ProgressLineTest, ShortWorkShowsNothing) {
  ProgressLine line("loading", 0, &Now);
  now += 400ms;
  EXPECT_FALSE(line.due());
  EXPECT_THAT(Show(line, 100, 100), IsEmpty());
}

TEST_F(ProgressLineTest, WhatWasDoneBeforeSaysNothingOfTheTimeLeft) {
  ProgressLine line("reading", 500, &Now);
  now += 10s;
  EXPECT_THAT(Show(line, 500, 2000), IsEmpty());
  EXPECT_EQ(Show(line, 1000, 2000), "reading 50 %, 20 s left\n");
}

// Ten seconds between two looks: every line that could be shown is.
ProgressLine::TimePoint Slowly() { return now += 10s; }

TEST_F(ProgressLineTest, LoadingComesBeforeReading) {
  const TempFolder folder;
  const auto engine = *Engine::Create({.threads = 1});
  const auto model = *Model::Open(*engine, folder.Write("model.gguf", whole::TinyLlama().BuildString()));
  const auto conversation = *Conversation::Create(*engine, model, {.context_length = 256, .batch = 8});
  const auto answer = [&] {
    LoadingProgress progress(*model, *conversation, "reading the prompt", &Slowly);
    AnswerOptions options{.max_tokens = 1};
    options.progress = [&](int64_t done, int64_t total) {
      progress.Show(done, total);
      return true;
    };
    testing::internal::CaptureStderr();
    EXPECT_TRUE(conversation->Complete("a prompt that takes several passes", options, {}));
    return testing::internal::GetCapturedStderr();
  };
  const std::string first = answer();
  const size_t reading = first.find("reading the prompt ");
  EXPECT_EQ(first.find("loading "), 0u) << first;
  ASSERT_NE(reading, std::string::npos) << first;
  EXPECT_GT(first.rfind("reading the prompt "), first.rfind("loading ")) << first;
  EXPECT_EQ(first.find("loading ", reading), std::string::npos)
      << "output weights come with the last pass: " << first;
  conversation->session().Truncate(0);
  EXPECT_THAT(answer(), testing::StartsWith("reading the prompt "));
}

}  // namespace
}  // namespace sluice::app
