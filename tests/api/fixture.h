// What a test of the public API needs: an engine, a folder, and models made for the occasion.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "base/units.h"
#include "platform/temp_folder.h"
#include "sluice/conversation.h"
#include "sluice/engine.h"
#include "sluice/model.h"
#include "whole/tiny_model.h"

namespace sluice {

inline std::unique_ptr<Engine> MakeEngine(EngineOptions options = {.threads = 1}) {
  auto engine = Engine::Create(options);
  SLUICE_CHECK(engine.has_value());
  return *std::move(engine);
}

class ApiTest : public testing::Test {
 protected:
  Result<std::shared_ptr<const Model>> TryOpen(const whole::ModelParts& parts, const ModelOptions& options = {}) {
    return Model::Open(*engine_, folder_.Write("model.gguf", parts.BuildString()), options);
  }
  // Why the model was refused, in words.
  std::string Refusal(const whole::ModelParts& parts, const ModelOptions& options = {}) {
    const auto model = TryOpen(parts, options);
    return model ? "it was loaded" : model.error().message;
  }
  std::shared_ptr<const Model> Open(const whole::ModelParts& parts) {
    auto model = TryOpen(parts);
    EXPECT_TRUE(model) << model.error().message;
    return model ? *model : nullptr;
  }
  std::unique_ptr<Conversation> Converse(std::shared_ptr<const Model> model, const ConversationOptions& options = {}) {
    auto conversation = Conversation::Create(*engine_, std::move(model), options);
    EXPECT_TRUE(conversation) << conversation.error().message;
    return conversation ? *std::move(conversation) : nullptr;
  }

  const TempFolder folder_;
  std::unique_ptr<Engine> engine_ = MakeEngine();
};

}  // namespace sluice
