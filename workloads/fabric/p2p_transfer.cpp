// Point to point by an accelerator's queue of transfers.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "ub_fabric/controller.h"
#include "workloads/fabric/p2p_sdma.h"
#include "workloads/frame/session.h"

namespace cm384::studies {
namespace {

// One transfer after another, each given when the machine has done the one before.
class Transfers final : public supernode::Driver, public ub::LinkObserver {
 public:
  explicit Transfers(supernode::Supernode& machine)
      : machine_(machine), accelerator_(machine.accelerator(0)), unit_(machine.attach(0, *this)) {
    machine.follow_transactions();
    machine.probes().transaction_completed.attach(this, [](void* self, const npu::TransactionCompleted& t) {
      static_cast<Transfers*>(self)->ended(t);
    });
    ub::LinkBank& ports = machine.controller(0).ports();
    for (unsigned port = 0; port < static_cast<unsigned>(machine.parameters().topology.sub_planes); ++port)
      ports.attach_observer(port, this);
    if (machine.has_rdma())
      machine.rdma_interface(0).request_sent.attach(
          this, [](void* self, Time at) { static_cast<Transfers*>(self)->note_first_request(at); });
  }
  ~Transfers() { machine_.probes().transaction_completed.detach(this); }

  // False when interrupted.
  bool run(std::uint64_t destination, std::uint64_t source, std::uint64_t bytes) {
    transfer_ = {source, destination, bytes, transfer_.id + 1};
    begun = ended_at = first_request = Time{};
    ++machine_.unfinished();
    accelerator_.queue().push(machine_.earliest(), unit_, 0);
    return machine_.run();
  }
  Time begun, ended_at, first_request;

  void handle(int, const sim::Event& event) override {
    begun = event.at;
    accelerator_.transfer(transfer_);
  }
  void sent(ub::Hop, Time start, Time, int) override { note_first_request(start); }

 private:
  void note_first_request(Time at) {
    if (begun != Time{} && first_request == Time{}) first_request = at;
  }
  void ended(const npu::TransactionCompleted& transaction) {
    if (transaction.die != 0 || transaction.id != transfer_.id) return;
    ended_at = transaction.at;
    --machine_.unfinished();
  }

  supernode::Supernode& machine_;
  npu::Accelerator& accelerator_;
  npu::Transfer transfer_;
  std::uint32_t unit_;
};

}  // namespace

SdmaReading measure_transfer(const StudyContext& context, const P2pPoint& point, SimulatorCounts& counts) {
  const Counterpart counterpart = find_counterpart(point, context.machine.topology);
  SessionOptions options;
  options.dies = counterpart.dies;
  options.sockets = counterpart.sockets;
  options.rdma = point.rdma;
  options.what = fmt::format("p2p transfer, {} {} {}, {} B", point.operation, point.target, point.distance,
                             point.bytes.count);
  Session session(context, options);
  const Ends ends = allocate_ends(session.runtime(), point, counterpart);
  const auto bytes = static_cast<std::uint64_t>(point.bytes.count);
  Transfers transfers(session.machine());
  SdmaReading reading;
  // The first one warms up translations.
  const bool finished =
      transfers.run(ends.destination, ends.source, std::min<std::uint64_t>(bytes, 64 * 1024)) &&
      transfers.run(ends.destination, ends.source, bytes);
  session.count(counts);
  if (!finished) return reading;
  const bool cores = context.machine.accelerator.has_cores();
  const Time begun = transfers.begun + (cores ? Time{} : context.machine.transfer_engine.start_latency);
  reading.latency_us = (transfers.ended_at - transfers.begun).us();
  if (transfers.first_request != Time{})
    reading.startup_us = (transfers.first_request - transfers.begun).us();
  reading.bandwidth_GBps = static_cast<double>(bytes) / ((transfers.ended_at - begun).us() * 1e3);
  return reading;
}

}  // namespace cm384::studies
