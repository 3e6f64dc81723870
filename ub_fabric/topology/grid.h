// Chips in a grid of any number of dimensions, each joined to others of its lines: full mesh and torus.
#pragma once

#include <vector>

#include "ub_fabric/topology/layout.h"

namespace cm384::ub {

class Grid {
 public:
  // Of topology.shape. Throws InputError where dies and sockets cannot be spread over it evenly.
  explicit Grid(const hw::Topology& topology);

  unsigned chips() const { return chips_; }
  unsigned dimensions() const { return static_cast<unsigned>(lengths_.size()); }
  unsigned length(unsigned dimension) const { return lengths_[dimension]; }
  unsigned coordinate(unsigned chip, unsigned dimension) const {
    return chip / strides_[dimension] % lengths_[dimension];
  }
  // The chip that has another coordinate in one dimension.
  unsigned moved(unsigned chip, unsigned dimension, unsigned to) const {
    return chip + to * strides_[dimension] - coordinate(chip, dimension) * strides_[dimension];
  }
  // The chips "chip0" on, with the machine's dies and sockets spread over them in order.
  Layout layout(const hw::Topology& topology) const;

 private:
  std::vector<unsigned> lengths_;
  std::vector<unsigned> strides_;
  unsigned chips_ = 1;
};

}  // namespace cm384::ub
