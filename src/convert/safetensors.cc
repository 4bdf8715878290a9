#include "convert/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/units.h"

namespace sluice::convert {

namespace {

using nlohmann::json;

constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxDims = 8;

// A tensor whose fields are being read.
struct Draft {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape, offsets;
};

// Follows the object's events and keeps the tensors. Stops at the first thing that is no part of the format,
// at whatever depth.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(uint64_t data_bytes) : data_bytes_(data_bytes) {}

  const std::optional<Error>& error() const { return error_; }
  std::vector<SourceTensor> TakeTensors() { return std::move(tensors_); }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("true or false"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected(fmt::format("the number {}", text.substr(0, 40)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (numbers_ == nullptr) return Unexpected(fmt::format("the number {}", value));
    if (numbers_->size() == kMaxDims)
      return Refuse(fmt::format("more than {} numbers in {}", kMaxDims, field_));
    numbers_->push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    if (in_metadata_) return true;
    if (depth_ != 2 || field_ != "dtype" || numbers_ != nullptr) return Unexpected("text");
    draft_.dtype = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return Unexpected("bytes"); }

  bool start_object(size_t) override {
    if (depth_ == 2 || numbers_ != nullptr) return Unexpected("an object");
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 2) {
      field_ = std::move(name);
      return true;
    }
    if (name.size() > kMaxNameBytes) return Refuse(fmt::format("a name of {} bytes", name.size()));
    if (!names_.insert(name).second) return Refuse(fmt::format("tensor {} is there twice", name));
    in_metadata_ = name == "__metadata__";
    draft_ = Draft{.name = std::move(name)};
    return true;
  }
  bool end_object() override {
    if (--depth_ == 0 || in_metadata_) {
      in_metadata_ = false;
      return true;
    }
    return FinishTensor();
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || numbers_ != nullptr) return Unexpected("an array");
    if (field_ == "shape") numbers_ = &draft_.shape.emplace();
    if (field_ == "data_offsets") numbers_ = &draft_.offsets.emplace();
    return numbers_ != nullptr || Unexpected("an array");
  }
  bool end_array() override {
    numbers_ = nullptr;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    return Refuse(fmt::format("no JSON at byte {} of the header", position));
  }

 private:
  bool Refuse(std::string what) {
    error_ = Fail(ErrorCode::kCorrupt, "{}", what);
    return false;
  }
  bool Unexpected(std::string_view found) {
    const std::string where = depth_ == 0   ? "the header"
                              : depth_ == 1 ? draft_.name
                                            : draft_.name + "." + field_;
    return Refuse(fmt::format("{}: {} is no part of the format", where, found));
  }

  bool FinishTensor() {
    if (!draft_.dtype || !draft_.shape || !draft_.offsets)
      return Refuse(fmt::format("tensor {} lacks dtype, shape or data_offsets", draft_.name));
    const auto type = ElementTypeByName(*draft_.dtype);
    if (!type)
      return Refuse(
          fmt::format("tensor {} has the unknown type {}", draft_.name, draft_.dtype->substr(0, 40)));
    if (draft_.offsets->size() != 2)
      return Refuse(fmt::format("tensor {}: data_offsets has {} numbers; expected 2", draft_.name,
                                draft_.offsets->size()));
    const uint64_t begin = (*draft_.offsets)[0], end = (*draft_.offsets)[1];
    if (begin > end || end > data_bytes_) {
      return Refuse(fmt::format("tensor {} lies at bytes {} to {}; the file has {} bytes of data",
                                draft_.name, begin, end, data_bytes_));
    }
    uint64_t bytes = ElementBytes(*type);
    bool overflow = false;
    for (const uint64_t n : *draft_.shape) overflow |= __builtin_mul_overflow(bytes, n, &bytes);
    if (overflow || bytes != end - begin) {
      return Refuse(fmt::format("tensor {}: shape [{}] of {} takes {} bytes; data_offsets give it {}",
                                draft_.name, fmt::join(*draft_.shape, ", "), Name(*type),
                                overflow ? std::string("more than 2^64") : std::to_string(bytes),
                                end - begin));
    }
    tensors_.push_back({.name = std::move(draft_.name),
                        .type = *type,
                        .shape = std::move(*draft_.shape),
                        .offset = begin,
                        .size_bytes = bytes});
    return true;
  }

  const uint64_t data_bytes_;
  int depth_ = 0;
  bool in_metadata_ = false;
  std::string field_;
  Draft draft_;
  std::vector<uint64_t>* numbers_ = nullptr;  // that an open array fills
  std::set<std::string, std::less<>> names_;
  std::vector<SourceTensor> tensors_;
  std::optional<Error> error_;
};

Status CheckPlaces(const std::vector<SourceTensor>& tensors, uint64_t data_bytes) {
  uint64_t end = 0;
  const SourceTensor* before = nullptr;
  for (const SourceTensor& tensor : tensors) {
    if (tensor.offset < end)
      return Fail(ErrorCode::kCorrupt, "tensor {} overlaps {}", tensor.name, before->name);
    if (tensor.offset > end)
      return Fail(ErrorCode::kCorrupt, "{} bytes before tensor {} belong to none", tensor.offset - end,
                  tensor.name);
    end = tensor.offset + tensor.size_bytes;
    before = &tensor;
  }
  if (end != data_bytes)
    return Fail(ErrorCode::kCorrupt, "{} bytes behind the last tensor belong to none", data_bytes - end);
  return {};
}

}  // namespace

Result<std::vector<SourceTensor>> ParseSafetensorsHeader(std::string_view text, uint64_t data_bytes) {
  HeaderReader reader(data_bytes);
  if (!json::sax_parse(text, &reader)) {
    return reader.error().value_or(Fail(ErrorCode::kCorrupt, "the header is no JSON object"));
  }
  std::vector<SourceTensor> tensors = reader.TakeTensors();
  std::ranges::stable_sort(
      tensors, {}, [](const SourceTensor& tensor) { return std::pair(tensor.offset, tensor.size_bytes); });
  SLUICE_TRY(CheckPlaces(tensors, data_bytes));
  return tensors;
}

Result<std::vector<SourceTensor>> ReadSafetensors(const platform::File& file) {
  SLUICE_TRY_ASSIGN(const uint64_t file_bytes, file.Size());
  uint64_t header_bytes = 0;
  if (file_bytes < sizeof(header_bytes))
    return Fail(ErrorCode::kCorrupt, "{} has {} bytes; a safetensors file begins with 8 bytes of length",
                file.path(), file_bytes);
  SLUICE_TRY(file.PreadFull(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  const uint64_t most = std::min(file_bytes - sizeof(header_bytes), kMaxSafetensorsHeader);
  if (header_bytes > most) {
    return Fail(ErrorCode::kCorrupt, "{} says that its header has {} bytes; expected at most {}", file.path(),
                header_bytes, most);
  }
  std::string text(static_cast<size_t>(header_bytes), '\0');
  SLUICE_TRY(file.PreadFull(sizeof(header_bytes), std::as_writable_bytes(std::span(text))));
  const uint64_t data = sizeof(header_bytes) + header_bytes;
  auto tensors = ParseSafetensorsHeader(text, file_bytes - data);
  if (!tensors) return Fail(tensors.error().code, "{}: {}", file.path(), tensors.error().message);
  for (SourceTensor& tensor : *tensors) tensor.offset += data;
  return tensors;
}

}  // namespace sluice::convert
