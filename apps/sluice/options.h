// Flags that several subcommands share, under their own names and those that users of llama.cpp know.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/conversation.h"
#include "sluice/engine.h"
#include "sluice/model.h"
#include "sluice/result.h"
#include "sluice/trace.h"

namespace sluice::app {

// Which model, and how to run it.
struct ModelFlags {
  std::string model;  // a path or a name
  int threads = 0;
  std::string kernels;
  std::string memory;     // a size; empty: the default budget
  std::string residency;  // "" or "auto": the plan decides
  std::string ring;       // a size
  std::optional<int> lru_blocks;
  std::string io;  // "", "auto", "uring" or "pread"
  bool strict = false;
  int64_t context_length = 0;
  std::optional<int64_t> batch;
  std::string kv, kv_k, kv_v;  // empty: the plan decides
  std::vector<std::string> overrides;
  std::string overflow;  // empty: each command's own
  int64_t window = 0, sinks = 4;
  std::string fusion;  // empty: all

  void AddTo(CLI::App& command);
  Result<EngineOptions> Engine() const;
  // With what becomes of a full context where no flag says.
  Result<ConversationOptions> Conversation(kv::Overflow overflow = kv::Overflow::kStop) const;
  // All of what the flags say of a model that is to be used for `conversation`.
  Result<ModelOptions> Model(const ConversationOptions& conversation) const;
};

// How tokens are drawn; what is not given comes from the model's file or Sluice's defaults.
struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p, typical_p;
  std::optional<int64_t> top_k, repeat_last_n, dry_allowed_length, dry_penalty_last_n;
  std::optional<double> repeat_penalty, presence_penalty, frequency_penalty, dry_multiplier, dry_base;
  std::vector<std::string> logit_bias;  // "ID+1.5", "ID-inf"
  std::optional<uint64_t> seed;

  void AddTo(CLI::App& command);
  // The flags over `defaults`. Errors: kInvalidArgument for a logit bias that can't be read.
  Result<sample::SamplerOptions> Over(sample::SamplerOptions defaults) const;
};

// What is shown and written down of a run.
struct ObserveFlags {
  bool stats = false;
  std::string trace;  // a file; empty: none

  void AddTo(CLI::App& command);
};

// How an answer is asked for.
struct AnswerFlags {
  int64_t max_tokens = 0;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::string think;  // "", "on", "off" or a number of tokens

  void AddTo(CLI::App& command);
  Result<AnswerOptions> Answer() const;
};

// Sets thinking and think_budget from "on", "off" or a number of tokens. Errors: kInvalidArgument, naming
// `flag`.
Status ParseThinking(std::string_view flag, const std::string& value, AnswerOptions* options);

// The model of `flags` on a new engine, with room for one conversation at a time. Warnings and what the plan
// had to give up are shown on stderr unless `quiet`. `reserve_bytes` of the budget are left for others. A
// trace's file is made before the model is looked at; passes are written down in it from BeginTrace on.
struct OpenedModel {
  std::unique_ptr<sluice::Engine> engine;
  std::shared_ptr<const sluice::Model> model;
  std::unique_ptr<Trace> trace;  // null for none

  void BeginTrace(sluice::Conversation& conversation) const {
    if (trace != nullptr) trace->Begin(*model, conversation.session());
  }
  Status FinishTrace() const { return trace == nullptr ? Status() : trace->Finish(); }
};
struct OpenOptions {
  bool quiet = false;
  uint64_t reserve_bytes = 0;
  std::string trace;  // a file; empty: none
};
Result<OpenedModel> OpenModel(const ModelFlags& flags, const ConversationOptions& conversation, const OpenOptions& options);

// A number from text such as "-inf" or "1.5".
Result<double> ParseNumber(const std::string& text);

}  // namespace sluice::app
