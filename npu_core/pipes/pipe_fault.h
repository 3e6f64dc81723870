// Faults of pipe instructions. They name places of the program by their pc; whoever knows the program (the
// core) says which function, file and line that is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/error.h"

namespace cm384::npu {

// Text of a place of the program: "Compute at hello.cpp:42, pc 0x80000124".
using PlaceText = std::function<std::string(std::uint64_t pc)>;
// Where nothing but the pc is known: "pc 0x80000124".
std::string pc_text(std::uint64_t pc);

class PipeFault : public MachineError {
 public:
  // `text` has a "{}" for each of `pcs`. what() has the pcs alone.
  PipeFault(std::string text, std::vector<std::uint64_t> pcs);

  std::string text(const PlaceText& place) const;

 private:
  std::string text_;
  std::vector<std::uint64_t> pcs_;
};

// Throws PipeFault: "PLACE: WHAT".
[[noreturn]] void fault(std::uint64_t pc, std::string_view what);

}  // namespace cm384::npu
