#include "system/doors/foreign_endpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "system/doors/initiator_door.h"
#include "system/doors/target_door.h"
#include "system/doors/time.h"

namespace cm384::doors {
namespace {

std::string place_of(const hw::Topology& topology, int endpoint) {
  return endpoint < topology.dies() ? fmt::format("die {}", endpoint)
                                    : fmt::format("CPU socket {}", endpoint - topology.dies());
}

}  // namespace

ForeignEndpoint::ForeignEndpoint(const sc_core::sc_module_name& name, supernode::Supernode& machine,
                                 int endpoint)
    : sc_module(name),
      machine_(machine),
      place_(place_of(machine.parameters().topology, endpoint)),
      queue_(machine.foreign().surroundings(endpoint).source),
      payloads_(machine.foreign().surroundings(endpoint).payloads),
      controller_(machine.foreign().surroundings(endpoint).fabric, static_cast<ub::Endpoint>(endpoint),
                  queue_, kController, machine.foreign().surroundings(endpoint).packets, payloads_) {
  controller_.set_client(*this);
  controller_.set_target(*this);
  machine.foreign().join(*this);
  SC_HAS_PROCESS(ForeignEndpoint);
  SC_METHOD(run);
  dont_initialize();
  sensitive << wake_;
}

ForeignEndpoint::~ForeignEndpoint() {
  machine_.foreign().detach(*this);
}

void ForeignEndpoint::submit(const sim::Request& request) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(submitted_.size()));
    submitted_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  submitted_[place] = request;
  queue_.push(request.at, kSubmit, 0, place);
  arm();
}

Time ForeignEndpoint::horizon() const {
  return now() + ahead_;
}

void ForeignEndpoint::run() {
  try {
    queue_.run_until(horizon() + Time{1}, [this](const sim::Event& event) {
      if (event.unit == kController) {
        controller_.handle(event);
      } else {
        const auto place = static_cast<std::uint32_t>(event.argument);
        free_.push_back(place);
        controller_.submit(submitted_[place]);
      }
    });
  } catch (...) {  // SystemC must not see it
    machine_.foreign().fail(std::current_exception());
    return;
  }
  arm();
}

void ForeignEndpoint::look() {
  if (invalidate_pointers_) invalidate_pointers_();
  arm();
}

// Of several notifications the earliest holds.
void ForeignEndpoint::arm() {
  const Time next = queue_.next_time();
  if (next != Time::never()) wake_.notify(to_sc(std::max(next - ahead_ - now(), Time{})));
}

void ForeignEndpoint::fail(const std::string& what) {
  machine_.foreign().fail(std::make_exception_ptr(MachineError(what)));
}

void ForeignEndpoint::check(Time now) const {
  if (initiator_ != nullptr) initiator_->check(now, patience_);
  if (target_ != nullptr) target_->check(now, patience_);
}

std::string ForeignEndpoint::report() const {
  return (initiator_ != nullptr ? initiator_->report() : std::string()) +
         (target_ != nullptr ? target_->report() : std::string());
}

void ForeignEndpoint::completed(const sim::Completion& completion, Time at) {
  initiator_->completed(completion, at);
}

Time ForeignEndpoint::access(sim::Request& request, sim::Outcome& outcome) {
  if (target_ != nullptr) return target_->access(request, outcome);
  payloads_.release(request.payload);
  outcome = sim::Outcome::address_fault;
  return request.at;
}

}  // namespace cm384::doors
