// The file: one entry a line, "\n" and "\\" standing for a line feed and a backslash.
#include "history.h"

#include "sluice/atomic_file.h"
#include "sluice/usage.h"

namespace sluice::app {

namespace {

constexpr size_t kMaxEntries = 1000;
constexpr size_t kMaxEntryBytes = 64 << 10;  // long pastes are not kept
constexpr uint64_t kMaxFileBytes = kMaxEntries * 2 * kMaxEntryBytes;

std::string Escape(const std::string& entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n') {
      line += "\\n";
    } else {
      if (c == '\\') line += '\\';
      line += c;
    }
  }
  return line;
}

std::vector<std::string> Parse(const std::string& file) {
  std::vector<std::string> entries;
  std::string entry;
  for (size_t i = 0; i < file.size(); ++i) {
    if (file[i] == '\n') {
      if (!entry.empty()) entries.push_back(entry);
      entry.clear();
    } else if (file[i] == '\\' && i + 1 < file.size() && file[i + 1] != '\n') {
      ++i;
      entry += file[i] == 'n' ? '\n' : file[i];
    } else {
      entry += file[i];
    }
  }
  return entries;
}

void Trim(std::vector<std::string>* entries) {
  if (entries->size() > kMaxEntries) entries->erase(entries->begin(), entries->end() - kMaxEntries);
}

}  // namespace

History::History(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  if (const Result<std::string> file = ReadWholeFile(path_, kMaxFileBytes)) entries_ = Parse(*file);
  Trim(&entries_);
}

Status History::Add(const std::string& entry) {
  if (entry.empty() || entry.size() > kMaxEntryBytes || (!entries_.empty() && entries_.back() == entry)) return {};
  entries_.push_back(entry);
  Trim(&entries_);
  if (path_.empty()) return {};
  std::string file;
  for (const std::string& kept : entries_) file += Escape(kept) + "\n";
  return platform::WriteWholeFile(path_, file);
}

}  // namespace sluice::app
