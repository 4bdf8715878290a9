#include "conversation_store.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "glyphs.h"
#include "sluice/atomic_file.h"
#include "sluice/usage.h"
#include "suggest.h"

namespace sluice::app {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kEnding = ".json";
constexpr std::string_view kFormat = "sluice-conversation";
constexpr int kVersion = 1;
constexpr size_t kMaxNameBytes = 100;
constexpr uint64_t kMaxFileBytes = 256 << 20;
constexpr size_t kMaxListed = 10'000;
constexpr int kMaxDepth = 64;  // of the JSON; writing it again is recursive

Result<json> ParseBounded(const std::string& text, const std::string& path) {
  bool too_deep = false;
  json value = json::parse(
      text,
      [&](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > kMaxDepth;
        return !too_deep;
      },
      false);
  if (too_deep) return Fail(ErrorCode::kCorrupt, "{}: nested more than {} deep", path, kMaxDepth);
  if (!value.is_object()) return Fail(ErrorCode::kCorrupt, "{}: not a conversation: a JSON object was expected", path);
  return value;
}

}  // namespace

Result<std::string> ConversationStore::PathOf(std::string_view name) const {
  const bool bad = name.empty() || name.size() > kMaxNameBytes || name.starts_with('.') ||
                   name.find_first_of("/\\\n\t") != std::string_view::npos || Printable(name) != name;
  if (bad) {
    return Fail(ErrorCode::kInvalidArgument,
                "'{}' can't be a conversation's name: it takes 1 to {} bytes without slashes and control characters, "
                "and no dot in front", Printable(name.substr(0, kMaxNameBytes)), kMaxNameBytes);
  }
  return folder_ + "/" + std::string(name) + std::string(kEnding);
}

Status ConversationStore::Save(std::string_view name, const SavedConversation& conversation) const {
  SLUICE_TRY_ASSIGN(const std::string path, PathOf(name));
  std::error_code error;
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  if (error) return Fail(ErrorCode::kIo, "{}: {}", folder_, error.message());
  nlohmann::ordered_json file{{"format", kFormat}, {"version", kVersion}, {"model", conversation.model}};
  file["messages"] = nlohmann::ordered_json::parse(chat::MessagesToJson(conversation.messages), nullptr, false);
  return platform::WriteWholeFile(path, file.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

Result<SavedConversation> ConversationStore::Load(std::string_view name) const {
  SLUICE_TRY_ASSIGN(const std::string path, PathOf(name));
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return Fail(ErrorCode::kNotFound, "there is no conversation '{}'.{}", name, DidYouMean(name, List()));
  }
  SLUICE_TRY_ASSIGN(const std::string text, ReadWholeFile(path, kMaxFileBytes));
  SLUICE_TRY_ASSIGN(const json file, ParseBounded(text, path));
  const auto format = file.find("format"), version = file.find("version");
  if (format == file.end() || *format != kFormat || version == file.end() || *version != kVersion) {
    return Fail(ErrorCode::kCorrupt, "{}: not a conversation: expected \"format\": \"{}\", \"version\": {}", path, kFormat,
                kVersion);
  }
  const auto messages = file.find("messages");
  if (messages == file.end()) return Fail(ErrorCode::kCorrupt, "{}: there are no \"messages\"", path);
  Result<std::vector<chat::Message>> parsed = chat::MessagesFromJson(messages->dump());
  if (!parsed) return Fail(ErrorCode::kCorrupt, "{}: {}", path, parsed.error().message);
  SavedConversation conversation{.messages = *std::move(parsed)};
  const auto model = file.find("model");
  if (model != file.end() && model->is_string()) conversation.model = model->get<std::string>();
  return conversation;
}

Result<std::string> ConversationStore::SnapshotPath(std::string_view name) const {
  SLUICE_TRY_ASSIGN(std::string path, PathOf(name));
  path.replace(path.size() - kEnding.size(), kEnding.size(), ".state");
  return path;
}

std::vector<std::string> ConversationStore::List() const {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  fs::directory_iterator at(folder_, error);
  for (; !error && at != fs::directory_iterator() && found.size() < kMaxListed; at.increment(error)) {
    std::string name = at->path().filename().native();
    std::error_code unreadable;
    if (!name.ends_with(kEnding) || !at->is_regular_file(unreadable)) continue;
    name.resize(name.size() - kEnding.size());
    const fs::file_time_type time = at->last_write_time(unreadable);
    if (!unreadable && PathOf(name)) found.emplace_back(time, name);
  }
  // Newest first, and of the same moment in the order of names.
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<std::string> names;
  for (auto& [time, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace sluice::app
