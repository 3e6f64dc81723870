#include "workloads/fabric/switch_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/error.h"
#include "ub_fabric/output_stage.h"
#include "ub_fabric/virtual_output_queues.h"
#include "ub_fabric/wire_format.h"

namespace cm384::studies {
namespace {

ub::Parameters one_node(const hw::Machine& machine, const SwitchCase& setting) {
  ub::Parameters p{machine.topology, machine.ub, machine.cpu, machine.package_link};
  p.topology.kind = "clos";
  p.topology.nodes = 1;
  p.topology.dies_per_node = static_cast<int>(setting.ports);
  p.topology.sockets_per_node = 0;
  p.topology.sub_planes = 1;
  p.topology.l2_switches = 1;
  p.ub.switch_chip.routing = "spray";
  p.ub.link.lanes = static_cast<int>(setting.lanes + setting.lanes % 2);
  return p;
}

// All senders and receivers, one module.
class Ends {
 public:
  Ends(const ub::Parameters& parameters, const SwitchCase& setting, ub::PacketPool& packets,
       ub::SubPlane& plane)
      : setting_(setting),
        packets_(packets),
        plane_(plane),
        clock_(plane.timings().of_port(0).flit),
        cable_(plane.timings().of_port(0).latency),
        flits_(static_cast<unsigned>(ub::packet_flits(ub::PacketKind::write_request, setting.bytes))),
        destinations_(setting.pattern, setting.ports, setting.seed),
        queue_(1),
        uplinks_(queue_, 0, kPort, setting.ports, static_cast<unsigned>(parameters.ub.link.lanes),
                 {parameters.ub.link.retry_turnaround, parameters.ub.link.retry_timeout}),
        waiting_(setting.ports, static_cast<unsigned>(parameters.ub.link.lanes), 1),
        senders_(setting.ports),
        flows_(std::size_t{setting.ports} * setting.lanes * setting.ports),
        delivered_of_(setting.ports) {
    chance_ =
        static_cast<std::uint64_t>(setting.offered / flits_ * static_cast<double>(std::uint64_t{1} << 53));
    for (unsigned port = 0; port < setting.ports; ++port) {
      uplinks_.connect(port, clock_, cable_, parameters.ub.link.buffer_cells);
      plane.attach(static_cast<ub::Endpoint>(port),
                   {&queue_, 0, kDelivery, Time{}, Time{}, Time{}, &uplinks_, port, true, true, 0, Time{}});
      if (destinations_.sends(port)) ++sending_;
    }
    warm_up_ = setting.packets / 5;
    for (unsigned port = 0; port < setting.ports; ++port) {
      if (destinations_.sends(port)) begin(port);
    }
  }

  sim::EventQueue& queue() { return queue_; }
  // All has been sent and, but for what a blocked lane holds, delivered.
  bool done() const { return finished_sending() && expected_ == 0; }

  void run_until(Time end) {
    uplinks_.collect();
    queue_.run_until(end, [this](const sim::Event& event) { handle(event); });
  }

  SwitchReading reading() {
    if (last_ <= first_ || first_ == Time::never())
      throw InputError(
          fmt::format("{} packets were all sent before the first ones arrived; use more", setting_.packets));
    SwitchReading r;
    r.latency_ns = summarise(std::move(latencies_));
    r.chip_latency_ns = summarise(std::move(chip_latencies_));
    const double ticks = static_cast<double>(clock_.ticks(last_ - first_));
    double sum = 0, squares = 0;
    for (unsigned port = 0; port < setting_.ports; ++port) {
      const double flits = static_cast<double>(delivered_of_[port]) * flits_;
      sum += flits;
      squares += flits * flits;
    }
    r.throughput = sum / (ticks * setting_.ports);
    r.accepted = sum / (ticks * sending_);
    r.jain = squares == 0 ? 0 : sum * sum / (sending_ * squares);
    for (unsigned lane = 0; lane < setting_.lanes; ++lane)
      r.lane_mean_ns.push_back(lane_sum_ns_[lane] /
                               static_cast<double>(std::max<std::uint64_t>(1, lane_count_[lane])));
    r.sent = sent_;
    r.delivered = delivered_;
    r.wrong = wrong_;
    r.simulated = last_;
    return r;
  }

 private:
  enum What : std::uint32_t { kPort, kCreate, kDelivery };
  struct Sender {
    std::uint64_t draws = 0, created = 0;
    std::int64_t tick = 0;  // of its next packet
  };

  std::uint64_t draw(unsigned port) {
    return ub::mix(ub::mix(setting_.seed ^ std::uint64_t{port} << 32) + senders_[port].draws++);
  }

  void begin(unsigned port) {
    if (setting_.offered == 0) {
      for (unsigned k = 0; k < 4 * setting_.lanes; ++k) queue_.push(Time{}, 0, kCreate, port);
    } else {
      plan(port);
    }
  }
  // The next flit slot in which a packet is created: one slot as good as another.
  void plan(unsigned port) {
    Sender& s = senders_[port];
    do {
      ++s.tick;
    } while (draw(port) >> 11 >= chance_);
    queue_.push(clock_.start(s.tick), 0, kCreate, port);
  }
  bool finished_sending() const { return created_ >= warm_up_ + setting_.packets; }

  void handle(const sim::Event& event) {
    switch (static_cast<What>(event.what)) {
      case kPort: {
        const auto port = static_cast<unsigned>(event.argument);
        if (!uplinks_.woken(port, event.at)) return;
        ub::serve(uplinks_, waiting_, port, event.at,
                  [this](unsigned, unsigned to, unsigned, ub::Hop hop) { send(to, hop); });
        return;
      }
      case kCreate:
        create(static_cast<unsigned>(event.argument));
        return;
      case kDelivery:
        deliver(ub::Hop{event.argument}, event.at);
        return;
    }
  }

  void create(unsigned port) {
    if (finished_sending()) return;
    const std::uint64_t random = draw(port);
    const unsigned lane = static_cast<unsigned>(random >> 58) % setting_.lanes;
    const unsigned to =
        destinations_.pick(port, senders_[port].created++, random & ~(std::uint64_t{63} << 58));
    const ub::PacketIndex index = packets_.allocate();
    ub::Packet& p = packets_[index];
    p = ub::Packet{};
    p.sent = queue_.now();
    p.transaction = created_++;
    p.tag = flows_[flow(port, lane, to)].created++;
    p.source = static_cast<ub::Endpoint>(port);
    p.destination = static_cast<ub::Endpoint>(to);
    p.kind = ub::PacketKind::write_request;
    p.lane = static_cast<std::uint8_t>(lane);
    p.flits = static_cast<std::uint8_t>(flits_);
    if (!blocked(lane)) ++expected_;
    ub::offer(uplinks_, waiting_, port, lane, 0, ub::Hop(index, p), queue_.now(),
              [this](unsigned, unsigned link, unsigned, ub::Hop hop) { send(link, hop); });
    if (setting_.offered != 0) plan(port);
  }

  void send(unsigned port, ub::Hop hop) {
    const ub::Transmission t = uplinks_.transmit(port, hop, queue_.now());
    const Time arrival = t.start + cable_;
    packets_[hop.packet()].address = static_cast<std::uint64_t>(arrival.ps);
    plane_.inject(queue_, static_cast<ub::Endpoint>(port), hop, arrival);
    ++sent_;
    // A port that sends as much as goes creates a packet for each one sent.
    if (setting_.offered == 0) queue_.push(queue_.now(), 0, kCreate, port);
  }

  void deliver(ub::Hop hop, Time at) {
    const ub::Packet& p = packets_[hop.packet()];
    const Time left = at - cable_;  // the chip's output
    Flow& f = flows_[flow(p.source, p.lane, p.destination)];
    if (p.tag != f.delivered++ || hop.destination() != p.destination) ++wrong_;
    ++delivered_;
    // Throughput: what arrives after the last packet was created finds senders that have stopped.
    if (delivered_ > warm_up_ && !finished_sending()) {
      if (first_ == Time::never()) {
        first_ = left;
      } else {
        last_ = left;
        ++delivered_of_[p.source];
      }
    }
    if (p.transaction >= warm_up_) count(p, left);
    if (!blocked(p.lane)) {
      --expected_;
      plane_.free_cells(p.destination, p.lane, hop.cells(), at);
    }
    packets_.release(hop.packet());
  }
  void count(const ub::Packet& p, Time left) {
    latencies_.push_back((left - p.sent - cable_).ns());
    chip_latencies_.push_back((left - Time{static_cast<std::int64_t>(p.address)}).ns());
    lane_sum_ns_[p.lane] += latencies_.back();
    ++lane_count_[p.lane];
  }
  bool blocked(unsigned lane) const { return setting_.block_lane_0 && lane == 0; }

  struct Flow {
    std::uint32_t created = 0, delivered = 0;
  };
  std::size_t flow(unsigned from, unsigned lane, unsigned to) const {
    return (std::size_t{from} * setting_.lanes + lane) * setting_.ports + to;
  }

  const SwitchCase& setting_;
  ub::PacketPool& packets_;
  ub::SubPlane& plane_;
  Clock clock_;
  Time cable_;
  unsigned flits_;
  Destinations destinations_;
  sim::EventQueue queue_;
  ub::LinkBank uplinks_;
  ub::VirtualOutputQueues waiting_;
  std::vector<Sender> senders_;
  std::vector<Flow> flows_;
  std::uint64_t chance_ = 0;  // of a packet in a flit slot, in 2^-53
  unsigned sending_ = 0;
  std::uint64_t warm_up_ = 0;
  std::uint64_t expected_ = 0;  // packets created and not delivered, on lanes that are not blocked
  std::uint64_t created_ = 0, sent_ = 0, delivered_ = 0, wrong_ = 0;
  std::vector<double> latencies_, chip_latencies_;
  std::vector<std::uint64_t> delivered_of_;  // in the time that counts, by sender
  std::array<double, 8> lane_sum_ns_{};
  std::array<std::uint64_t, 8> lane_count_{};
  Time first_ = Time::never(), last_{};
};

}  // namespace

SwitchReading run_switch(const hw::Machine& machine, const SwitchCase& setting) {
  const ub::Parameters parameters = one_node(machine, setting);
  ub::PacketPool packets;
  ub::SubPlane plane(0, parameters, packets, 0, setting.seed);
  std::unique_ptr<ub::RtlSwitch> rtl;
  if (setting.rtl) {
    rtl = ub::make_rtl_switch(parameters, plane.timings().of_chip(0), setting.ports);
    if (!setting.waves.empty()) rtl->write_waves(setting.waves);
    plane.install(0, rtl.get());
  }
  Ends ends(parameters, setting, packets, plane);
  const Time window = plane.timings().shortest_endpoint_latency();
  for (;;) {
    const Time next = std::min(plane.queue().next_time(), ends.queue().next_time());
    if (next == Time::never() || ends.done()) break;
    plane.run_until(next + window);
    ends.run_until(next + window);
  }
  SwitchReading reading = ends.reading();
  reading.events = plane.queue().handled() + ends.queue().handled();
  if (rtl) {
    reading.rtl_cycles = rtl->counters().cycles;
    rtl->finish_waves();
  }
  return reading;
}

}  // namespace cm384::studies
