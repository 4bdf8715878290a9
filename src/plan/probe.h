// Probe: measures this machine for the speed model: memory, each weight format, attention, storage. Takes a
// few seconds, once; what it finds is kept in a file (device.h) under the machine's fingerprint.
//
// Takes a buffer from the ledger for as long as it runs. One thread at a time; works on the context's pool.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/device.h"
#include "runtime/context.h"

namespace sluice::plan {

// Errors: kDoesNotFit when the ledger has no room for a buffer of 16 MiB.
Result<DeviceProfile> ProbeCompute(const runtime::Context& context);

// How fast the file at `path` is read past the page cache into huge pages: blocks of 256 KiB to 4 MiB, 1 to
// 16 of them under way, over io_uring and over blocking reads; 64 MiB each, a second or so on a fast device.
// Takes 64 MiB of the ledger. Empty where there is no room for that, the file is too small, or its file
// system has no direct reads.
std::vector<StorageRate> ProbeStorage(const runtime::Context& context, const std::string& path);

// The same, with the three fastest measured once more over `read_bytes` each.
struct StorageReport {
  std::vector<StorageRate> table;
  StorageRate best;         // of the three
  uint64_t read_bytes = 0;  // that it was measured over
};
// Errors: kUnsupported where ProbeStorage finds nothing.
Result<StorageReport> MeasureStorage(const runtime::Context& context, const std::string& path,
                                     uint64_t read_bytes);

// What a measurement belongs to: processor, cores, kernels in use, threads. Fit for a file name.
std::string Fingerprint(const runtime::Context& context);

}  // namespace sluice::plan
