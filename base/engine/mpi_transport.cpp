// Peers by MPI: the library that peers.cpp loads.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <climits>
#include <cstdlib>

#include "base/engine/peers.h"

namespace cm384::sim {
namespace {

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int self = 0, count = 0, here = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    MPI_Comm_free(&host);
    self_ = static_cast<unsigned>(self);
    count_ = static_cast<unsigned>(count);
    here_ = static_cast<unsigned>(here);
  }

  unsigned self() const override { return self_; }
  unsigned count() const override { return count_; }
  unsigned on_this_host() const override { return here_; }

  void exchange(const std::vector<Blob>& out, std::vector<Blob>& in,
                const std::function<bool()>& give_up) override {
    // A peer may be one exchange ahead, no more.
    const int tag = static_cast<int>(exchanges_++ & 1);
    in.resize(count_);
    sends_.clear();
    for (unsigned n = 1; n < count_; ++n) {
      const unsigned to = (self_ + n) % count_;
      if (out[to].size() > INT_MAX) throw PeerLost("more than 2 GiB to a process at once");
      sends_.emplace_back();
      MPI_Isend(out[to].data(), static_cast<int>(out[to].size()), MPI_BYTE, static_cast<int>(to), tag,
                MPI_COMM_WORLD, &sends_.back());
    }
    for (unsigned left = count_ - 1; left != 0; --left) receive(in, tag, give_up);
    wait(give_up, [&] {
      int done = 0;
      MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE);
      return done != 0;
    });
  }

  bool meet(double seconds) override {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return true;
      if (std::chrono::duration<double>(Clock::now() - begin).count() > seconds) return false;
      sched_yield();
    }
  }
  void leave() override { MPI_Finalize(); }
  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  // Tries until it is done; in between the core is others'.
  template <class Try>
  static void wait(const std::function<bool()>& give_up, Try&& attempt) {
    constexpr int kTries = 20;
    for (int tries = 0; !attempt(); ++tries) {
      if (tries < kTries) continue;
      if (give_up()) throw PeerLost("a process of this simulation has ended");
      sched_yield();
    }
  }

  void receive(std::vector<Blob>& in, int tag, const std::function<bool()>& give_up) {
    MPI_Message message;
    MPI_Status status;
    wait(give_up, [&] {
      int found = 0;
      MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found, &message, &status);
      return found != 0;
    });
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Blob& blob = in[static_cast<unsigned>(status.MPI_SOURCE)];
    blob.resize(static_cast<std::size_t>(bytes));
    MPI_Request request;
    MPI_Imrecv(blob.data(), bytes, MPI_BYTE, &message, &request);
    wait(give_up, [&] {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }

  unsigned self_ = 0, count_ = 1, here_ = 1;
  std::uint64_t exchanges_ = 0;
  std::vector<MPI_Request> sends_;
};

}  // namespace
}  // namespace cm384::sim

const char* cm384_transport_abi() {
  return cm384::sim::kTransportAbi.data();
}

cm384::sim::Transport* cm384_join_by_mpi() {
  return new cm384::sim::MpiTransport;
}
