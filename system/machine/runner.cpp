#include "system/machine/runner.h"

#include <fmt/format.h>

#include <systemc>
#include <utility>

#include "base/engine/peers.h"
#include "base/text/error.h"

namespace cm384::supernode {

Runner::Runner(unsigned workers, unsigned threads, std::string threads_why, unsigned what_if_threads)
    : control_(workers, threads, std::move(threads_why), what_if_threads),
      outer_(std::make_unique<WindowProcess>("packages", control_, kOuterPhase)),
      inner_(std::make_unique<WindowProcess>("sub_planes", control_, control_.plane_phase)) {}

Runner::~Runner() {
  stop();
}

void Runner::stop() {
  outer_.reset();
  inner_.reset();
}

void Runner::set_window(Time window, Time plane_phase) {
  control_.window = window;
  control_.plane_phase = plane_phase;
}

void Runner::add(Phase phase, std::unique_ptr<WindowModule> module, unsigned owner) {
  modules_.push_back(std::move(module));
  owners_.push_back(owner);
  (phase == Phase::outer ? outer_ : inner_)->add(*modules_.back());
}

void Runner::join_peers(const std::atomic<std::size_t>& unfinished, ub::PacketPool& packets,
                        sim::PayloadPool& payloads, sim::PacketPacker* others) {
  if (!sim::peers().several()) return;
  peers_ = std::make_unique<PeerExchange>(control_, unfinished, packets, payloads);
  peers_->add(*outer_);
  peers_->add(*inner_);
  if (others != nullptr) peers_->add_packer(*others);
  for (std::size_t n = 0; n < modules_.size(); ++n) peers_->add(*modules_[n], owners_[n]);
  control_.peers = peers_.get();
}

Time Runner::now() const {
  return Time{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
}

void Runner::begin() {
  if (!peers_) return;
  peers_->synchronize();
  rethrow_failure();
}

void Runner::advance(Time length) {
  try {
    sc_core::sc_start(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(length.ps)),
                      sc_core::SC_RUN_TO_TIME);
  } catch (const sc_core::sc_report& report) {
    throw MachineError(fmt::format("SystemC: {}: {}", report.get_msg_type(), report.get_msg()));
  }
}

void Runner::rethrow_failure() {
  if (control_.failure) std::rethrow_exception(std::exchange(control_.failure, nullptr));
}

bool Runner::may_go_on() {
  rethrow_failure();
  return control_.interrupted == nullptr || *control_.interrupted == 0;
}

}  // namespace cm384::supernode
