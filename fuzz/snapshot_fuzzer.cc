// Loads a snapshot that an attacker has touched into a session of a tiny model, and reads on where it is
// taken. The input is a list of changes to a sound snapshot, whose checksum is then made to fit:
//   which overflow (1 byte), then: offset (2 bytes), length 1 … 8 (1 byte), the bytes to put there, again and
//   again
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "gguf/byte_source.h"
#include "parallel/thread_pool.h"
#include "session/session.h"
#include "whole/tiny_model.h"

namespace sluice::session {
namespace {

struct World {
  parallel::ThreadPool pool{1};
  memory::Ledger ledger{uint64_t{1} << 30};
  runtime::Context context;
  std::unique_ptr<model::Model> model;
  std::array<std::unique_ptr<Session>, 3> sessions;
  std::array<std::vector<std::byte>, 3> sound;

  World() {
    const platform::CpuFeatures cpu = platform::DetectCpuFeatures();
    context = {.cpu = cpu, .kernels = &kernels::BestKernels(cpu), .pool = &pool, .ledger = &ledger};
    const std::string folder =
        std::filesystem::temp_directory_path() / fmt::format("sluice_fuzz_{}", ::getpid());
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/model.gguf", std::ios::binary) << whole::TinyLlama(256).BuildString();
    model = *model::Model::Open(context, folder + "/model.gguf");
    std::vector<TokenId> ids(300, 7);
    for (size_t i = 0; i < sessions.size(); ++i) {
      const bool stop = i == 0;
      sessions[i] = *Session::Create(
          context, *model, {.context_length = 256, .batch = 64, .overflow = static_cast<kv::Overflow>(i)});
      SLUICE_CHECK(sessions[i]->Read(std::span(ids).first(stop ? 100 : 300)).has_value());
      SLUICE_CHECK(sessions[i]->Save(folder + "/state", nullptr).has_value());
      std::ifstream file(folder + "/state", std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      const auto view = std::as_bytes(std::span(bytes));
      sound[i].assign(view.begin(), view.end());
    }
    std::filesystem::remove_all(folder);
  }
};

}  // namespace
}  // namespace sluice::session

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  static session::World world;
  std::span<const uint8_t> changes(data, size);
  const size_t which = changes.empty() ? 0 : changes[0] % 3u;
  std::vector<std::byte> bytes = world.sound[which];
  if (!changes.empty()) changes = changes.subspan(1);
  while (changes.size() >= 3) {
    const size_t offset = changes[0] | changes[1] << 8;
    const size_t length = std::min<size_t>(1 + changes[2] % 8, changes.size() - 3);
    for (size_t i = 0; i < length && offset + i < bytes.size(); ++i)
      bytes[offset + i] = std::byte{changes[3 + i]};
    changes = changes.subspan(3 + length);
  }
  const uint64_t checksum = HashBytes(std::span(bytes).first(bytes.size() - 8));
  std::memcpy(bytes.data() + bytes.size() - 8, &checksum, 8);
  session::Session& session = *world.sessions[which];
  std::optional<sample::SamplerState> sampler;
  if (session.LoadFrom(gguf::MemorySource(bytes), &sampler)) {
    const std::vector<text::TokenId> more(100, 9);
    (void)session.ReadAll(more, [](size_t, std::span<const float>) {});
  }
  return 0;
}
