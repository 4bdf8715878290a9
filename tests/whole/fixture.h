// What a test of the whole program needs: a home, models in it, and short ways to run.
#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/program.h"
#include "whole/tiny_model.h"

namespace sluice::whole {

using app::testing::Ran;
using Arguments = std::vector<std::string>;

class ProgramTest : public testing::Test {
 protected:
  Ran Run(const Arguments& arguments, const std::string& input = "") {
    return app::testing::RunProgram(home_, arguments, input);
  }
  // `sluice run` with one thread, greedy, and its JSON object.
  nlohmann::json RunJson(const std::string& model, const Arguments& more, const std::string& input = "") {
    Arguments arguments{"run", model, "--json", "-t", "1", "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = Run(arguments, input);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    nlohmann::json json = nlohmann::json::parse(ran.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << ran.out;
    return json;
  }
  std::string Save(const ModelParts& parts, const std::string& name = "model.gguf") {
    return home_.Write(name, parts.BuildString());
  }
  // The path of a model that answers the prompt "hi" with these tokens.
  std::string SaveAnswer(const std::vector<int32_t>& answer) {
    const std::string silent = Save(ScriptedModel({}, "</s>"), "silent.gguf");
    const int64_t prompt_tokens = RunJson(silent, {"-p", "hi"}).value("prompt_tokens", int64_t{1});
    return Save(ScriptedModel(Script(prompt_tokens, answer)));
  }
  std::vector<int32_t> Tokens(std::string_view bytes) const {
    std::vector<int32_t> ids = vocabulary_.ByteIds(bytes);
    ids.push_back(vocabulary_.Id("<|im_end|>"));
    return ids;
  }

  const TempFolder home_;
  const TinyVocabulary vocabulary_;
};

}  // namespace sluice::whole
