// Session::Save and Load. The file, little-endian (docs/kv.md):
//
//   Header · tokens i32[length] · logits f32[n_logits] · sampler history i32[n_history] · DRY progress
//   u32[n_breakers] · the sequence's pages and set, as kv::Sequence::ForEachRun has them · checksum of all
//   before, u64
//
// What is read is hostile: all sizes follow from the header, and are compared with the size of the file
// first.
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "gguf/file_source.h"
#include "platform/atomic_writer.h"
#include "session/fingerprint.h"
#include "session/session.h"

namespace sluice::session {

namespace {

constexpr char kMagic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'K', 'V'};
constexpr uint32_t kVersion = 2;
constexpr uint64_t kMostBreakers = 4096;

struct Header {
  char magic[8];
  uint32_t version, header_bytes;
  uint64_t model;  // Fingerprint
  uint32_t k_type, v_type, rotate, overflow;
  int64_t context_length, sinks;
  uint64_t page_bytes[kv::kPoolCount];
  kv::Sequence::Held held;
  uint64_t n_logits;
  uint64_t has_sampler;
  uint64_t random[4];
  uint64_t dry_run_length;
  uint64_t n_history, n_breakers;
};
static_assert(std::is_trivially_copyable_v<Header>);
static_assert(std::has_unique_object_representations_v<Header>, "no byte of it is padding");

template <typename T>
std::span<std::byte> BytesOf(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

// Reads a file from its beginning and hashes what it reads.
class Reader {
 public:
  explicit Reader(const gguf::ByteSource& source) : source_(source) {}
  Status Read(std::span<std::byte> bytes) {
    SLUICE_TRY(source_.ReadAt(offset_, bytes));
    offset_ += bytes.size();
    hash_ = HashBytes(bytes, hash_);
    return {};
  }
  uint64_t offset() const { return offset_; }
  uint64_t hash() const { return hash_; }

 private:
  const gguf::ByteSource& source_;
  uint64_t offset_ = 0;
  uint64_t hash_ = kHashSeed;
};

Error Mismatch(std::string_view what, uint64_t found, uint64_t expected) {
  return Fail(ErrorCode::kInvalidArgument, "the snapshot was made with another {}: {}, not {}", what, found,
              expected);
}

}  // namespace

Result<uint64_t> Session::ModelFingerprint() {
  if (!fingerprint_) {
    SLUICE_TRY_ASSIGN(fingerprint_, Fingerprint(model_));
  }
  return *fingerprint_;
}

Status Session::Save(const std::string& path, const sample::SamplerState* sampler) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.header_bytes = sizeof(Header);
  SLUICE_TRY_ASSIGN(header.model, ModelFingerprint());
  header.k_type = static_cast<uint32_t>(options_.kv.k_type);
  header.v_type = static_cast<uint32_t>(options_.kv.v_type);
  header.rotate = options_.kv.rotate;
  header.overflow = static_cast<uint32_t>(options_.kv.overflow);
  header.context_length = options_.kv.context_length;
  header.sinks = options_.kv.sinks;
  for (size_t i = 0; i < kv::kPoolCount; ++i)
    header.page_bytes[i] = cache_->pool(static_cast<kv::Pool>(i)).page_bytes();
  header.held = sequence_->held();
  header.n_logits = logits_.size();
  const sample::SamplerState none{};
  const sample::SamplerState& state = sampler != nullptr ? *sampler : none;
  header.has_sampler = sampler != nullptr;
  std::ranges::copy(state.random, header.random);
  header.dry_run_length = state.dry.run_length;
  header.n_history = state.history.size();
  header.n_breakers = state.dry.breaker_progress.size();

  SLUICE_TRY_ASSIGN(platform::AtomicWriter file, platform::AtomicWriter::Create(path));
  uint64_t hash = kHashSeed;
  const auto write = [&](std::span<const std::byte> bytes) -> Status {
    hash = HashBytes(bytes, hash);
    return file.Write(bytes);
  };
  SLUICE_TRY(write(std::as_bytes(std::span(&header, 1))));
  SLUICE_TRY(write(BytesOf(tokens_)));
  SLUICE_TRY(write(BytesOf(logits_)));
  SLUICE_TRY(write(std::as_bytes(std::span(state.history))));
  SLUICE_TRY(write(std::as_bytes(std::span(state.dry.breaker_progress))));
  SLUICE_TRY(sequence_->ForEachRun(write));
  const uint64_t checksum = hash;
  SLUICE_TRY(file.Write(std::as_bytes(std::span(&checksum, 1))));
  return file.Commit();
}

Status Session::Load(const std::string& path, std::optional<sample::SamplerState>* sampler) {
  SLUICE_TRY_ASSIGN(const auto source, gguf::OpenFileSource(path));
  Status loaded = LoadFrom(*source, sampler);
  if (!loaded) return Annotate(std::move(loaded).error(), path);
  return loaded;
}

Status Session::LoadFrom(const gguf::ByteSource& source, std::optional<sample::SamplerState>* sampler) {
  Truncate(0);
  Status loaded = ReadSnapshot(source, sampler);
  if (!loaded) {
    Truncate(0);
    sampler->reset();
    return loaded;
  }
  checkpoint_.reset();
  if (cache_->forgets()) TakeCheckpoint();
  return {};
}

Status Session::ReadSnapshot(const gguf::ByteSource& source, std::optional<sample::SamplerState>* sampler) {
  Header header;
  Reader reader(source);
  if (source.size() < sizeof(header))
    return Fail(ErrorCode::kCorrupt, "{} bytes are no snapshot", source.size());
  SLUICE_TRY(reader.Read(std::as_writable_bytes(std::span(&header, 1))));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
    return Fail(ErrorCode::kCorrupt, "this is no snapshot");
  if (header.version != kVersion || header.header_bytes != sizeof(header)) {
    return Fail(ErrorCode::kUnsupported, "a snapshot of version {}; this build reads version {}",
                header.version, kVersion);
  }
  SLUICE_TRY_ASSIGN(const uint64_t model, ModelFingerprint());
  if (header.model != model) {
    return Fail(ErrorCode::kInvalidArgument,
                "the snapshot was made with another model, or this one has changed since");
  }
  const auto differs = [](auto found, auto expected) {
    return static_cast<uint64_t>(found) != static_cast<uint64_t>(expected);
  };
  if (differs(header.k_type, options_.kv.k_type) || differs(header.v_type, options_.kv.v_type) ||
      differs(header.rotate, options_.kv.rotate)) {
    return Fail(ErrorCode::kInvalidArgument, "the snapshot was made with other types of keys and values");
  }
  if (differs(header.overflow, options_.kv.overflow)) {
    return Fail(ErrorCode::kInvalidArgument, "the snapshot was made with another --overflow");
  }
  // Without overflow the context's length is no more than a bound, but for LongRoPE, which turns by it.
  const bool fixed = options_.kv.overflow != kv::Overflow::kStop ||
                     model_.config().rope.scaling == ops::RopeScaling::kLongRope;
  if (fixed && differs(header.context_length, options_.kv.context_length)) {
    return Mismatch("context", static_cast<uint64_t>(header.context_length),
                    static_cast<uint64_t>(options_.kv.context_length));
  }
  if (options_.kv.overflow != kv::Overflow::kStop && differs(header.sinks, options_.kv.sinks))
    return Mismatch("number of sinks", static_cast<uint64_t>(header.sinks),
                    static_cast<uint64_t>(options_.kv.sinks));
  for (size_t i = 0; i < kv::kPoolCount; ++i) {
    if (header.page_bytes[i] != cache_->pool(static_cast<kv::Pool>(i)).page_bytes())
      return Fail(ErrorCode::kInvalidArgument,
                  "the snapshot was made with another layout of the cache (context, batch)");
  }
  const uint64_t vocab_size = static_cast<uint64_t>(model_.config().vocab_size);
  if (header.held.length < 0 || header.held.length > static_cast<int64_t>(most_tokens_)) {
    return Fail(ErrorCode::kDoesNotFit, "the snapshot has {} tokens and the context holds {}",
                header.held.length, most_tokens_);
  }
  if ((header.n_logits != 0 && header.n_logits != vocab_size) || header.n_breakers > kMostBreakers ||
      header.n_history > source.size() / sizeof(int32_t)) {
    return Fail(ErrorCode::kCorrupt, "the snapshot's header makes no sense");
  }
  SLUICE_TRY(sequence_->Hold(header.held));
  uint64_t expected = sizeof(header) + sizeof(uint64_t) +
                      4 * (static_cast<uint64_t>(header.held.length) + header.n_logits + header.n_history +
                           header.n_breakers);
  SLUICE_TRY(sequence_->ForEachRun([&](std::span<std::byte> bytes) -> Status {
    expected += bytes.size();
    return {};
  }));
  if (source.size() != expected) {
    return Fail(ErrorCode::kCorrupt, "the snapshot has {} bytes, and its header says {}", source.size(),
                expected);
  }

  sample::SamplerState state;
  tokens_.resize(static_cast<size_t>(header.held.length));
  logits_.resize(static_cast<size_t>(header.n_logits));
  state.history.resize(static_cast<size_t>(header.n_history));
  state.dry.breaker_progress.resize(static_cast<size_t>(header.n_breakers));
  SLUICE_TRY(reader.Read(BytesOf(tokens_)));
  SLUICE_TRY(reader.Read(BytesOf(logits_)));
  SLUICE_TRY(reader.Read(BytesOf(state.history)));
  SLUICE_TRY(reader.Read(BytesOf(state.dry.breaker_progress)));
  SLUICE_TRY(sequence_->ForEachRun([&](std::span<std::byte> bytes) { return reader.Read(bytes); }));
  const uint64_t hash = reader.hash();
  uint64_t checksum;
  SLUICE_TRY(reader.Read(std::as_writable_bytes(std::span(&checksum, 1))));
  if (checksum != hash)
    return Fail(ErrorCode::kCorrupt, "the snapshot's checksum is wrong: its bytes have changed");
  for (const TokenId id : tokens_) {
    if (id < 0 || static_cast<uint64_t>(id) >= vocab_size)
      return Fail(ErrorCode::kCorrupt, "the snapshot has a token {}, outside of a vocabulary of {}", id,
                  vocab_size);
  }
  SLUICE_TRY(sequence_->CheckHeld());
  std::ranges::copy(header.random, state.random.begin());
  state.dry.run_length = header.dry_run_length;
  if (header.has_sampler != 0) *sampler = std::move(state);
  return {};
}

}  // namespace sluice::session
