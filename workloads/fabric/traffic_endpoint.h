// The dies of a machine as traffic sees them: sources of messages and targets of others', a node's dies in
// one queue.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/engine/peers.h"
#include "firmware/abi/memory_map.h"
#include "system/machine/fabric_machine.h"
#include "traces/fixed_math.h"
#include "ub_fabric/controller.h"
#include "workloads/fabric/traffic_bench.h"

namespace cm384::studies {

// A request that has reached its target: a word, so that long runs fit into memory.
struct TrafficArrival {
  std::uint64_t message = 0;  // source << 32 | number
  Time at;
};

// When messages count. It changes between windows of the run alone.
struct MeasuredTime {
  Time from = Time::never(), end = Time::never();
  bool counts(Time created) const { return created >= from && created < end; }
};

// Since the start: of one die, or of all.
struct TrafficTotals {
  std::uint64_t created = 0, completed = 0;  // messages
  std::uint64_t waited_ps = 0;               // of those completed, from creation to completion
  std::uint64_t left = 0;                    // messages that count and are not completed
  std::uint64_t requests = 0, walks = 0;     // issued; walks of translation tables
};

// One die's port controllers, the source of its messages and the target of others.
class TrafficEndpoint final : public sim::RemoteClient, public sim::RemoteTarget {
 public:
  TrafficEndpoint(int die, const TrafficCase& setting, const MeasuredTime& measured,
                  supernode::FabricMachine& machine, sim::EventQueue& queue, std::uint32_t unit)
      : setting_(setting),
        measured_(measured),
        die_(die),
        queue_(queue),
        controller_(machine.parameters(), static_cast<ub::Endpoint>(die), queue, unit, machine.packets(),
                    machine.payloads()),
        level_(machine.parameters().ub.qos.die_level(die)),
        offered_GBps_(
            setting.offered_GBps *
            setting.level_loads[std::min(static_cast<std::size_t>(level_), setting.level_loads.size() - 1)]) {
    controller_.set_client(*this);
    controller_.set_target(*this);
    machine.connect(controller_);
    const hw::UbController& limits = machine.parameters().ub.controller;
    most_submitted_ = (setting.writes ? limits.write_outstanding : limits.read_outstanding) + 2 * requests();
    if (setting.warm_translation) warm_translation(machine.parameters().ub.translation.page);
  }

  int number() const { return die_; }
  int level() const { return level_; }  // of service
  double offered_GBps() const { return offered_GBps_; }
  ub::UbController& controller() { return controller_; }
  const std::vector<TrafficArrival>& arrivals() const { return arrivals_; }
  const std::vector<TrafficMessage>& messages() const { return messages_; }
  // What the process that simulates it has seen.
  void learn_from(unsigned owner) {
    messages_ = sim::peers().list_from(owner, std::span<const TrafficMessage>(messages_));
    arrivals_ = sim::peers().list_from(owner, std::span<const TrafficArrival>(arrivals_));
  }

  void begin(std::uint32_t generator, bool owned) {
    generator_ = generator;
    if (owned && setting_.destinations->sends(static_cast<unsigned>(die_))) plan(Time{});
  }
  // An event of the generator: the next message.
  void create() {
    const Time now = queue_.now();
    const auto to =
        static_cast<int>(setting_.destinations->pick(static_cast<unsigned>(die_), messages_.size(), draw()));
    messages_.push_back({die_, to, now});
    pending_.push_back(requests());
    if (measured_.counts(now)) ++left_;
    submit();
    // Once no further message counts, a queue that keeps its die busy need not grow.
    paused_ = now >= measured_.end && messages_.size() - submitted_ > kEnough;
    if (!paused_) plan(now);
  }

  void completed(const sim::Completion& completion, Time at) override {
    --in_controller_;
    if (--pending_[completion.tag] == 0) {
      TrafficMessage& message = messages_[completion.tag];
      message.completed = at;
      ++completed_;
      waited_ps_ += static_cast<std::uint64_t>((at - message.created).ps);
      if (measured_.counts(message.created)) --left_;
    }
    submit();
    if (paused_ && messages_.size() - submitted_ <= kEnough) {
      paused_ = false;
      plan(at);
    }
  }
  Time access(sim::Request& request, sim::Outcome& outcome) override {
    outcome = sim::Outcome::done;
    if (setting_.writes) arrivals_.push_back({request.transaction, request.at});
    return request.at;
  }
  void add_to(TrafficTotals& totals) const {
    totals.created += messages_.size();
    totals.completed += completed_;
    totals.waited_ps += waited_ps_;
    totals.left += left_;
    totals.requests += controller_.counters().reads + controller_.counters().writes;
    totals.walks += controller_.counters().translation_misses;
  }

 private:
  static constexpr std::uint32_t kCores = 48;  // that flows are told apart by
  static constexpr std::size_t kEnough = 64;   // messages that wait at a source

  int requests() const {
    return (setting_.bytes + static_cast<int>(sim::kRequestBytes) - 1) / static_cast<int>(sim::kRequestBytes);
  }
  static std::uint64_t address(int die, std::uint64_t offset) {
    return cm384_gm_die(static_cast<std::uint64_t>(die), offset) | CM384_GM_VIA_UB_BIT;
  }
  // Every page that it will ever use, as after any length of the same traffic.
  void warm_translation(Bytes page) {
    for (unsigned to = 0; to < setting_.destinations->ports(); ++to) {
      if (setting_.destinations->share(static_cast<unsigned>(die_), to) == 0) continue;
      for (std::int64_t offset = 0; offset < setting_.bytes; offset += page.count)
        controller_.warm_translation(address(static_cast<int>(to), static_cast<std::uint64_t>(offset)));
    }
  }

  // Messages wait here, as numbers, where the controller holds all that it could issue.
  void submit() {
    while (submitted_ < messages_.size() && in_controller_ < most_submitted_) submit_next();
  }
  void submit_next() {
    const auto number = static_cast<std::uint32_t>(submitted_++);
    const int to = messages_[number].destination;
    in_controller_ += requests();
    int left = setting_.bytes;
    for (std::uint64_t offset = 0; left > 0; offset += sim::kRequestBytes) {
      sim::Request request;
      request.address = address(to, offset);
      request.at = queue_.now();
      request.transaction = static_cast<std::uint64_t>(die_) << 32 | number;
      request.bytes = static_cast<std::uint32_t>(std::min(left, static_cast<int>(sim::kRequestBytes)));
      request.tag = number;
      request.operation = setting_.writes ? sim::Operation::write : sim::Operation::read;
      request.core = static_cast<std::uint16_t>(number % kCores);
      left -= static_cast<int>(request.bytes);
      controller_.submit(request);
    }
  }

  std::uint64_t draw() {
    return ub::mix(ub::mix(setting_.seed ^ static_cast<std::uint64_t>(die_) << 40) + draws_++);
  }
  void plan(Time now) {
    const double uniform =
        (static_cast<double>(draw() >> 11) + 0.5) / static_cast<double>(std::uint64_t{1} << 53);
    const double mean_ps = setting_.bytes / offered_GBps_ * 1e3;
    queue_.push(now + Time{static_cast<std::int64_t>(-traces::natural_log(uniform) * mean_ps) + 1},
                generator_, 0);
  }

  const TrafficCase& setting_;
  const MeasuredTime& measured_;
  int die_;
  sim::EventQueue& queue_;
  std::uint32_t generator_ = 0;
  ub::UbController controller_;
  int level_;
  double offered_GBps_;
  std::uint64_t draws_ = 0;
  std::vector<TrafficMessage> messages_;
  std::vector<int> pending_;  // requests, by message
  std::vector<TrafficArrival> arrivals_;
  std::size_t submitted_ = 0;                   // messages
  int in_controller_ = 0, most_submitted_ = 0;  // requests
  bool paused_ = false;                         // creates nothing until its queue is shorter
  std::uint64_t completed_ = 0, waited_ps_ = 0, left_ = 0;
};

// The dies of a node in one queue: units of the controllers, then those of the generators.
class TrafficNode final : public supernode::FabricMachine::Module {
 public:
  TrafficNode(int first, int count, const TrafficCase& setting, const MeasuredTime& measured,
              supernode::FabricMachine& machine, unsigned owner)
      : queue_(machine.next_source()) {
    for (int n = 0; n < count; ++n)
      dies_.push_back(std::make_unique<TrafficEndpoint>(first + n, setting, measured, machine, queue_,
                                                        static_cast<std::uint32_t>(n)));
    machine.add(*this, owner);
    for (std::uint32_t n = 0; n < dies_.size(); ++n)
      dies_[n]->begin(static_cast<std::uint32_t>(dies_.size()) + n, owner == sim::peers().self());
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
  const std::vector<std::unique_ptr<TrafficEndpoint>>& dies() const { return dies_; }

 private:
  sim::EventQueue queue_;
  std::vector<std::unique_ptr<TrafficEndpoint>> dies_;
};

}  // namespace cm384::studies
