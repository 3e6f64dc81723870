// Shapes of the switch with service classes, as CMakeLists.txt builds them.
#pragma once

#include "Vrtl_switch_classes.h"
#include "Vrtl_switch_eight.h"

namespace cm384::ub {

struct ThreeClasses {
  using Model = Vrtl_switch_classes;
  static constexpr unsigned ports = 4, lanes = 8, classes = 3, buffer_cells = 32, cell_flits = 8,
                            flit_bits = 64, max_flits = 32, routes = 64, streams = 2;
};
// As many classes as there can be, one stream of an input at a time.
struct EightClasses {
  using Model = Vrtl_switch_eight;
  static constexpr unsigned ports = 3, lanes = 16, classes = 8, buffer_cells = 8, cell_flits = 4,
                            flit_bits = 64, max_flits = 16, routes = 16, streams = 1;
};

}  // namespace cm384::ub
