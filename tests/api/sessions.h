// Sessions over tiny models, and what they say after some ids.
#pragma once

#include <vector>

#include "api/fixture.h"
#include "session/session.h"

namespace sluice {

// Ids that wander through the tiny vocabulary; other seeds, other ids.
inline std::vector<TokenId> SomeIds(int64_t count, int64_t seed = 0) {
  std::vector<TokenId> ids{1};
  for (int64_t i = 1; i < count; ++i)
    ids.push_back(static_cast<TokenId>((i * 37 + i * i % 11 + seed * 53) % 280 + 3));
  return ids;
}

class TinySessions : public ApiTest {
 protected:
  std::unique_ptr<session::Session> Make(const session::SessionOptions& options) {
    auto session = session::Session::Create(engine_->context(), model_->parts(), options);
    EXPECT_TRUE(session) << session.error().message;
    return session ? *std::move(session) : nullptr;
  }
  static std::vector<float> LogitsOf(const session::Session& session) {
    return {session.logits().begin(), session.logits().end()};
  }
  static std::vector<float> After(session::Session& session, std::span<const TokenId> ids) {
    const auto read = session.Read(ids);
    EXPECT_TRUE(read) << read.error().message;
    return LogitsOf(session);
  }

  std::shared_ptr<const Model> model_;
};

}  // namespace sluice
