#include "loading_progress.h"

namespace sluice::app {

void LoadingProgress::Show(int64_t done, int64_t total) {
  if (!line_) {
    // A session that has answered before finds everything there.
    loaded_ = model_.parts().store().loaded_share() >= 1;
    line_.emplace(loaded_ ? reading_ : "loading", loaded_ ? static_cast<double>(done) : 0, now_);
  }
  if (!loaded_ && FirstPassIsOver()) {
    loaded_ = true;
    line_.emplace(reading_, static_cast<double>(done), now_);
  }
  if (!loaded_ && line_->due()) line_->Show(model_.parts().store().loaded_share(), 1);
  if (loaded_ && session_ != nullptr) line_->Show(static_cast<double>(done), static_cast<double>(total));
  if (done == total) Clear();
}

void LoadingProgress::Clear() {
  if (line_) line_->Clear();
}

}  // namespace sluice::app
