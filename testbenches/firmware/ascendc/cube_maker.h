// Draws cases of the call forms of cube cores, and the pool that their operands come from.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "testbenches/firmware/ascendc/cube_forms.h"

namespace ascendc {

constexpr std::uint32_t kSizes[] = {1, 2, 2, 4};

// A number of a type, as bytes; to the nearest even.
float value(const std::uint8_t* at, std::uint32_t type);
void put(std::uint8_t* at, std::uint32_t type, float f);

std::vector<std::uint8_t> make_pool(std::mt19937& draw);

class CubeMaker {
 public:
  std::mt19937 draw{17};
  CubeCase make(std::uint32_t form, std::uint32_t n);

 private:
  std::uint32_t one(std::uint32_t low, std::uint32_t high) { return low + draw() % (high - low + 1); }
  void fixpipe(CubeCase& c);
};

}  // namespace ascendc
