// All that passes between modules, as bytes.
#include <cassert>

#include "system/machine/supernode_parts.h"

namespace cm384::supernode {

void Supernode::serialise_crossings() {
  assert(now() == Time{} && unfinished_ == 0);
  sim::peers().needs_one("crossings as bytes");
  parts_->crossings = std::make_unique<ub::Crossings>(parts_->bus->packets(), parts_->payloads);
  if (has_rdma()) parts_->crossings->add_packer(*parts_->rdma);
  for (const auto& module : parts_->runner.modules()) module->hold_credits();
}

std::pair<std::uint64_t, std::uint64_t> Supernode::crossings() const {
  if (!parts_->crossings) return {};
  return {parts_->crossings->records(), parts_->crossings->bytes()};
}

void Supernode::exchange_crossings() {
  if (!parts_->crossings) return;
  const auto exchange = [this] {
    for (const auto& module : parts_->runner.modules()) module->exchange(*parts_->crossings);
  };
  exchange();
  parts_->crossings->turn();
  exchange();
  parts_->crossings->clear();
}

}  // namespace cm384::supernode
