// Reading standard input, a pipe or a terminal, in a way that Ctrl-C can end.
//
// `interrupt` is a flag such as InterruptFlag's. Whether or not the signal also breaks off the system call, a
// call returns within a fifth of a second after the flag was set. One thread reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace sluice::platform {

// Waits for bytes and appends what is there to *bytes. False at the end of the input, or once `interrupt` is
// set. A descriptor that isn't open (a program started without standard input) is an input that has ended.
// Error: kIo.
Result<bool> ReadAvailable(int fd, const std::atomic<bool>& interrupt, std::string* bytes);

// Everything up to the end of the input. Errors: kIo; kInterrupted; kResourceExhausted above max_bytes.
Result<std::string> ReadToEnd(int fd, const std::atomic<bool>& interrupt, uint64_t max_bytes);

}  // namespace sluice::platform
