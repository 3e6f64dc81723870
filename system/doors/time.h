// Times of the machine as SystemC has them; its resolution is 1 ps.
#pragma once

#include <systemc>

#include "base/text/units.h"

namespace cm384::doors {

inline Time now() {
  return Time{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
}
inline Time of(const sc_core::sc_time& t) {
  return Time{static_cast<std::int64_t>(t.value())};
}
inline sc_core::sc_time to_sc(Time t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps));
}

}  // namespace cm384::doors
