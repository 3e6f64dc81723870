#include "base/engine/peers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/text/error.h"
#include "base/text/installation.h"
#include "base/text/output_file.h"

namespace cm384::sim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLibrary = "lib/cm384/libcm384_mpi.so";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::uint64_t word_of(const Blob& blob) {
  std::uint64_t word = 0;
  if (blob.size() != sizeof word) throw PeerLost("the processes of this simulation are out of step");
  std::memcpy(&word, blob.data(), sizeof word);
  return word;
}

// Processes that a launcher of MPI says there are: mpirun, or Slurm's with PMIx.
int launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* size = std::getenv(name)) return std::atoi(size);
  }
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return std::getenv("PMIX_RANK") != nullptr && tasks != nullptr ? std::atoi(tasks) : 1;
}

}  // namespace

Peers& peers() {
  static Peers those;
  return those;
}

void Peers::join(std::unique_ptr<Transport> transport, const volatile std::sig_atomic_t& interrupted) {
  transport_ = std::move(transport);
  given_ = &interrupted;
  write_outputs_here(self() == 0);
}

void Peers::exchange(const std::vector<Blob>& out, std::vector<Blob>& in) {
  // An interrupted process goes on to where all stop; where none answers, the peers were ended.
  constexpr double kPatience = 0.5;
  const Clock::time_point begin = Clock::now();
  Clock::time_point noticed{};
  transport_->exchange(out, in, [&] {
    if (!interrupted_here()) return false;
    if (noticed == Clock::time_point{}) noticed = Clock::now();
    return seconds_since(noticed) > kPatience;
  });
  cost_.seconds += seconds_since(begin);
  ++cost_.exchanges;
  for (unsigned p = 0; p < count(); ++p) cost_.bytes += p == self() ? 0 : out[p].size();
}

void Peers::needs_one(std::string_view whoever) const {
  if (several())
    throw InputError(fmt::format("{}: not over several processes of MPI; run it without mpirun", whoever));
}

const std::vector<Blob>& Peers::all(std::span<const std::byte> mine) {
  out_.resize(count());
  for (Blob& blob : out_) blob.assign(mine.begin(), mine.end());
  if (!several()) return out_;
  exchange(out_, in_);
  in_[self()].assign(mine.begin(), mine.end());
  return in_;
}

std::uint64_t Peers::sum(std::uint64_t mine) {
  if (!several()) return mine;
  std::uint64_t sum = 0;
  for (const Blob& blob : all(std::as_bytes(std::span(&mine, 1)))) sum += word_of(blob);
  return sum;
}

std::uint64_t Peers::least(std::uint64_t mine) {
  if (!several()) return mine;
  std::uint64_t least = mine;
  for (const Blob& blob : all(std::as_bytes(std::span(&mine, 1)))) least = std::min(least, word_of(blob));
  return least;
}

Blob Peers::from(unsigned owner, std::span<const std::byte> theirs) {
  if (!several() || owner == self()) {
    Blob mine(theirs.begin(), theirs.end());
    if (several()) {
      out_.assign(count(), mine);
      exchange(out_, in_);
    }
    return mine;
  }
  out_.assign(count(), {});
  exchange(out_, in_);
  return std::move(in_[owner]);
}

void Peers::broadcast(unsigned owner, std::span<std::byte> bytes) {
  if (!several()) return;
  const Blob blob = from(owner, bytes);
  if (blob.size() != bytes.size()) throw PeerLost("the processes of this simulation are out of step");
  std::copy(blob.begin(), blob.end(), bytes.begin());
}

void Peers::end(int code, bool lost, const std::function<void()>& tell) {
  // Longer than any of them takes to come to the same end, also on a host with much else to do.
  constexpr double kPatience = 10, kAsLongAsItTakes = 1e9;
  if (!several()) return tell();
  if (lost) {
    if (self() == 0) tell();
    transport_->abort(code);
  }
  if (!transport_->meet(code == 0 ? kAsLongAsItTakes : kPatience)) {
    tell();
    transport_->abort(code);
  }
  if (self() == 0) tell();
  transport_->leave();
}

std::string why_no_mpi() {
  if (find_installed(kLibrary)) return {};
  return "libcm384_mpi.so is not there: this build has no MPI; install libopenmpi-dev and openmpi-bin and "
         "build "
         "again";
}

void join_peers(const volatile std::sig_atomic_t& interrupted) {
  if (launched() <= 1) return;
  const auto path = find_installed(kLibrary);
  if (!path) throw InputError(fmt::format("mpirun: {}", why_no_mpi()));
  // More processes than cores wait for each other's turn.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  void* const library = dlopen(path->c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw InputError(fmt::format("mpirun: {}", dlerror()));
  const auto abi = reinterpret_cast<decltype(&cm384_transport_abi)>(dlsym(library, "cm384_transport_abi"));
  const auto make = reinterpret_cast<decltype(&cm384_join_by_mpi)>(dlsym(library, "cm384_join_by_mpi"));
  if (abi == nullptr || make == nullptr || std::string_view(abi()) != kTransportAbi)
    throw InputError(fmt::format("mpirun: {}: is of another version of cm384", *path));
  std::unique_ptr<Transport> transport(make());
  if (transport->count() > 1) peers().join(std::move(transport), interrupted);
}

}  // namespace cm384::sim
