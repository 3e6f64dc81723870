// Where nine in ten values lie.
#pragma once

namespace cm384::uncertainty {

struct Interval {
  double low = 0, high = 0;
};

}  // namespace cm384::uncertainty
