// A terminal for tests: keeps what the few escape sequences of the editor would leave on the screen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/glyphs.h"

namespace sluice::app::testing {

class Screen {
 public:
  void Write(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size();) {
      if (bytes[at] == '\r') {
        column_ = 0;
        ++at;
      } else if (bytes[at] == '\n') {
        if (++row_ == rows_.size()) rows_.emplace_back();
        ++at;
      } else if (bytes[at] == '\033') {
        at = Escape(bytes, at + 2);
      } else {
        const size_t end = NextCharacter(bytes, at);
        Put(bytes.substr(at, end - at));
        at = end;
      }
    }
  }

  // Rows without the blanks at their ends.
  std::vector<std::string> rows() const {
    std::vector<std::string> rows;
    for (const auto& cells : rows_) {
      std::string row;
      for (const std::string& cell : cells) row += cell;
      row.erase(row.find_last_not_of(' ') + 1);
      rows.push_back(row);
    }
    return rows;
  }
  size_t row() const { return row_; }
  size_t column() const { return column_; }

 private:
  void Put(std::string_view character) {
    std::vector<std::string>& cells = rows_[row_];
    const size_t columns = static_cast<size_t>(Columns(character));
    if (cells.size() < column_ + columns) cells.resize(column_ + columns, " ");
    cells[column_] = character;
    for (size_t i = 1; i < columns; ++i) cells[column_ + i].clear();  // the right half of a wide character
    column_ += columns;
  }

  size_t Escape(std::string_view bytes, size_t at) {
    size_t number = 0;
    while (bytes[at] >= '0' && bytes[at] <= '9') number = number * 10 + static_cast<size_t>(bytes[at++] - '0');
    switch (bytes[at]) {
      case 'A': row_ -= number; break;
      case 'B': row_ += number; break;
      case 'C': column_ += number; break;
      case 'H': row_ = column_ = 0; break;
      case 'J':
        rows_.resize(number == 2 ? 0 : row_ + 1);
        if (number != 2) rows_[row_].resize(std::min(rows_[row_].size(), column_));
        rows_.resize(std::max(rows_.size(), row_ + 1));
        break;
      default: break;
    }
    return at + 1;
  }

  std::vector<std::vector<std::string>> rows_{1};
  size_t row_ = 0, column_ = 0;
};

}  // namespace sluice::app::testing
