// Where tools listen to the whole machine. A probe that nobody listens to costs nothing: transactions are
// reported once Supernode::follow_transactions() was called, packets once trace_links() was, launches always
// (two per launch and die). Transactions and packets are reported at once, as they are too many to be queued,
// by the thread that runs the die or the sender: a listener that needs one order must declare it.
//
//     supernode.follow_transactions();
//     supernode.probes().transaction_begun.attach(&recorder, [](void* self, const npu::TransactionBegun& t) {
//       static_cast<Recorder*>(self)->begin(t);
//     });
#pragma once

#include "base/engine/probe.h"
#include "npu_core/devices/scheduler/task_record.h"
#include "npu_core/die/launch.h"
#include "system/machine/link_name.h"
#include "ub_fabric/fault.h"

namespace cm384::supernode {

struct LinkPacket {
  const LinkName& link;
  ub::Hop hop;
  Time start, tail;    // first and last moment on the wire
  int free_cells = 0;  // credits left on its lane
};

struct Probes {
  sim::Probe<const npu::TransactionBegun&> transaction_begun;
  sim::Probe<const npu::TransactionCompleted&> transaction_completed;
  // Transaction, target die, bytes, time: of writes and atomic adds.
  sim::Probe<sim::TransactionId, int, std::uint32_t, Time> transaction_arrived;
  sim::Probe<int, const npu::LaunchRecord&> launch_begun;  // die; at the first instruction
  sim::Probe<int, const npu::LaunchRecord&> launch_ended;
  sim::Probe<int, const npu::TaskRecord&> task_ended;  // die; every entry of a stream
  sim::Probe<const LinkPacket&> link_packet;
  // No module runs: those of dies and sockets have handled all before this time, and may be given events from
  // then on. Told once or twice a window, whatever the number of threads.
  sim::Probe<Time> between_windows;
};

// Gives a link's packets to the probe, with the link's name.
class LinkTap final : public ub::LinkObserver {
 public:
  LinkTap(const LinkName& name, const sim::Probe<const LinkPacket&>& probe) : name_(name), probe_(probe) {}
  void sent(ub::Hop hop, Time start, Time tail, int free_cells) override {
    if (probe_) probe_({name_, hop, start, tail, free_cells});
  }

 private:
  LinkName name_;
  const sim::Probe<const LinkPacket&>& probe_;
};

}  // namespace cm384::supernode
