// UnfinishedFile: where a file is written before it has its name: in the same folder, so that it can be put
// in its place in one step.
//
// Owns a descriptor, and a name where it has one; move-only; one thread at a time.
#pragma once

#include <string>

#include "base/result.h"
#include "platform/file.h"

namespace sluice::platform {

class UnfinishedFile {
 public:
  // A file without a name if the file system can do that, else one with a name. Removes what earlier ones for
  // this target left behind. Errors: those of Named.
  static Result<UnfinishedFile> Create(const std::string& target);

  // Without a name (O_TMPFILE): whatever ends the process, nothing is left. Errors: kUnsupported where the
  // file system has no such files, or does not let them be linked to a name.
  static Result<UnfinishedFile> Nameless(const std::string& target);

  // "TARGET.partial-N". A process that is killed leaves it; it is locked while its writer lives, so the next
  // writer of the same target can tell, and removes it. Errors: kNotFound, kIo.
  static Result<UnfinishedFile> Named(const std::string& target);

  UnfinishedFile(UnfinishedFile&&) noexcept;
  UnfinishedFile& operator=(UnfinishedFile&&) = delete;
  ~UnfinishedFile();

  int fd() const { return fd_.get(); }
  bool nameless() const { return name_.empty(); }

  // Gives it the target's name, in place of a file that has it. Where there is one, a nameless file is called
  // "TARGET.partial-N" for a moment: there is no call that replaces and links at once. Errors: kIo.
  Status Place();

 private:
  UnfinishedFile(UniqueFd fd, std::string target, std::string name)
      : fd_(std::move(fd)), target_(std::move(target)), name_(std::move(name)) {}
  Status LinkBeside();

  UniqueFd fd_;
  std::string target_;
  std::string name_;  // empty when there is nothing to remove
};

}  // namespace sluice::platform
