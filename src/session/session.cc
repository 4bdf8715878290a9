#include "session/session.h"

#include <algorithm>

#include "base/check.h"
#include "model/facts.h"

namespace sluice::session {

namespace {

// More than any model reads; sizes of caches stay far from 64 bits.
constexpr int64_t kMaxContext = int64_t{1} << 26;
// Where the context may overflow: some days of reading without a break, and 16 MiB of tokens at the end.
constexpr int64_t kMostEndlessTokens = int64_t{1} << 22;

model::ForwardOptions ForwardOptionsFor(const SessionOptions& options) {
  return {
      .max_batch = options.kv.batch, .context_length = options.kv.context_length, .fusion = options.fusion};
}

}  // namespace

Session::Session(const model::Model& model, const SessionOptions& options)
    : model_(model),
      options_(options),
      most_tokens_(static_cast<size_t>(options.kv.overflow == kv::Overflow::kStop
                                           ? options.kv.context_length
                                           : std::max(kMostEndlessTokens, options.kv.context_length))) {}

uint64_t Session::Bytes(const model::Model& model, const SessionOptions& options, int workers) {
  return kv::CacheBytes(model::CacheConfigFor(model.config(), options.kv)) +
         model::Forward::ActivationBytes(model.config(), model.weights(), ForwardOptionsFor(options),
                                         workers);
}

Status Session::CheckOverflow(const model::Model& model, const SessionOptions& options) {
  if (options.kv.overflow == kv::Overflow::kStop) return {};
  const model::Config& config = model.config();
  if (const weights::Matrix& positions = model.weights().position_embedding; positions) {
    return Fail(ErrorCode::kUnsupported,
                "this model has learned its {} positions one by one and knows none beyond them: its context "
                "can't overflow",
                positions.rows);
  }
  const bool heavy = options.kv.overflow == kv::Overflow::kHeavy;
  if (heavy &&
      std::ranges::any_of(config.layers, [](const model::LayerConfig& layer) { return layer.window > 0; })) {
    return Fail(ErrorCode::kUnsupported,
                "this model has layers with a sliding window, which keep no more than that: heavy tokens "
                "can't be kept");
  }
  if (heavy && config.alibi_max_bias > 0) {
    return Fail(ErrorCode::kUnsupported,
                "this model weighs tokens by their distance (ALiBi): heavy tokens can't be kept");
  }
  if (heavy && options.kv.context_length < kv::HeavyShape::kSmallestContext) {
    return Fail(ErrorCode::kInvalidArgument,
                "a context of {} tokens is too short to keep heavy ones; it takes {}",
                options.kv.context_length, kv::HeavyShape::kSmallestContext);
  }
  const int64_t most_sinks = heavy ? options.kv.context_length / 4 / 32 * 32 : options.kv.context_length - 1;
  if (options.kv.sinks < 0 || options.kv.sinks > most_sinks) {
    return Fail(ErrorCode::kInvalidArgument, "{} sinks in a context of {} tokens; expected 0 to {}",
                options.kv.sinks, options.kv.context_length, most_sinks);
  }
  return {};
}

Result<std::unique_ptr<Session>> Session::Create(const runtime::Context& context, const model::Model& model,
                                                 const SessionOptions& options) {
  SLUICE_CHECK(options.kv.context_length > 0 && options.kv.batch > 0);
  if (options.kv.context_length > kMaxContext) {
    return Fail(ErrorCode::kInvalidArgument, "a context of {} tokens; expected at most {}",
                options.kv.context_length, kMaxContext);
  }
  // Learned positions end; rotated ones only get worse.
  if (const weights::Matrix& positions = model.weights().position_embedding;
      positions && options.kv.context_length > positions.rows) {
    return Fail(ErrorCode::kInvalidArgument, "a context of {} tokens, but this model knows only {} positions",
                options.kv.context_length, positions.rows);
  }
  SLUICE_TRY(CheckOverflow(model, options));
  std::unique_ptr<Session> session(new Session(model, options));
  SLUICE_TRY_ASSIGN(session->cache_,
                    kv::Cache::Create(model::CacheConfigFor(model.config(), options.kv), *context.ledger));
  session->sequence_ = std::make_unique<kv::Sequence>(*session->cache_);
  SLUICE_TRY_ASSIGN(session->forward_, model::Forward::Create(context, model.config(), model.weights(),
                                                              model.store(), ForwardOptionsFor(options)));
  session->tokens_.reserve(session->most_tokens_);
  session->checkpoint_logits_.reserve(static_cast<size_t>(model.config().vocab_size));
  session->logits_.reserve(static_cast<size_t>(model.config().vocab_size));
  session->rows_.reserve(static_cast<size_t>(options.kv.batch));
  return session;
}

Status Session::Run(std::span<const TokenId> ids, size_t logits_from, const model::LogitsSink& sink,
                    const model::GoOn& go_on) {
  if (tokens_.size() + ids.size() > most_tokens_) {
    return Fail(ErrorCode::kDoesNotFit,
                "the context is full: {} tokens are held and {} more were asked for, of at most {}",
                tokens_.size(), ids.size(), most_tokens_);
  }
  // What is being read goes before what might be come back to.
  if (checkpoint_ && !sequence_->HasPagesFor(static_cast<int64_t>(ids.size()))) checkpoint_.reset();
  rows_.clear();
  for (size_t i = 0; i < ids.size(); ++i) rows_.push_back({ids[i], sequence_.get(), i >= logits_from});
  SLUICE_TRY(forward_->Run(rows_, *cache_, sink, go_on));
  ++passes_;
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  return {};
}

Result<int64_t> Session::Read(std::span<const TokenId> ids, const ReadProgress& progress) {
  SLUICE_CHECK(!ids.empty());
  if (ids.size() > most_tokens_)
    return Fail(ErrorCode::kDoesNotFit, "the prompt has {} tokens and the context holds {}", ids.size(),
                most_tokens_);
  size_t kept = 0;
  while (kept < std::min(ids.size(), tokens_.size()) && ids[kept] == tokens_[kept]) ++kept;
  const bool have_logits = kept == ids.size() && kept == tokens_.size() && !logits_.empty();
  if (have_logits) return static_cast<int64_t>(kept);
  if (checkpoint_ && kept == ids.size() && checkpoint_->length() == static_cast<int64_t>(kept)) {
    // The same prompt once more.
    sequence_->Restore(*checkpoint_);
    tokens_.resize(kept);
    logits_ = checkpoint_logits_;
    return static_cast<int64_t>(kept);
  }
  kept = std::min(kept, ids.size() - 1);  // the last one is read again, for its logits
  kept = static_cast<size_t>(Truncate(static_cast<int64_t>(kept)));

  for (size_t first = kept; first < ids.size();) {
    const std::span<const TokenId> part = NextBatch(ids.subspan(first));
    const auto report = [&](size_t done) {
      return !progress || progress(static_cast<int64_t>(done), static_cast<int64_t>(ids.size()));
    };
    // Only what follows the whole prompt is asked for.
    const size_t logits_from = ids.size() - 1 - first;
    SLUICE_TRY(Run(part, logits_from, TakeLogits(), [&] {
      return report(first + static_cast<size_t>(forward_->pass_share() * static_cast<double>(part.size())));
    }));
    first += part.size();
    if (!report(first)) return Fail(ErrorCode::kInterrupted, "reading the prompt was stopped");
  }
  checkpoint_.reset();
  if (cache_->forgets()) TakeCheckpoint();
  return static_cast<int64_t>(kept);
}

std::span<const TokenId> Session::NextBatch(std::span<const TokenId> ids) const {
  const int64_t most = std::min(options_.kv.batch, sequence_->BatchRoom());
  return ids.first(std::min(ids.size(), static_cast<size_t>(most)));
}

void Session::TakeCheckpoint() {
  checkpoint_ = sequence_->Checkpoint();
  checkpoint_logits_ = logits_;
}

uint64_t Session::SeenBytes(int64_t length) const {
  uint64_t bytes = 0;
  const std::vector<kv::LayerShape>& layers = cache_->config().layers;
  for (int layer = 0; layer < static_cast<int>(layers.size()); ++layer) {
    const kv::Cache::View view = cache_->view(layer);
    int64_t seen = view.window > 0 ? std::min(length, view.window + view.sinks) : length;
    if (overflow() == kv::Overflow::kHeavy) seen = std::min(seen, context_length());
    bytes += static_cast<uint64_t>(seen) * static_cast<uint64_t>(layers[static_cast<size_t>(layer)].n_kv_heads) *
             (cache_->k_row_bytes(layer) + cache_->v_row_bytes(layer));
  }
  return bytes;
}

Status Session::Advance(TokenId id, const model::GoOn& go_on) {
  return Run({&id, 1}, 0, TakeLogits(), go_on);
}

model::LogitsSink Session::TakeLogits() {
  return [this](size_t, std::span<const float> logits) { logits_.assign(logits.begin(), logits.end()); };
}

Status Session::ReadAll(std::span<const TokenId> ids,
                        const std::function<void(size_t, std::span<const float>)>& sink) {
  for (size_t first = 0; first < ids.size();) {
    const std::span<const TokenId> part = NextBatch(ids.subspan(first));
    SLUICE_TRY(Run(part, 0, [&](size_t row, std::span<const float> logits) {
      sink(first + row, logits);
      if (first + row + 1 == ids.size()) logits_.assign(logits.begin(), logits.end());
    }));
    first += part.size();
  }
  return {};
}

int64_t Session::Truncate(int64_t length) {
  if (!sequence_->CanTruncate(length)) {
    const int64_t held = checkpoint_ ? std::min(length, checkpoint_->length()) : 0;
    if (held > 0 && checkpoint_->CanTruncate(held)) {
      sequence_->Restore(*checkpoint_);
      length = held;
    } else {
      length = 0;
    }
  }
  sequence_->Truncate(length);
  if (checkpoint_ && checkpoint_->length() > length) {
    // Other tokens are going to follow.
    if (checkpoint_->CanTruncate(length)) {
      checkpoint_->Truncate(length);
    } else {
      checkpoint_.reset();
    }
  }
  tokens_.resize(static_cast<size_t>(length));
  logits_.clear();
  return length;
}

}  // namespace sluice::session
