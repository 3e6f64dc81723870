// A sub-plane's side of the interface to a switch chip of another model.
#pragma once

#include "ub_fabric/sub_plane.h"
#include "ub_fabric/switch_chip.h"

namespace cm384::ub {

class SubPlaneChipHost final : public ChipHost {
 public:
  SubPlaneChipHost(SubPlane& plane, unsigned chip) : plane_(plane), chip_(chip) {}

  Time now() const override;
  unsigned ports() const override;
  unsigned lanes() const override;
  unsigned route(unsigned input, Hop hop) override;
  Time free_at(unsigned output) const override;
  int credits(unsigned output, unsigned lane) override;
  bool take_credits(unsigned output, Hop hop) override;
  void send(unsigned input, unsigned output, Hop hop) override;
  void wake_at(unsigned output, Time at) override;
  void await_credits(unsigned output, unsigned lane) override;

 private:
  unsigned link(unsigned port) const;

  SubPlane& plane_;
  unsigned chip_;
};

}  // namespace cm384::ub
