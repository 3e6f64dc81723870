#include "workloads/fabric/traffic_bench.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include "base/engine/peers.h"
#include "system/machine/fabric_machine.h"
#include "workloads/fabric/traffic_endpoint.h"
#include "workloads/frame/confidence.h"

namespace cm384::studies {
namespace {

using Nodes = std::vector<std::unique_ptr<TrafficNode>>;

// Of all dies, whatever process simulates them.
TrafficTotals totals_of(const Nodes& nodes) {
  TrafficTotals all;
  for (const auto& node : nodes) {
    for (const auto& die : node->dies()) die->add_to(all);
  }
  for (std::uint64_t* number :
       {&all.created, &all.completed, &all.waited_ps, &all.left, &all.requests, &all.walks})
    *number = sim::peers().sum(*number);
  return all;
}

// What happened in a window of the warm-up.
struct Window {
  double created = 0, completed = 0, mean_ps = 0;
  Window(const TrafficTotals& before, const TrafficTotals& after)
      : created(static_cast<double>(after.created - before.created)),
        completed(static_cast<double>(after.completed - before.completed)),
        mean_ps(completed == 0 ? 0 : static_cast<double>(after.waited_ps - before.waited_ps) / completed) {}
  bool falls_behind() const { return completed < 0.95 * created; }
};

// Two windows in a row after which nothing changes any more but by chance: as much is completed, after as
// long; where less is completed than is created, the queues at the sources grow for ever.
bool agree(const Window& a, const Window& b) {
  if (a.completed == 0 || b.completed == 0) return false;
  const double tolerance = 0.05 + 2 / std::sqrt(std::min(a.completed, b.completed));
  const auto close = [&](double x, double y) { return std::abs(x - y) <= tolerance * std::max(x, y); };
  return close(a.completed, b.completed) &&
         (close(a.mean_ps, b.mean_ps) || (a.falls_behind() && b.falls_behind()));
}

// Runs until traffic is steady, at most the windows of the setting; false when interrupted.
bool warm_up(supernode::FabricMachine& fabric, const Nodes& nodes, const TrafficCase& setting,
             Time& reached) {
  if (setting.warm_up == Time{}) return true;
  TrafficTotals before{};
  std::vector<Window> windows;
  while (static_cast<int>(windows.size()) < setting.windows) {
    reached += setting.warm_up;
    if (!fabric.run_until(reached)) return false;
    const TrafficTotals after = totals_of(nodes);
    windows.emplace_back(before, after);
    before = after;
    if (windows.size() > 1 && agree(windows[windows.size() - 2], windows.back())) break;
  }
  return true;
}

// By target of requests: when the last of each message has arrived.
std::vector<std::vector<Time>> arrivals_of(const std::vector<const TrafficEndpoint*>& dies) {
  std::vector<std::vector<Time>> arrived(dies.size());
  for (std::size_t d = 0; d < dies.size(); ++d) arrived[d].resize(dies[d]->messages().size());
  for (const TrafficEndpoint* die : dies) {
    for (const TrafficArrival& a : die->arrivals()) {
      Time& last = arrived[a.message >> 32][a.message & 0xffffffff];
      last = std::max(last, a.at);
    }
  }
  return arrived;
}

// What was created and what was completed in each of twenty parts of the measured time.
class Throughput {
 public:
  Throughput(const std::vector<const TrafficEndpoint*>& dies, const TrafficCase& setting,
             const MeasuredTime& measured)
      : measured_(measured), length_(setting.measured) {
    // What is completed was created a little earlier: by the least time that a message takes.
    Time least = Time::never();
    for (const TrafficEndpoint* die : dies) {
      senders_ += setting.destinations->sends(static_cast<unsigned>(die->number())) ? 1 : 0;
      for (const TrafficMessage& m : die->messages()) {
        if (m.completed != Time::never()) least = std::min(least, m.completed - m.created);
      }
    }
    for (const TrafficEndpoint* die : dies) {
      for (const TrafficMessage& m : die->messages()) {
        count(created_, m.created);
        if (m.completed != Time::never()) count(completed_, m.completed - least);
      }
    }
    to_GBps_ = static_cast<double>(setting.bytes) * 1e3 / static_cast<double>(senders_) /
               static_cast<double>(length_.ps);
  }
  void report(TrafficReading& reading) const {
    double created = 0, completed = 0;
    std::vector<double> behind;
    for (std::size_t part = 0; part < kParts; ++part) {
      created += created_[part];
      completed += completed_[part];
      behind.push_back((created_[part] - completed_[part]) * kParts * to_GBps_);
    }
    reading.created_GBps = created * to_GBps_;
    reading.accepted_GBps = completed * to_GBps_;
    reading.accepted_ci95_GBps = summarise(std::move(behind)).ci95;
  }

 private:
  static constexpr std::size_t kParts = 20;
  using Parts = std::array<double, kParts>;
  void count(Parts& parts, Time at) const {
    if (!measured_.counts(at)) return;
    const double place = static_cast<double>((at - measured_.from).ps) / static_cast<double>(length_.ps);
    ++parts[std::min(kParts - 1, static_cast<std::size_t>(place * kParts))];
  }
  MeasuredTime measured_;
  Time length_;
  int senders_ = 0;
  double to_GBps_ = 0;  // from messages in the measured time
  Parts created_{}, completed_{};
};

// What dies of each level did, where there are several.
void add_levels(const std::vector<const TrafficEndpoint*>& all, const TrafficCase& setting,
                const MeasuredTime& measured, TrafficReading& reading) {
  std::map<int, std::vector<const TrafficEndpoint*>> levels;
  for (const TrafficEndpoint* die : all) levels[die->level()].push_back(die);
  if (levels.size() < 2) return;
  for (const auto& [level, dies] : levels) {
    TrafficReading::OfLevel& of = reading.levels.emplace_back();
    of.level = level;
    of.offered_GBps = dies.front()->offered_GBps();
    of.reading.began = reading.began;
    of.reading.ended = reading.ended;
    of.reading.miss_share = reading.miss_share;
    std::ranges::copy_if(reading.messages, std::back_inserter(of.reading.messages),
                         [&all, level = level](const TrafficMessage& m) {
                           return all[static_cast<std::size_t>(m.source)]->level() == level;
                         });
    Throughput(dies, setting, measured).report(of.reading);
  }
}

}  // namespace

std::vector<double> TrafficReading::latencies_us() const {
  std::vector<double> all;
  for (const TrafficMessage& m : messages) all.push_back((std::min(m.arrived, ended) - m.created).us());
  return all;
}

std::vector<double> TrafficReading::completions_us() const {
  std::vector<double> all;
  for (const TrafficMessage& m : messages) all.push_back((std::min(m.completed, ended) - m.created).us());
  return all;
}

std::size_t TrafficReading::unfinished() const {
  return static_cast<std::size_t>(std::ranges::count(messages, Time::never(), &TrafficMessage::completed));
}

bool TrafficReading::saturated() const {
  const double behind = created_GBps - accepted_GBps;
  return unfinished() > 0 || (behind > accepted_ci95_GBps && behind > 0.005 * created_GBps);
}

TrafficReading run_traffic(const hw::Machine& machine, const TrafficCase& setting) {
  const hw::Topology& topology = machine.topology;
  supernode::FabricMachine fabric(machine, {.threads = setting.threads,
                                            .threads_why = setting.threads_why,
                                            .what_if_threads = setting.what_if_threads,
                                            .seed = setting.seed,
                                            .interrupted = setting.interrupted,
                                            .progress = setting.progress});
  MeasuredTime measured;
  Nodes nodes;
  for (int node = 0; node < topology.nodes; ++node)
    nodes.push_back(std::make_unique<TrafficNode>(
        node * topology.dies_per_node, topology.dies_per_node, setting, measured, fabric,
        fabric.owner(static_cast<std::size_t>(node), static_cast<std::size_t>(topology.nodes))));
  TrafficReading reading;
  Time reached{};
  reading.complete = warm_up(fabric, nodes, setting, reached);
  measured = {reached, reached + setting.measured};
  const TrafficTotals before = totals_of(nodes);
  if (reading.complete) reading.complete = fabric.run_until(reached = measured.end);
  TrafficTotals after = totals_of(nodes);
  reading.miss_share = after.requests == before.requests
                           ? 0
                           : static_cast<double>(after.walks - before.walks) /
                                 static_cast<double>(after.requests - before.requests);
  while (reading.complete && after.left > 0 && reached < measured.end + setting.drain) {
    reached += std::max(Time{1'000'000}, Time{(reached - measured.end).ps / 4});
    reading.complete = fabric.run_until(reached);
    after = totals_of(nodes);
  }
  reading.began = measured.from;
  reading.ended = reached;
  for (std::size_t n = 0; sim::peers().several() && n < nodes.size(); ++n) {
    for (const auto& die : nodes[n]->dies()) die->learn_from(fabric.owner(n, nodes.size()));
  }
  std::vector<const TrafficEndpoint*> dies;
  for (const auto& node : nodes) {
    for (const auto& die : node->dies()) dies.push_back(die.get());
  }
  const std::vector<std::vector<Time>> arrived = arrivals_of(dies);
  for (std::size_t d = 0; d < dies.size(); ++d) {
    for (std::size_t n = 0; n < dies[d]->messages().size(); ++n) {
      TrafficMessage message = dies[d]->messages()[n];
      if (!measured.counts(message.created)) continue;
      if (message.completed != Time::never())
        message.arrived = setting.writes ? arrived[d][n] : message.completed;
      reading.messages.push_back(message);
    }
  }
  Throughput(dies, setting, measured).report(reading);
  add_levels(dies, setting, measured, reading);
  reading.events = fabric.events();
  for (int p = 0; p < fabric.planes(); ++p) reading.packet_hops += fabric.plane(p).packet_hops();
  for (const auto& node : nodes) {
    for (const auto& die : node->dies()) reading.packet_hops += die->controller().packet_hops();
  }
  reading.events = sim::peers().sum(reading.events);
  reading.packet_hops = sim::peers().sum(reading.packet_hops);
  reading.simulated = fabric.now();
  reading.threads = fabric.thread_choice().threads();
  reading.threads_why = fabric.thread_choice().why();
  reading.what_if = fabric.thread_choice().what_if();
  return reading;
}

}  // namespace cm384::studies
