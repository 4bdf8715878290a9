#include "chat/output_parser.h"

#include <algorithm>
#include <utility>

#include "chat/tool_calls.h"

namespace sluice::chat {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// gpt-oss. What ends a message's text; the last two begin the next message and belong to its header.
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kHarmonyEnds[] = {"<|end|>", "<|call|>", "<|return|>", kStart, kChannel};
// A header is short; what goes on for longer without <|message|> is text.
constexpr size_t kMaxHeader = 300;

// How many bytes at the end of `text` may be the beginning of one of the markers.
size_t PartialMarker(std::string_view text, std::span<const std::string_view> markers) {
  size_t longest = 0;
  for (const std::string_view marker : markers) {
    for (size_t n = std::min(marker.size() - 1, text.size()); n > longest; --n) {
      if (text.substr(text.size() - n) == marker.substr(0, n)) longest = n;
    }
  }
  return longest;
}

// Where the first terminator is; its text in *found. npos if there is none.
size_t FindTerminator(std::string_view text, std::span<const std::string_view> terminators, size_t searched,
                      std::string_view* found) {
  size_t first = std::string_view::npos;
  for (const std::string_view terminator : terminators) {
    const size_t from = searched > terminator.size() ? searched - terminator.size() : 0;
    const size_t at = text.find(terminator, from);
    if (at >= first) continue;
    first = at;
    *found = terminator;
  }
  return first;
}

bool IsProperPrefix(std::string_view text, std::string_view of) {
  return text.size() < of.size() && of.substr(0, text.size()) == text;
}

// The word behind "to=functions." in a header, empty if there is none.
std::string HeaderRecipient(std::string_view header) {
  constexpr std::string_view kTo = "to=functions.";
  const size_t at = header.find(kTo);
  if (at == header.npos) return {};
  header.remove_prefix(at + kTo.size());
  return std::string(header.substr(0, header.find_first_of(" <\t\n")));
}

}  // namespace

OutputParser::OutputParser(const Capabilities& capabilities, bool parse_tools, bool in_reasoning)
    : capabilities_(capabilities),
      parse_tools_(parse_tools),
      state_(in_reasoning ? State::kReasoning : State::kStart),
      skip_blanks_(in_reasoning) {}

std::vector<OutputEvent> OutputParser::Feed(std::string_view chunk) {
  pending_ += chunk;
  while (!pending_.empty() && Step(/*at_end=*/false)) {
  }
  return std::exchange(events_, {});
}

std::vector<OutputEvent> OutputParser::Finish() {
  while ((!pending_.empty() || state_ == State::kToolCall) && Step(/*at_end=*/true)) {
  }
  return std::exchange(events_, {});
}

bool OutputParser::Reads(std::string_view control_token) const {
  if (harmony() || state_ == State::kToolCall) return true;
  const ToolCallMarkers& tools = capabilities_.tool_call_markers;
  const auto part_of = [&](std::string_view marker) { return marker.find(control_token) != marker.npos; };
  return part_of(capabilities_.think_open) || part_of(capabilities_.think_close) ||
         (parse_tools_ && (part_of(tools.open) || part_of(tools.close)));
}

bool OutputParser::Step(bool at_end) {
  if (skip_blanks_) {
    pending_.erase(0, pending_.find_first_not_of(kBlanks));
    if (pending_.empty()) return false;
    skip_blanks_ = false;
  }
  switch (state_) {
    case State::kStart:
      return StepStart(at_end);
    case State::kAnswer:
    case State::kReasoning:
      return StepText(at_end);
    case State::kToolCall:
      return StepToolCall(at_end);
    case State::kHeader:
      return StepHeader(at_end);
  }
  return false;
}

bool OutputParser::StepStart(bool at_end) {
  const size_t blanks = std::min(pending_.find_first_not_of(kBlanks), pending_.size());
  const std::string_view text = std::string_view(pending_).substr(blanks);
  if (text.empty() && !at_end) return false;
  const std::string_view open = harmony() ? kChannel : std::string_view(capabilities_.think_open);
  if (!at_end && IsProperPrefix(text, open)) return false;
  if (harmony()) {
    if (!at_end && IsProperPrefix(text, "to=")) return false;
    state_ = text.starts_with(kChannel) || text.starts_with("to=") ? State::kHeader : State::kAnswer;
    return true;
  }
  if (!open.empty() && text.starts_with(open)) {
    pending_.erase(0, blanks + open.size());
    state_ = State::kReasoning;
    skip_blanks_ = true;
    return true;
  }
  if (parse_tools_ && capabilities_.tool_call_markers.bare_json && MayBeBareToolCall(text)) {
    if (!at_end) return false;
    const std::string raw = std::exchange(pending_, {});
    EmitCalls(ParseBareToolCalls(raw), raw);
    return false;
  }
  state_ = State::kAnswer;
  return true;
}

std::vector<std::string_view> OutputParser::Terminators() const {
  if (harmony()) return {std::begin(kHarmonyEnds), std::end(kHarmonyEnds)};
  const ToolCallMarkers& markers = capabilities_.tool_call_markers;
  std::string_view marker;
  if (state_ == State::kReasoning) marker = capabilities_.think_close;
  if (state_ == State::kAnswer && parse_tools_) marker = markers.open;
  if (state_ == State::kToolCall) marker = markers.close;
  return marker.empty() ? std::vector<std::string_view>() : std::vector<std::string_view>{marker};
}

bool OutputParser::StepText(bool at_end) {
  const auto kind = state_ == State::kReasoning ? OutputEvent::Kind::kReasoning : OutputEvent::Kind::kAnswer;
  const bool thought_with_tags = state_ == State::kReasoning && !harmony();
  const std::vector<std::string_view> terminators = Terminators();
  std::string_view terminator;
  const size_t end = FindTerminator(pending_, terminators, 0, &terminator);
  if (end == std::string::npos) {
    size_t kept = at_end ? 0 : PartialMarker(pending_, terminators);
    if (thought_with_tags && !at_end) {
      // Blanks in front of what may become the closing tag, too.
      const size_t text = pending_.size() - kept;
      kept = pending_.size() - (std::string_view(pending_).substr(0, text).find_last_not_of(kBlanks) + 1);
    }
    Emit(kind, std::string_view(pending_).substr(0, pending_.size() - kept));
    pending_.erase(0, pending_.size() - kept);
    return false;
  }
  const std::string_view text = std::string_view(pending_).substr(0, end);
  Emit(kind, thought_with_tags ? text.substr(0, text.find_last_not_of(kBlanks) + 1) : text);
  if (harmony()) {
    state_ = State::kHeader;
    if (terminator == kStart || terminator == kChannel) terminator = {};
  } else if (thought_with_tags) {
    state_ = State::kStart;
    skip_blanks_ = true;
  } else {
    state_ = State::kToolCall;
  }
  pending_.erase(0, end + terminator.size());
  return true;
}

bool OutputParser::StepToolCall(bool at_end) {
  std::string_view terminator;
  const size_t found = FindTerminator(pending_, Terminators(), searched_, &terminator);
  searched_ = pending_.size();
  if (found == std::string::npos && !at_end) return false;
  searched_ = 0;
  const std::string body = pending_.substr(0, found);
  if (found == std::string::npos) terminator = {};
  const bool begins_next = terminator == kStart || terminator == kChannel;
  pending_.erase(0, body.size() + (begins_next ? 0 : terminator.size()));
  if (harmony()) {
    state_ = State::kHeader;
    events_.push_back({OutputEvent::Kind::kToolCall, "", {"", std::exchange(tool_name_, {}), body}});
    return true;
  }
  state_ = State::kAnswer;
  const std::string raw = capabilities_.tool_call_markers.open + body + std::string(terminator);
  EmitCalls(ParseToolCalls(body), raw);
  return true;
}

bool OutputParser::StepHeader(bool at_end) {
  const size_t end = pending_.find(kMessage);
  if (end > kMaxHeader && pending_.size() >= kMaxHeader + kMessage.size()) {
    // No header: that much is text, up to the border of a character.
    size_t size = kMaxHeader;
    while (size > 1 && (static_cast<unsigned char>(pending_[size]) & 0xc0) == 0x80) --size;
    state_ = State::kAnswer;
    Emit(OutputEvent::Kind::kAnswer, std::string_view(pending_).substr(0, size));
    pending_.erase(0, size);
    return true;
  }
  if (end == std::string::npos) {
    if (!at_end) return false;
    // A header cut off by the end is no text.
    if (pending_.starts_with(kStart) || pending_.starts_with(kChannel)) pending_.clear();
    Emit(OutputEvent::Kind::kAnswer, std::exchange(pending_, {}));
    return false;
  }
  const std::string_view header = std::string_view(pending_).substr(0, end);
  tool_name_ = parse_tools_ ? HeaderRecipient(header) : std::string();
  const bool analysis = header.find("analysis") != header.npos;
  state_ = !tool_name_.empty() ? State::kToolCall : analysis ? State::kReasoning : State::kAnswer;
  pending_.erase(0, end + kMessage.size());
  return true;
}

void OutputParser::Emit(OutputEvent::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (!events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
  } else {
    events_.push_back({kind, std::string(text), {}});
  }
}

void OutputParser::EmitCalls(std::vector<ToolCall> calls, std::string_view raw) {
  if (calls.empty()) return Emit(OutputEvent::Kind::kAnswer, raw);
  for (ToolCall& call : calls) events_.push_back({OutputEvent::Kind::kToolCall, "", std::move(call)});
  skip_blanks_ = true;
}

ParsedOutput ParseOutput(const Capabilities& capabilities, bool parse_tools, bool in_reasoning,
                         std::string_view text) {
  OutputParser parser(capabilities, parse_tools, in_reasoning);
  std::vector<OutputEvent> events = parser.Feed(text);
  for (OutputEvent& event : parser.Finish()) events.push_back(std::move(event));
  ParsedOutput output;
  for (OutputEvent& event : events) {
    if (event.kind == OutputEvent::Kind::kReasoning) output.reasoning += event.text;
    if (event.kind == OutputEvent::Kind::kAnswer) output.answer += event.text;
    if (event.kind == OutputEvent::Kind::kToolCall) output.tool_calls.push_back(std::move(event.call));
  }
  return output;
}

}  // namespace sluice::chat
