#include "eval/base_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/hash.h"
#include "base/units.h"
#include "sample/softmax.h"

namespace sluice::eval {
namespace {

constexpr char kMagic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'K', 'L'};
constexpr uint32_t kVersion = 1;
constexpr uint16_t kNever = 65535;  // the code of a token that cannot come
constexpr double kLastCode = 65534;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Header {
  char magic[8];
  uint32_t version, header_bytes;
  uint64_t vocabulary_size, vocabulary_hash, text_hash;
  uint64_t n_ids;
  int64_t window, first_scored;
  uint64_t model_bytes;
};
static_assert(std::has_unique_object_representations_v<Header>, "no byte of it is padding");

struct RowHead {
  uint64_t hash;
  float highest, step;
};
static_assert(sizeof(RowHead) == 16);

uint64_t RowBytes(uint64_t vocabulary_size) { return sizeof(RowHead) + vocabulary_size * sizeof(uint16_t); }

// Of a row, but for the hash itself.
uint64_t HashRow(std::span<const std::byte> row) { return HashBytes(row.subspan(sizeof(uint64_t))); }

std::string_view StoredName(const BaseRun& run) {
  return std::string_view(run.model).substr(0, kMostModelNameBytes);
}

uint64_t BytesBeforeRows(const BaseRun& run) {
  return sizeof(Header) + StoredName(run).size() + run.windows.ids.size() * sizeof(text::TokenId) +
         sizeof(uint64_t);
}

Status CheckHeader(const Header& header, uint64_t file_bytes) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
    return Fail(ErrorCode::kCorrupt, "this is no base run");
  if (header.version != kVersion || header.header_bytes != sizeof(header)) {
    return Fail(ErrorCode::kUnsupported, "a base run of version {}; this build reads version {}",
                header.version, kVersion);
  }
  const bool sound = header.model_bytes <= kMostModelNameBytes && header.n_ids <= file_bytes / 4 &&
                     header.window >= 2 && header.first_scored >= 0 &&
                     header.first_scored < header.window - 1 && header.n_ids > 0 &&
                     header.n_ids % static_cast<uint64_t>(header.window) == 0 && header.vocabulary_size > 0;
  if (!sound) return Fail(ErrorCode::kCorrupt, "the base run's header makes no sense");
  return {};
}

// The file's size as its header has it.
Status CheckSize(const Header& header, const BaseRun& run, uint64_t file_bytes) {
  const uint64_t before = BytesBeforeRows(run);
  uint64_t expected = 0;
  const bool fits = header.vocabulary_size <= file_bytes &&
                    CheckedMultiply(RowBytes(header.vocabulary_size),
                                    static_cast<uint64_t>(run.windows.scored()), &expected) &&
                    CheckedAdd(expected, before, &expected) && expected == file_bytes;
  if (!fits) {
    return Fail(ErrorCode::kCorrupt,
                "the base run has {} bytes, which is not what its header says: it is cut off?", file_bytes);
  }
  return {};
}

Status CheckIds(const BaseRun& run) {
  for (const text::TokenId id : run.windows.ids) {
    if (id < 0 || static_cast<uint64_t>(id) >= run.vocabulary_size)
      return Fail(ErrorCode::kCorrupt, "the base run has a token {}, outside of a vocabulary of {}", id,
                  run.vocabulary_size);
  }
  return {};
}

}  // namespace

uint64_t HashVocabulary(const text::Vocabulary& vocabulary) {
  uint64_t hash = kHashSeed;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.Text(static_cast<text::TokenId>(id));
    const uint64_t size = text.size();
    hash = HashBytes(std::as_bytes(std::span(&size, 1)), hash);
    hash = HashBytes(std::as_bytes(std::span(text)), hash);
  }
  return hash;
}

uint64_t HashText(std::string_view text) { return HashBytes(std::as_bytes(std::span(text))); }

Status CheckComparable(const BaseRun& base, const BaseRun& other) {
  if (base.vocabulary_size != other.vocabulary_size) {
    return Fail(ErrorCode::kInvalidArgument,
                "the base run is of a vocabulary of {} tokens ({}), this model has {}", base.vocabulary_size,
                base.model, other.vocabulary_size);
  }
  if (base.vocabulary_hash != other.vocabulary_hash) {
    return Fail(ErrorCode::kInvalidArgument,
                "the base run is of another vocabulary ({}): as many tokens, but not the same ones",
                base.model);
  }
  if (base.text_hash != other.text_hash)
    return Fail(ErrorCode::kInvalidArgument, "the base run ({}) was made with another text", base.model);
  const TextWindows &a = base.windows, &b = other.windows;
  if (a.window != b.window || a.first_scored != b.first_scored) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "the base run was read in windows of {} tokens, scored from position {} on; here they are of {}, "
        "from position {} on",
        a.window, a.first_scored, b.window, b.first_scored);
  }
  if (a.ids.size() != b.ids.size()) {
    return Fail(ErrorCode::kInvalidArgument, "the base run has {} windows of the text, here there are {}",
                a.count(), b.count());
  }
  const auto at = std::ranges::mismatch(a.ids, b.ids).in1 - a.ids.begin();
  if (static_cast<size_t>(at) < a.ids.size()) {
    const size_t i = static_cast<size_t>(at);
    return Fail(ErrorCode::kInvalidArgument,
                "the tokenizers differ: token {} of the text is {} in the base run and {} here", i, a.ids[i],
                b.ids[i]);
  }
  return {};
}

uint64_t BaseRunWriter::FileBytes(const BaseRun& run) {
  return BytesBeforeRows(run) + RowBytes(run.vocabulary_size) * static_cast<uint64_t>(run.windows.scored());
}

BaseRunWriter::BaseRunWriter(const BaseRun& run, gguf::ByteSink& sink)
    : sink_(sink),
      vocabulary_size_(run.vocabulary_size),
      rows_left_(run.windows.scored()),
      row_(RowBytes(run.vocabulary_size)) {}

Result<BaseRunWriter> BaseRunWriter::Begin(const BaseRun& run, gguf::ByteSink& sink) {
  const std::string_view name = StoredName(run);
  Header header{.version = kVersion,
                .header_bytes = sizeof(Header),
                .vocabulary_size = run.vocabulary_size,
                .vocabulary_hash = run.vocabulary_hash,
                .text_hash = run.text_hash,
                .n_ids = run.windows.ids.size(),
                .window = run.windows.window,
                .first_scored = run.windows.first_scored,
                .model_bytes = name.size()};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  uint64_t hash = kHashSeed;
  for (const auto bytes : {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(name)),
                           std::as_bytes(std::span(run.windows.ids))}) {
    hash = HashBytes(bytes, hash);
    SLUICE_TRY(sink.Write(bytes));
  }
  SLUICE_TRY(sink.Write(std::as_bytes(std::span(&hash, 1))));
  return BaseRunWriter(run, sink);
}

Status BaseRunWriter::Add(std::span<const float> logits) {
  SLUICE_CHECK(logits.size() == vocabulary_size_ && rows_left_ > 0);
  --rows_left_;
  const sample::LogSoftmax softmax(logits);
  // Below the likeliest token, in nats; not finite for what cannot come.
  const auto depth = [&](float logit) { return softmax.max() - static_cast<double>(logit); };
  double spread = 0;
  for (const float logit : logits) {
    if (std::isfinite(depth(logit))) spread = std::max(spread, depth(logit));
  }
  RowHead head{.hash = 0,
               .highest = static_cast<float>(std::min(-softmax.log_sum(), 0.0)),
               .step = static_cast<float>(std::min(spread, kMostSpread) / kLastCode)};
  const double per_nat = head.step > 0 ? 1 / static_cast<double>(head.step) : 0;
  std::byte* at = row_.data() + sizeof(head);
  for (const float logit : logits) {
    const double steps = std::clamp(depth(logit) * per_nat + 0.5, 0.0, kLastCode);
    const bool comes = depth(logit) < kInfinity;
    const uint16_t code = comes ? static_cast<uint16_t>(steps) : kNever;
    std::memcpy(at, &code, sizeof(code));
    at += sizeof(code);
  }
  std::memcpy(row_.data(), &head, sizeof(head));
  head.hash = HashRow(row_);
  std::memcpy(row_.data(), &head.hash, sizeof(head.hash));
  return sink_.Write(row_);
}

Status BaseRunWriter::Finish() {
  SLUICE_CHECK(rows_left_ == 0);
  return sink_.Commit();
}

Result<BaseRunReader> BaseRunReader::Open(std::unique_ptr<gguf::ByteSource> source) {
  BaseRunReader reader(std::move(source));
  const gguf::ByteSource& file = *reader.source_;
  Header header;
  if (file.size() < sizeof(header)) return Fail(ErrorCode::kCorrupt, "{} bytes are no base run", file.size());
  const auto header_bytes = std::as_writable_bytes(std::span(&header, 1));
  SLUICE_TRY(file.ReadAt(0, header_bytes));
  SLUICE_TRY(CheckHeader(header, file.size()));
  BaseRun& run = reader.run_;
  run.vocabulary_size = header.vocabulary_size;
  run.vocabulary_hash = header.vocabulary_hash;
  run.text_hash = header.text_hash;
  run.model.resize(static_cast<size_t>(header.model_bytes));
  run.windows = {.ids = std::vector<text::TokenId>(static_cast<size_t>(header.n_ids)),
                 .window = header.window,
                 .first_scored = header.first_scored};
  SLUICE_TRY(CheckSize(header, run, file.size()));
  uint64_t hash = HashBytes(header_bytes), offset = sizeof(header);
  for (const auto bytes :
       {std::as_writable_bytes(std::span(run.model)), std::as_writable_bytes(std::span(run.windows.ids))}) {
    SLUICE_TRY(file.ReadAt(offset, bytes));
    hash = HashBytes(bytes, hash);
    offset += bytes.size();
  }
  uint64_t stored;
  SLUICE_TRY(file.ReadAt(offset, std::as_writable_bytes(std::span(&stored, 1))));
  if (stored != hash)
    return Fail(ErrorCode::kCorrupt, "the base run's checksum is wrong: its bytes have changed");
  SLUICE_TRY(CheckIds(run));
  reader.first_row_ = offset + sizeof(hash);
  reader.row_.resize(RowBytes(run.vocabulary_size));
  reader.log_probabilities_.resize(static_cast<size_t>(run.vocabulary_size));
  return reader;
}

Result<std::span<const float>> BaseRunReader::Row(int64_t index) {
  SLUICE_CHECK(index >= 0 && index < run_.windows.scored());
  SLUICE_TRY(source_->ReadAt(first_row_ + static_cast<uint64_t>(index) * row_.size(), row_));
  RowHead head;
  std::memcpy(&head, row_.data(), sizeof(head));
  if (head.hash != HashRow(row_)) {
    return Fail(ErrorCode::kCorrupt, "the base run's row {} has a wrong checksum: its bytes have changed",
                index);
  }
  const bool sound = head.highest <= 0 && head.highest > -kInfinity && head.step >= 0 &&
                     static_cast<double>(head.step) <= 1.01 * kMostSpread / kLastCode;
  if (!sound) return Fail(ErrorCode::kCorrupt, "the base run's row {} makes no sense", index);
  for (size_t i = 0; i < log_probabilities_.size(); ++i) {
    uint16_t code;
    std::memcpy(&code, row_.data() + sizeof(head) + i * sizeof(code), sizeof(code));
    log_probabilities_[i] =
        code == kNever
            ? -kInfinity
            : static_cast<float>(static_cast<double>(head.highest) - static_cast<double>(head.step) * code);
  }
  return std::span<const float>(log_probabilities_);
}

}  // namespace sluice::eval
