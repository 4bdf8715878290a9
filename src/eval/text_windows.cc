#include "eval/text_windows.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::eval {

Result<TextWindows> CutWindows(std::span<const text::TokenId> ids, const WindowOptions& options) {
  SLUICE_CHECK(options.context >= 2);
  const int64_t tokens = static_cast<int64_t>(ids.size());
  if (tokens < 2) return Fail(ErrorCode::kInvalidArgument, "a text of {} tokens says nothing", tokens);
  const int64_t context = std::min(options.context, tokens);
  TextWindows windows{.window = options.whole ? tokens : context};
  windows.first_scored = !options.whole && windows.window == tokens ? 0 : context / 2;
  windows.first_scored = std::min(windows.first_scored, windows.window - 2);
  int64_t count = tokens / windows.window;
  if (options.most > 0) count = std::min(count, options.most);
  windows.ids.assign(ids.begin(), ids.begin() + count * windows.window);
  if (options.bos) {
    for (int64_t i = 0; i < count; ++i) windows.ids[static_cast<size_t>(i * windows.window)] = *options.bos;
  }
  return windows;
}

}  // namespace sluice::eval
