#include "ub_fabric/switch_chip.h"

#include "ub_fabric/sub_plane.h"

namespace cm384::ub {

Time ChipHost::now() const {
  return plane_->queue_.now();
}

unsigned ChipHost::ports() const {
  return plane_->shape_.ports();
}

unsigned ChipHost::lanes() const {
  return plane_->links_.lanes();
}

unsigned ChipHost::route(unsigned input, Hop hop) {
  return plane_->route(chip_, plane_->shape_.input(chip_, input), hop);
}

Time ChipHost::free_at(unsigned output) const {
  return plane_->links_.free_at(plane_->shape_.input(chip_, output));
}

int ChipHost::credits(unsigned output, unsigned lane) {
  return plane_->links_.credits(plane_->shape_.input(chip_, output), lane, plane_->queue_.now());
}

bool ChipHost::take_credits(unsigned output, Hop hop) {
  return plane_->links_.take_credits(plane_->shape_.input(chip_, output), hop.lane(), hop.cells(), now());
}

void ChipHost::send(unsigned input, unsigned output, Hop hop) {
  plane_->send(plane_->shape_.input(chip_, input), plane_->shape_.input(chip_, output), hop);
}

void ChipHost::wake_at(unsigned output, Time at) {
  plane_->links_.arm(plane_->shape_.input(chip_, output), at);
}

void ChipHost::await_credits(unsigned output, unsigned lane) {
  plane_->links_.await_credits(plane_->shape_.input(chip_, output), lane);
}

}  // namespace cm384::ub
