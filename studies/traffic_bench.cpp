#include "studies/traffic_bench.h"

#include <algorithm>
#include <memory>

#include "firmware/abi/memory_map.h"
#include "sim/peers.h"
#include "supernode/fabric_machine.h"
#include "traces/fixed_math.h"
#include "ub_fabric/controller.h"

namespace cm384::studies {
namespace {

// A request that has reached its target: a word, so that long runs fit into memory.
struct Arrival {
  std::uint64_t message = 0;  // source << 32 | number
  Time at;
};

// One die's port controllers, the source of its messages and the target of others.
class Endpoint final : public sim::RemoteClient, public sim::RemoteTarget {
 public:
  Endpoint(int die, const TrafficCase& setting, supernode::FabricMachine& machine, sim::EventQueue& queue,
           std::uint32_t unit)
      : setting_(setting),
        die_(die),
        queue_(queue),
        controller_(machine.parameters(), static_cast<ub::Endpoint>(die), queue, unit, machine.packets(),
                    machine.payloads()),
        end_(setting.warm_up + setting.measured) {
    controller_.set_client(*this);
    controller_.set_target(*this);
    machine.connect(controller_);
  }

  ub::UbController& controller() { return controller_; }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  const std::vector<TrafficMessage>& messages() const { return messages_; }
  // What the process that simulates it has seen.
  void learn_from(unsigned owner) {
    messages_ = sim::peers().list_from(owner, std::span<const TrafficMessage>(messages_));
    arrivals_ = sim::peers().list_from(owner, std::span<const Arrival>(arrivals_));
  }

  void begin(std::uint32_t generator, bool owned) {
    generator_ = generator;
    if (!owned) return;
    if (setting_.destinations->sends(static_cast<unsigned>(die_))) plan(Time{});
  }
  // An event of the generator: the next message.
  void create() {
    const Time now = queue_.now();
    const auto number = static_cast<std::uint32_t>(messages_.size());
    const auto to = static_cast<int>(setting_.destinations->pick(static_cast<unsigned>(die_), draw()));
    messages_.push_back({die_, to, now});
    int left = setting_.bytes;
    pending_.push_back((left + static_cast<int>(sim::kRequestBytes) - 1) /
                       static_cast<int>(sim::kRequestBytes));
    for (std::uint64_t offset = 0; left > 0; offset += sim::kRequestBytes) {
      sim::Request request;
      request.address = cm384_gm_die(static_cast<std::uint64_t>(to), offset) | CM384_GM_VIA_UB_BIT;
      request.at = now;
      request.transaction = static_cast<std::uint64_t>(die_) << 32 | number;
      request.bytes = static_cast<std::uint32_t>(std::min(left, static_cast<int>(sim::kRequestBytes)));
      request.tag = number;
      request.operation = setting_.writes ? sim::Operation::write : sim::Operation::read;
      request.core = static_cast<std::uint16_t>(number % kCores);
      left -= static_cast<int>(request.bytes);
      controller_.submit(request);
    }
    plan(now);
  }

  void completed(const sim::Completion& completion, Time at) override {
    if (--pending_[completion.tag] == 0) messages_[completion.tag].completed = at;
  }
  Time access(sim::Request& request, sim::Outcome& outcome) override {
    outcome = sim::Outcome::done;
    if (setting_.writes) arrivals_.push_back({request.transaction, request.at});
    return request.at;
  }

 private:
  static constexpr std::uint32_t kCores = 48;  // that flows are told apart by

  std::uint64_t draw() {
    return ub::mix(ub::mix(setting_.seed ^ static_cast<std::uint64_t>(die_) << 40) + draws_++);
  }
  void plan(Time now) {
    const double uniform =
        (static_cast<double>(draw() >> 11) + 0.5) / static_cast<double>(std::uint64_t{1} << 53);
    const double mean_ps = setting_.bytes / setting_.offered_GBps * 1e3;
    const Time next = now + Time{static_cast<std::int64_t>(-traces::natural_log(uniform) * mean_ps) + 1};
    if (next < end_) queue_.push(next, generator_, 0);
  }

  const TrafficCase& setting_;
  int die_;
  sim::EventQueue& queue_;
  std::uint32_t generator_ = 0;
  ub::UbController controller_;
  Time end_;
  std::uint64_t draws_ = 0;
  std::vector<TrafficMessage> messages_;
  std::vector<int> pending_;  // requests, by message
  std::vector<Arrival> arrivals_;
};

// The dies of a node in one queue: units of the controllers, then those of the generators.
class Node final : public supernode::FabricMachine::Module {
 public:
  Node(int first, int count, const TrafficCase& setting, supernode::FabricMachine& machine, bool owned)
      : queue_(machine.next_source()) {
    for (int n = 0; n < count; ++n)
      dies_.push_back(
          std::make_unique<Endpoint>(first + n, setting, machine, queue_, static_cast<std::uint32_t>(n)));
    machine.add(*this);
    for (std::uint32_t n = 0; n < dies_.size(); ++n)
      dies_[n]->begin(static_cast<std::uint32_t>(dies_.size()) + n, owned);
  }

  sim::EventQueue& queue() override { return queue_; }
  void run_until(Time end) override {
    queue_.run_until(end, [this](const sim::Event& event) {
      if (event.unit < dies_.size()) {
        dies_[event.unit]->controller().handle(event);
      } else {
        dies_[event.unit - dies_.size()]->create();
      }
    });
  }
  void hold_credits() override {
    for (const auto& die : dies_) die->controller().ports().hold_credits();
  }
  void exchange(ub::Crossings& crossings) override {
    crossings.events(queue_, [](const sim::Event& e) { return ub::UbController::brings_packet(e); });
    for (const auto& die : dies_) crossings.credits(die->controller().ports());
  }
  const std::vector<std::unique_ptr<Endpoint>>& dies() const { return dies_; }

 private:
  sim::EventQueue queue_;
  std::vector<std::unique_ptr<Endpoint>> dies_;
};

}  // namespace

TrafficReading run_traffic(const hw::Machine& machine, const TrafficCase& setting) {
  const hw::Topology& topology = machine.topology;
  supernode::FabricMachine fabric(machine,
                                  {setting.threads, setting.seed, setting.interrupted, setting.progress});
  std::vector<std::unique_ptr<Node>> nodes;
  for (int node = 0; node < topology.nodes; ++node)
    nodes.push_back(std::make_unique<Node>(
        node * topology.dies_per_node, topology.dies_per_node, setting, fabric,
        fabric.owner(static_cast<std::size_t>(node), static_cast<std::size_t>(topology.nodes)) ==
            sim::peers().self()));
  TrafficReading reading;
  const Time end = setting.warm_up + setting.measured;
  reading.complete = fabric.run_until(end);
  const auto waiting = [&] {
    const bool here = std::ranges::any_of(nodes, [](const auto& node) {
      return std::ranges::any_of(node->dies(),
                                 [](const auto& die) { return die->controller().pending() != 0; });
    });
    return sim::peers().sum(here ? 1 : 0) != 0;
  };
  for (Time reached = end; reading.complete && reached < end + setting.drain && waiting();) {
    reached += std::max(Time{1'000'000}, Time{setting.drain.ps / 20});
    reading.complete = fabric.run_until(reached);
  }
  for (std::size_t n = 0; sim::peers().several() && n < nodes.size(); ++n) {
    for (const auto& die : nodes[n]->dies()) die->learn_from(fabric.owner(n, nodes.size()));
  }
  std::vector<const Endpoint*> dies;
  for (const auto& node : nodes) {
    for (const auto& die : node->dies()) dies.push_back(die.get());
  }
  std::vector<std::vector<Time>> arrived(dies.size());
  for (std::size_t d = 0; d < dies.size(); ++d) arrived[d].resize(dies[d]->messages().size());
  for (const Endpoint* die : dies) {
    for (const Arrival& a : die->arrivals()) {
      Time& last = arrived[a.message >> 32][a.message & 0xffffffff];
      last = std::max(last, a.at);
    }
  }
  // What is completed while measured was created a little earlier: by the least time that a message takes.
  Time least = Time::never();
  for (const Endpoint* die : dies) {
    for (const TrafficMessage& m : die->messages()) {
      if (m.completed != Time::never()) least = std::min(least, m.completed - m.created);
    }
  }
  std::uint64_t created = 0, completed = 0;
  for (std::size_t d = 0; d < dies.size(); ++d) {
    for (std::size_t n = 0; n < dies[d]->messages().size(); ++n) {
      TrafficMessage message = dies[d]->messages()[n];
      if (message.completed != Time::never() && message.completed >= setting.warm_up + least &&
          message.completed < end + least)
        completed += static_cast<std::uint64_t>(setting.bytes);
      if (message.created < setting.warm_up) continue;
      created += static_cast<std::uint64_t>(setting.bytes);
      if (message.completed != Time::never())
        message.arrived = setting.writes ? arrived[d][n] : message.completed;
      reading.messages.push_back(message);
    }
  }
  const double per_die = static_cast<double>(dies.size()) * static_cast<double>(setting.measured.ps) / 1e3;
  reading.created_GBps = static_cast<double>(created) / per_die;
  reading.accepted_GBps = static_cast<double>(completed) / per_die;
  reading.events = fabric.events();
  for (int p = 0; p < fabric.planes(); ++p) reading.packet_hops += fabric.plane(p).packet_hops();
  for (const auto& node : nodes) {
    for (const auto& die : node->dies()) reading.packet_hops += die->controller().packet_hops();
  }
  reading.events = sim::peers().sum(reading.events);
  reading.packet_hops = sim::peers().sum(reading.packet_hops);
  reading.simulated = fabric.now();
  return reading;
}

}  // namespace cm384::studies
