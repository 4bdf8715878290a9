// ConversationStore: conversations by name, one JSON file each, in the user's data folder.
//
//   {"format": "sluice-conversation", "version": 1, "model": "/path/model.gguf", "messages": [ … OpenAI's form … ]}
//
// Files appear whole or not at all, and only their owner may read them. What is read back is hostile. One thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/conversation.h"
#include "sluice/result.h"

namespace sluice::app {

struct SavedConversation {
  std::string model;
  std::vector<chat::Message> messages;
};

class ConversationStore {
 public:
  // The folder is made when something is saved.
  explicit ConversationStore(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Replaces a conversation of this name. Errors: kInvalidArgument for a name that can't be one; kIo.
  Status Save(std::string_view name, const SavedConversation& conversation) const;
  // Errors: kNotFound, with the names that come nearest; kCorrupt, naming the file and what is wrong with it;
  // kResourceExhausted for one of more than 256 MiB.
  Result<SavedConversation> Load(std::string_view name) const;

  // Where what a model made of the conversation is kept, beside it. Errors: kInvalidArgument, as for Save.
  Result<std::string> SnapshotPath(std::string_view name) const;

  // The names, newest first.
  std::vector<std::string> List() const;

 private:
  Result<std::string> PathOf(std::string_view name) const;

  std::string folder_;
};

}  // namespace sluice::app
