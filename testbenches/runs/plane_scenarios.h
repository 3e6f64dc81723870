// Runs over the RDMA plane and on accelerators without cores, for live knobs and their own tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hw/machine.h"
#include "npu_core/accelerator.h"

namespace cm384::testing {

// Copies of SDMA engines over the RDMA plane: near, far (over a spine): us of a copy of 4 KiB; write, read,
// far-write: GB/s of 1 MiB; paused: us in which three senders to one might not send.
std::map<std::string, double> run_rdma_scenario(const std::vector<std::string>& changes);

// When the last of these transfers of die 0 ended, all given at the start, in ps. `other`: the die they go
// to.
Time end_of_transfers(const hw::Machine& machine, const std::vector<npu::Transfer>& transfers, int other = 2,
                      bool rdma = false);

// Of transfer engines, in us: one read of 512 B from another, one write, 64 reads given at once, 1 MiB within
// the own memory, 1 MiB written to the other.
std::map<std::string, double> run_transfer_scenario(std::vector<std::string> changes);

// Mean us of the low-latency exchange of four ranks without cores, two in each of two supernodes: dispatch,
// combine.
std::map<std::string, double> run_messages_scenario(std::vector<std::string> changes);

// Us of operators at grade formula without cores: products in bf16, fp8 and int8, attention, memory; and
// stacks as they are counted.
std::map<std::string, double> run_units_scenario(std::vector<std::string> changes);

}  // namespace cm384::testing
