// DeviceProfile: what a device can do, as far as planning asks: how much memory a program gets, how fast
// memory and storage read, how fast each weight format computes. Measured here (probe.h), built in, or read
// from a JSON file.
//
// A value; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/dtype.h"
#include "io/io_queue.h"
#include "kv/cache.h"
#include "weights/residency.h"

namespace sluice::plan {

// How fast products with one weight format are, on all threads together.
struct TypeRate {
  formats::DType dtype = formats::DType::kF32;
  double decode_bytes_per_second = 0;             // of weights, one token at a time, from memory
  double prefill_multiplications_per_second = 0;  // multiply-adds, many tokens at a time
};

// How fast attention goes over keys and values of one type.
struct AttentionRate {
  kv::KvType type = kv::KvType::kF16;
  double multiplications_per_second = 0;
};

// Reading storage past the page cache in blocks of one size, `depth` of them under way.
struct StorageRate {
  uint64_t block_bytes = 0;
  int depth = 1;
  io::IoBackend backend = io::IoBackend::kAuto;
  double bytes_per_second = 0;
};

struct DeviceProfile {
  std::string name;
  std::string source;         // where the figures come from
  uint64_t total_bytes = 0;   // of memory
  uint64_t budget_bytes = 0;  // what one program can take of it
  int threads = 0;
  double memory_bytes_per_second = 0;
  std::vector<TypeRate> types;
  std::vector<AttentionRate> attention;
  std::vector<StorageRate> storage;
  // For formats and KV types that the lists don't have.
  TypeRate other_types;
  AttentionRate other_attention;

  const TypeRate& RateOf(formats::DType dtype) const;
  double AttentionRateOf(kv::KvType type) const;
  // The fastest way to read storage; all zeros when it was not measured.
  StorageRate BestStorage() const;
  // As a store with these options reads it; the fastest way where just that was not measured.
  StorageRate StorageFor(const weights::StoreOptions& options) const;
};

// Phones with 8, 12 and 16 GB.
std::span<const DeviceProfile> BuiltInDevices();
const DeviceProfile* FindDevice(std::string_view name);  // null when there is none of this name

std::string ToJson(const DeviceProfile& device);
// Errors: kCorrupt, naming what is missing, of the wrong type, or out of range.
Result<DeviceProfile> ParseDevice(std::string_view json);

}  // namespace sluice::plan
