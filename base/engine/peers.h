// Processes that simulate one machine together, by MPI (docs/scale.md). Each of them runs the same program
// with the same input and owns a part of the machine's modules; this is how they reach each other. All calls
// but self() and count() are made by all of them, in the same order.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cm384::sim {

using Blob = std::vector<std::byte>;

// A peer has ended, or cannot be reached.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What carries bytes from peer to peer. That by MPI is a library of its own, lib/cm384/libcm384_mpi.so, which
// is loaded where mpirun has started the program.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual unsigned self() const = 0;
  virtual unsigned count() const = 0;
  virtual unsigned on_this_host() const = 0;
  // out[p] goes to peer p, in[p] has come from it; what stands at one's own place is left alone. Waits as
  // long as `give_up()` is false, then throws PeerLost.
  virtual void exchange(const std::vector<Blob>& out, std::vector<Blob>& in,
                        const std::function<bool()>& give_up) = 0;
  // False where not all processes have called this within so many seconds.
  virtual bool meet(double seconds) = 0;
  // After it nothing else; all peers end with this code where some have not come here.
  virtual void leave() = 0;
  [[noreturn]] virtual void abort(int code) = 0;
};

class Peers {
 public:
  unsigned self() const { return transport_ ? transport_->self() : 0; }
  unsigned count() const { return transport_ ? transport_->count() : 1; }
  bool several() const { return transport_ != nullptr; }
  unsigned on_this_host() const { return transport_ ? transport_->on_this_host() : 1; }

  void join(std::unique_ptr<Transport> transport, const volatile std::sig_atomic_t& interrupted);
  // Not 0 once it is known to all peers that one was interrupted: they stop at the same place. Where there is
  // only one, what it was given.
  const volatile std::sig_atomic_t& interrupted() const { return agreed_; }
  // Whether the flag given to this process is set.
  bool interrupted_here() const { return given_ != nullptr && *given_ != 0; }
  void agree_on_interruption() { agreed_ = 1; }

  void exchange(const std::vector<Blob>& out, std::vector<Blob>& in);
  // What each gives, by peer.
  const std::vector<Blob>& all(std::span<const std::byte> mine);
  std::uint64_t sum(std::uint64_t mine);
  std::uint64_t least(std::uint64_t mine);
  // Throws InputError where there are several: `whoever` looks at what one process has not.
  void needs_one(std::string_view whoever) const;

  // What the owner gives gets to all.
  Blob from(unsigned owner, std::span<const std::byte> theirs);
  template <class T>
  std::vector<T> list_from(unsigned owner, std::span<const T> theirs) {
    static_assert(std::is_trivially_copyable_v<T>);
    const Blob blob = from(owner, std::as_bytes(theirs));
    std::vector<T> list(blob.size() / sizeof(T));
    if (!list.empty()) std::memcpy(list.data(), blob.data(), list.size() * sizeof(T));
    return list;
  }
  // As above, in place.
  void broadcast(unsigned owner, std::span<std::byte> bytes);

  // Ends this process's part with an exit code. Where all come here, the first alone tells how it ended;
  // where some do not within seconds, for it went wrong here alone, this process does, and all are ended.
  // `lost`: for a peer has ended.
  void end(int code, bool lost, const std::function<void()>& tell);

  // Waiting and copying so far.
  struct Cost {
    double seconds = 0;
    std::uint64_t exchanges = 0, bytes = 0;
  };
  const Cost& cost() const { return cost_; }

 private:
  std::unique_ptr<Transport> transport_;
  const volatile std::sig_atomic_t* given_ = nullptr;
  volatile std::sig_atomic_t agreed_ = 0;
  std::vector<Blob> out_, in_;
  Cost cost_;
};

// Those of this process.
Peers& peers();

// Joins those that mpirun has started; does nothing where it has not. Throws InputError where the build has
// no MPI.
void join_peers(const volatile std::sig_atomic_t& interrupted);
// Whether the library is there: empty, or why it is not, and how to get it.
std::string why_no_mpi();

// Version of the interface to the library.
inline constexpr std::string_view kTransportAbi = "cm384 transport 1";

}  // namespace cm384::sim

extern "C" {
const char* cm384_transport_abi();
cm384::sim::Transport* cm384_join_by_mpi();
}
