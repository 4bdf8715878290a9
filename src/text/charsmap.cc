#include "text/charsmap.h"

#include "base/byte_reader.h"

namespace sluice::text {
namespace {

// A unit of a darts-clone double array.
uint32_t OffsetOf(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
uint32_t LabelOf(uint32_t unit) { return unit & ((1u << 31) | 0xFFu); }
bool HasLeaf(uint32_t unit) { return ((unit >> 8) & 1u) != 0; }
uint32_t ValueOf(uint32_t unit) { return unit & ((1u << 31) - 1); }

}  // namespace

Result<CharsMap> CharsMap::Create(std::span<const std::byte> bytes) {
  CharsMap map;
  if (bytes.empty()) return map;
  constexpr std::string_view kWhat = "tokenizer.ggml.precompiled_charsmap";
  ByteReader reader(bytes);
  SLUICE_TRY_ASSIGN(const uint32_t trie_bytes, reader.Read<uint32_t>(kWhat));
  if (trie_bytes % sizeof(uint32_t) != 0) {
    return Fail(ErrorCode::kCorrupt, "{}: the trie has {} bytes, not a multiple of 4", kWhat, trie_bytes);
  }
  SLUICE_TRY_ASSIGN(const std::span<const std::byte> trie, reader.ReadBytes(trie_bytes, kWhat));
  ByteReader units(trie);
  map.trie_.reserve(trie_bytes / sizeof(uint32_t));
  while (units.remaining() > 0) {
    SLUICE_TRY_ASSIGN(const uint32_t unit, units.Read<uint32_t>(kWhat));
    map.trie_.push_back(unit);
  }
  SLUICE_TRY_ASSIGN(const std::span<const std::byte> rest, reader.ReadBytes(reader.remaining(), kWhat));
  map.replacements_.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  if (map.replacements_.empty() || map.replacements_.back() != '\0') {
    return Fail(ErrorCode::kCorrupt, "{}: the replacements don't end with a NUL", kWhat);
  }
  return map;
}

CharsMap::Prefix CharsMap::Match(std::string_view text) const {
  Prefix longest{0, {}};
  if (trie_.empty()) return longest;
  uint32_t node = OffsetOf(trie_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= trie_.size() || LabelOf(trie_[node]) != byte) break;
    const bool has_leaf = HasLeaf(trie_[node]);
    node ^= OffsetOf(trie_[node]);
    if (!has_leaf) continue;
    if (node >= trie_.size()) break;
    const uint32_t value = ValueOf(trie_[node]);
    if (value >= replacements_.size()) break;
    longest = {i + 1, std::string_view(replacements_.c_str() + value)};
  }
  return longest;
}

}  // namespace sluice::text
