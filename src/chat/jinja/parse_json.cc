#include <nlohmann/json.hpp>

#include "chat/jinja/print.h"

namespace sluice::chat::jinja {
namespace {

constexpr size_t kMaxDepth = 100;

// Builds a Value from the events of nlohmann's parser, which itself keeps no state per level on the stack. A
// false return stops the parser; error_ says why.
class ValueBuilder {
 public:
  ValueBuilder(bool trusted, Heap* heap) : trusted_(trusted), heap_(heap) {}

  bool null() { return Add(Value(None{})); }
  bool boolean(bool b) { return Add(Value(b)); }
  bool number_integer(int64_t i) { return Add(Value(i)); }
  bool number_unsigned(uint64_t u) {
    return Add(u <= INT64_MAX ? Value(static_cast<int64_t>(u)) : Value(static_cast<double>(u)));
  }
  bool number_float(double d, const std::string&) { return Add(Value(d)); }
  bool string(std::string& s) {
    Result<Text> text = heap_->NewText(s, trusted_);
    return text ? Add(Value(*std::move(text))) : Stop(text.error());
  }
  bool binary(std::vector<uint8_t>&) { return Stop(Fail(ErrorCode::kCorrupt, "JSON has no binary values")); }
  bool start_object(size_t) {
    Result<Dict*> dict = heap_->NewDict();
    return dict ? Open(Value(*dict)) : Stop(dict.error());
  }
  bool start_array(size_t) {
    Result<List*> list = heap_->NewList();
    return list ? Open(Value(*list)) : Stop(list.error());
  }
  bool key(std::string& s) {
    Result<Text> text = heap_->NewText(s, trusted_);
    if (!text) return Stop(text.error());
    keys_.back() = *std::move(text);
    return true;
  }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) {
    return Stop(Fail(ErrorCode::kCorrupt, "not JSON at byte {}", at));
  }

  Value& root() { return root_; }
  const Error& error() const { return error_; }

 private:
  bool Stop(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool Add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    const Status added = open_.back().list()
                             ? heap_->Append(open_.back().list(), std::move(value))
                             : heap_->Set(open_.back().dict(), keys_.back(), std::move(value));
    return added ? true : Stop(added.error());
  }
  bool Open(Value container) {
    if (open_.size() >= kMaxDepth) {
      return Stop(Fail(ErrorCode::kResourceExhausted, "JSON nested deeper than {}", kMaxDepth));
    }
    if (!Add(container)) return false;
    open_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  bool trusted_;
  Heap* heap_;
  Value root_;
  std::vector<Value> open_;  // lists and dicts around this place
  std::vector<Text> keys_;   // of each, the key that comes next (dicts)
  Error error_{ErrorCode::kCorrupt, "not JSON"};
};

}  // namespace

Result<Value> ParseJson(std::string_view json, bool trusted, Heap* heap) {
  ValueBuilder builder(trusted, heap);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) return builder.error();
  return std::move(builder.root());
}

}  // namespace sluice::chat::jinja
