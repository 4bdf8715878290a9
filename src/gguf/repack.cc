#include "gguf/repack.h"

#include <utility>

#include "base/check.h"
#include "gguf/writer.h"

namespace sluice::gguf {

Result<RepackReport> Repack(const GgufFile& source, Metadata metadata, const RepackOptions& options,
                            const SinkOpener& open) {
  std::vector<const Tensor*> order = options.order;
  if (order.empty()) {
    for (const Tensor& tensor : source.tensors()) order.push_back(&tensor);
  }
  SLUICE_CHECK(order.size() == source.tensors().size());
  if (options.alignment != 0) metadata.SetU32(kAlignmentKey, options.alignment);
  Writer writer(std::move(metadata));
  ReserveChecksums(order.size(), writer.metadata());
  SLUICE_TRY(AddTensors(order, writer));
  SLUICE_TRY_ASSIGN(const uint64_t file_bytes, writer.FileBytes());
  SLUICE_TRY_ASSIGN(TensorCopier copier, TensorCopier::Create(source, options.progress));
  SLUICE_TRY_ASSIGN(const std::unique_ptr<ByteSink> sink, open(file_bytes));
  SLUICE_TRY(writer.Begin(*sink));
  for (const Tensor* tensor : order) SLUICE_TRY(copier.Copy(*tensor, writer));
  SLUICE_TRY(copier.WriteChecksums(std::span(&writer, 1)));
  SLUICE_TRY(writer.Finish());
  return RepackReport{.tensors = order.size(), .file_bytes = file_bytes, .compared = copier.compares()};
}

Result<RepackReport> RepackFile(const GgufFile& source, Metadata metadata, const RepackOptions& options,
                                const std::string& output) {
  SLUICE_TRY_ASSIGN(const auto inputs, platform::IdentitiesOf(source.Paths()));
  return Repack(source, std::move(metadata), options,
                [&](uint64_t file_bytes) { return CreateFileSink(output, file_bytes, inputs); });
}

}  // namespace sluice::gguf
