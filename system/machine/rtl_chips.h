// Switch chips of the Clos as RTL, asked for by text: `l1:3.2` is the L1 chip of node 3 in sub-plane 2,
// `l2:0.5` is L2 chip 5 of sub-plane 0. Or in the grammar of link_name.h: `plane=2,l1=3`. With
// `=LIBRARY` behind the short form, `,library=LIBRARY` behind the other, a chip of a user's own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "system/machine/supernode.h"
#include "ub_fabric/rtl_switch.h"

namespace cm384::supernode {

struct RtlChip {
  bool l1 = true;
  int plane = 0;
  int number = 0;       // node of an L1 chip; L2 chip
  std::string library;  // empty: of cm384
};

// Throws InputError for anything but these forms.
RtlChip parse_rtl_chip(std::string_view text);

// The RTL chips of a machine. To be put before its first packet; must outlive its last.
class RtlChips {
 public:
  // Throws InputError for a chip that does not exist, one named twice, or where the RTL cannot be that chip.
  void install(Supernode& machine, const RtlChip& chip);
  // Each chip's signals as an FST file, STEM.l1-3.2.fst for l1:3.2; before the machine's first packet. Throws
  // InputError where one cannot be written.
  void write_waves(const std::string& stem);
  // Puts them under their names. Throws InputError.
  void finish_waves();
  // Sum over all chips.
  ub::RtlSwitchCounters counters() const;

 private:
  struct Put {
    RtlChip chip;
    std::unique_ptr<ub::RtlSwitch> model;
  };
  std::vector<Put> chips_;
};

}  // namespace cm384::supernode
