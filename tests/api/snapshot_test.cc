// Snapshots: what is restored goes on with the same bits and reads nothing again; what does not match or is
// broken is refused with the reason, and leaves nothing behind.
#include <cstring>
#include <fstream>

#include "api/sessions.h"
#include "base/hash.h"

namespace sluice {
namespace {

using kv::Overflow;
using session::Session;
using session::SessionOptions;
using whole::TinyGemma;
using whole::TinyLlama;

class SnapshotTest : public TinySessions {
 protected:
  const std::string path_ = folder_ / "state";

  std::string Bytes() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  Status Load(Session& session) { return session.Load(path_, &sampler_); }

  // What is saved after `length` tokens goes on elsewhere as here.
  void RoundTrip(const SessionOptions& options, int64_t length) {
    const auto session = Make(options), other = Make(options);
    const std::vector<TokenId> ids = SomeIds(length);
    ASSERT_TRUE(session->Read(ids));
    ASSERT_TRUE(session->Save(path_, nullptr));
    ASSERT_TRUE(other->Read(SomeIds(50, 9)));
    const Status loaded = Load(*other);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(*other->Read(ids), length) << "the prompt was read again";
    EXPECT_EQ(LogitsOf(*other), LogitsOf(*session));
    for (const TokenId id : SomeIds(150, 4)) {
      ASSERT_TRUE(session->Advance(id));
      ASSERT_TRUE(other->Advance(id));
      ASSERT_EQ(LogitsOf(*other), LogitsOf(*session));
    }
  }

  std::optional<sample::SamplerState> sampler_;
};

TEST_F(SnapshotTest, GoesOnWithTheSameBits) {
  model_ = Open(TinyLlama(256));
  for (const kv::KvType type : {kv::KvType::kF16, kv::KvType::kQ4_0}) {
    RoundTrip({.kv = {.context_length = 512, .k_type = type, .v_type = type, .batch = 64}}, 100);
    for (const Overflow overflow : {Overflow::kWindow, Overflow::kHeavy}) {
      for (const int64_t length : {1, 200, 256, 1000})
        RoundTrip({.kv = {.context_length = 256, .k_type = type, .v_type = type, .batch = 64, .overflow = overflow}}, length);
    }
  }
  model_ = Open(TinyGemma(100));
  RoundTrip({.kv = {.context_length = 2048, .batch = 64}}, 700);
}

TEST_F(SnapshotTest, AnEmptySessionToo) {
  model_ = Open(TinyLlama(256));
  const auto session = Make({.kv = {.context_length = 256}});
  ASSERT_TRUE(session->Save(path_, nullptr));
  ASSERT_TRUE(session->Read(SomeIds(10)));
  ASSERT_TRUE(Load(*session));
  EXPECT_TRUE(session->tokens().empty());
  EXPECT_FALSE(sampler_);
}

TEST_F(SnapshotTest, TheSamplerComesBack) {
  model_ = Open(TinyLlama(256));
  const auto session = Make({.kv = {.context_length = 256}});
  ASSERT_TRUE(session->Read(SomeIds(10)));
  const sample::SamplerState state{
      .random = {1, 2, 3, 4}, .history = {5, 6}, .dry = {.run_length = 7, .breaker_progress = {8, 9}}};
  ASSERT_TRUE(session->Save(path_, &state));
  ASSERT_TRUE(Load(*session));
  ASSERT_TRUE(sampler_);
  EXPECT_EQ(sampler_->random, state.random);
  EXPECT_EQ(sampler_->history, state.history);
  EXPECT_EQ(sampler_->dry.run_length, 7u);
  EXPECT_EQ(sampler_->dry.breaker_progress, state.dry.breaker_progress);
}

TEST_F(SnapshotTest, WhatDoesNotMatchIsRefusedWithTheReason) {
  model_ = Open(TinyLlama(256));
  const SessionOptions options{.kv = {.context_length = 256, .batch = 64, .overflow = Overflow::kWindow}};
  const auto session = Make(options);
  ASSERT_TRUE(session->Read(SomeIds(300)));
  ASSERT_TRUE(session->Save(path_, nullptr));
  const auto refusal = [&](SessionOptions other) {
    const auto made = Make(other);
    EXPECT_TRUE(made->Read(SomeIds(20)));
    const Status loaded = Load(*made);
    EXPECT_TRUE(made->tokens().empty());
    EXPECT_EQ(*made->Read(SomeIds(20)), 0) << "and works on";
    return loaded ? "it was taken" : loaded.error().message;
  };
  SessionOptions other = options;
  other.kv.k_type = kv::KvType::kQ8_0;
  EXPECT_THAT(refusal(other), testing::HasSubstr("types"));
  other = options;
  other.kv.sinks = 5;
  EXPECT_THAT(refusal(other), testing::HasSubstr("sinks"));
  other = options;
  other.kv.context_length = 300;
  EXPECT_THAT(refusal(other), testing::HasSubstr("context: 256, not 300"));
  EXPECT_THAT(refusal({.kv = {.context_length = 1024}}), testing::HasSubstr("--overflow"));
  // One number of one tensor is enough.
  auto parts = TinyLlama(256);
  parts.At("blk.1.ffn_down.weight").data[5] ^= std::byte{1};
  model_ = Open(parts);
  EXPECT_THAT(refusal(options), testing::HasSubstr("another model"));
}

TEST_F(SnapshotTest, BrokenFilesAreRefused) {
  model_ = Open(TinyLlama(256));
  const SessionOptions options{.kv = {.context_length = 256, .batch = 64, .overflow = Overflow::kHeavy}};
  const auto session = Make(options);
  ASSERT_TRUE(session->Read(SomeIds(300)));
  ASSERT_TRUE(session->Save(path_, nullptr));
  const std::string sound = Bytes();
  ASSERT_TRUE(Load(*session));
  for (size_t at = 0; at < sound.size(); at += at < 400 ? 1 : 4999) {
    std::string broken = sound;
    broken[at] = static_cast<char>(broken[at] ^ 0x41);
    Write(broken);
    const Status loaded = Load(*session);
    ASSERT_FALSE(loaded) << "byte " << at;
    ASSERT_TRUE(session->tokens().empty());
    // With a checksum that fits, it is taken or refused, but harms nobody.
    const uint64_t checksum = HashBytes(std::as_bytes(std::span(broken).first(broken.size() - 8)));
    std::memcpy(broken.data() + broken.size() - 8, &checksum, 8);
    Write(broken);
    if (Load(*session)) {
      ASSERT_TRUE(session->ReadAll(SomeIds(200), [](size_t, std::span<const float>) {}));
    }
  }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, sound.size() - 1}) {
    Write(sound.substr(0, size));
    EXPECT_FALSE(Load(*session)) << size;
  }
  Write(sound + "x");
  EXPECT_FALSE(Load(*session));
  std::filesystem::remove(path_);
  EXPECT_EQ(Load(*session).error().code, ErrorCode::kNotFound);
  Write(sound);
  EXPECT_TRUE(Load(*session));
}

}  // namespace
}  // namespace sluice
