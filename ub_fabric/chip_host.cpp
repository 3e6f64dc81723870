#include "ub_fabric/chip_host.h"

#include "base/text/error.h"

namespace cm384::ub {

unsigned SubPlaneChipHost::link(unsigned port) const {
  return plane_.network_->first_link(chip_) + port;
}

Time SubPlaneChipHost::now() const {
  return plane_.queue_.now();
}

unsigned SubPlaneChipHost::ports() const {
  return plane_.network_->ports(chip_);
}

unsigned SubPlaneChipHost::lanes() const {
  return plane_.links_.lanes();
}

unsigned SubPlaneChipHost::route(unsigned input, Hop hop) {
  return plane_.route(chip_, link(input), hop).output - link(0);
}

Time SubPlaneChipHost::free_at(unsigned output) const {
  return plane_.links_.free_at(link(output));
}

int SubPlaneChipHost::credits(unsigned output, unsigned lane) {
  return plane_.links_.credits(link(output), lane, plane_.queue_.now());
}

bool SubPlaneChipHost::take_credits(unsigned output, Hop hop) {
  return plane_.links_.take_credits(link(output), hop.lane(), hop.cells(), now());
}

void SubPlaneChipHost::send(unsigned input, unsigned output, Hop hop) {
  plane_.send(link(input), link(output), hop.lane(), hop);
}

void SubPlaneChipHost::wake_at(unsigned output, Time at) {
  plane_.links_.arm(link(output), at);
}

void SubPlaneChipHost::await_credits(unsigned output, unsigned lane) {
  plane_.links_.await_credits(link(output), lane);
}

void SubPlane::install(unsigned chip, SwitchChip* model) {
  if (with_classes_)
    throw InputError(
        "a switch chip of another model: packets change lanes in this topology, which it does not do");
  if (turns_ != nullptr && !model->arbitrates())
    throw InputError(
        "a switch chip of another model: its outputs take lanes in turn; allowed: "
        "ub.qos.arbitration=round-robin");
  if (breaks_ != nullptr)
    throw InputError("a switch chip of another model: not where parts go out of order at a time");
  foreign_[chip] = model;
  pipeline_[chip] = Time{};
}

}  // namespace cm384::ub
