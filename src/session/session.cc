#include "session/session.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::session {

namespace {

// More than any model reads; sizes of caches stay far from 64 bits.
constexpr int64_t kMaxContext = int64_t{1} << 26;

kv::CacheConfig CacheConfigFor(const model::Config& config, const SessionOptions& options) {
  kv::CacheConfig cache{.k_type = options.k_type,
                        .v_type = options.v_type,
                        .rotate = options.rotate,
                        .context_length = options.context_length};
  for (const model::LayerConfig& layer : config.layers)
    cache.layers.push_back({layer.n_kv_heads, config.k_dim, config.v_dim});
  return cache;
}

}  // namespace

uint64_t Session::Bytes(const model::Model& model, const SessionOptions& options, int workers) {
  return kv::CacheBytes(CacheConfigFor(model.config(), options)) +
         model::Forward::ActivationBytes(model.config(), model.weights(), options.batch, workers);
}

Result<std::unique_ptr<Session>> Session::Create(const runtime::Context& context, const model::Model& model,
                                                 const SessionOptions& options) {
  SLUICE_CHECK(options.context_length > 0 && options.batch > 0);
  if (options.context_length > kMaxContext) {
    return Fail(ErrorCode::kInvalidArgument, "a context of {} tokens; expected at most {}", options.context_length,
                kMaxContext);
  }
  // Learned positions end; rotated ones only get worse.
  if (const tensor::TensorView& positions = model.weights().position_embedding;
      positions && options.context_length > positions.rows) {
    return Fail(ErrorCode::kInvalidArgument, "a context of {} tokens, but this model knows only {} positions",
                options.context_length, positions.rows);
  }
  std::unique_ptr<Session> session(new Session(model, options));
  SLUICE_TRY_ASSIGN(session->cache_, kv::Cache::Create(CacheConfigFor(model.config(), options), *context.ledger));
  session->sequence_ = std::make_unique<kv::Sequence>(*session->cache_);
  SLUICE_TRY_ASSIGN(session->forward_, model::Forward::Create(context, model.config(), model.weights(),
                                                              options.context_length, options.batch));
  session->tokens_.reserve(static_cast<size_t>(options.context_length));
  session->rows_.reserve(static_cast<size_t>(options.batch));
  return session;
}

Status Session::Run(std::span<const TokenId> ids, bool all_logits, const model::LogitsSink& sink,
                    const model::GoOn& go_on) {
  rows_.clear();
  for (size_t i = 0; i < ids.size(); ++i)
    rows_.push_back({ids[i], sequence_.get(), all_logits || i + 1 == ids.size()});
  SLUICE_TRY(forward_->Run(rows_, *cache_, sink, go_on));
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  return {};
}

Result<int64_t> Session::Read(std::span<const TokenId> ids, const ReadProgress& progress) {
  SLUICE_CHECK(!ids.empty());
  if (static_cast<int64_t>(ids.size()) > options_.context_length) {
    return Fail(ErrorCode::kDoesNotFit, "the prompt has {} tokens and the context holds {}", ids.size(),
                options_.context_length);
  }
  size_t kept = 0;
  while (kept < std::min(ids.size(), tokens_.size()) && ids[kept] == tokens_[kept]) ++kept;
  const bool have_logits = kept == ids.size() && kept == tokens_.size() && !logits_.empty();
  if (have_logits) return static_cast<int64_t>(kept);
  kept = std::min(kept, ids.size() - 1);  // the last one is read again, for its logits
  Truncate(static_cast<int64_t>(kept));

  const size_t batch = static_cast<size_t>(options_.batch);
  for (size_t first = kept; first < ids.size(); first += batch) {
    const std::span<const TokenId> part = ids.subspan(first, std::min(batch, ids.size() - first));
    const auto report = [&](size_t done) {
      return !progress || progress(static_cast<int64_t>(done), static_cast<int64_t>(ids.size()));
    };
    SLUICE_TRY(Run(part, false, TakeLogits(), [&] { return report(first); }));
    if (!report(first + part.size())) return Fail(ErrorCode::kInterrupted, "reading the prompt was stopped");
  }
  return static_cast<int64_t>(kept);
}

Status Session::Advance(TokenId id, const model::GoOn& go_on) { return Run({&id, 1}, false, TakeLogits(), go_on); }

model::LogitsSink Session::TakeLogits() {
  return [this](size_t, std::span<const float> logits) { logits_.assign(logits.begin(), logits.end()); };
}

Status Session::ReadAll(std::span<const TokenId> ids,
                        const std::function<void(size_t, std::span<const float>)>& sink) {
  const size_t batch = static_cast<size_t>(options_.batch);
  for (size_t first = 0; first < ids.size(); first += batch) {
    const std::span<const TokenId> part = ids.subspan(first, std::min(batch, ids.size() - first));
    SLUICE_TRY(Run(part, true, [&](size_t row, std::span<const float> logits) {
      sink(first + row, logits);
      if (first + row + 1 == ids.size()) logits_.assign(logits.begin(), logits.end());
    }));
  }
  return {};
}

void Session::Truncate(int64_t length) {
  sequence_->Truncate(length);
  tokens_.resize(static_cast<size_t>(length));
  logits_.clear();
}

}  // namespace sluice::session
