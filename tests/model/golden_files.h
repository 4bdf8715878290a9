// The files whose logits are frozen: the bundled model, the reference's quantised models, and for each weight type two
// synthetic models, with row lengths that are odd multiples of 32 and of 256.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace sluice::model {

struct GoldenFile {
  std::string name;  // in golden_hashes.txt
  // The file, made first if need be; empty where it can't be had, with the reason.
  std::string Path(std::string* missing) const;
  std::string TestName() const;
};

inline void PrintTo(const GoldenFile& file, std::ostream* out) { *out << file.name; }

std::vector<GoldenFile> GoldenFiles();

}  // namespace sluice::model
