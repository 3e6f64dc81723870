// The low-latency exchange of DeepEP (deepseek-ai/DeepEP@dd758caf, csrc/kernels/legacy/internode_ll.cu) as
// messages, for accelerators without cores: what a rank sends, in which order, and how much of the units'
// time that takes.
//
// Dispatch: token t is cast by unit t modulo the units, which sends it to each of its experts, a message
// each. Combine: a unit has one or more pairs of an own expert and a target, and sends the rows of each back.
// Behind the messages of a pair goes a flag with their number, also where there are none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/text/units.h"
#include "hw/machine.h"
#include "workloads/operators/reference/dispatch_reference.h"

namespace cm384::studies {

enum class ExchangeDirection : std::uint8_t { dispatch, combine };

// Bytes of a message: FP8 with a scale of 4 B per 128 elements and a header of 16 B; BF16 on the way back.
std::uint32_t message_bytes(ExchangeDirection direction, int hidden);
inline constexpr std::uint32_t kExchangeFlagBytes = 4;

// The route of a rank's message.
enum class Carrier : std::uint8_t { memory, bus, rdma };
// Ranks on dies of those numbers.
Carrier carrier_of(const hw::Topology& topology, int from, int to);

struct ExpertMessage {
  std::uint16_t target = 0;  // rank
  Carrier carrier = Carrier::memory;
  std::uint32_t pair = 0;  // at the target: number of its flag
  Time posted;             // since the kernel's turn: a transfer begins, or bytes are in the own memory
};

// One or more messages and their flag: of a source and an expert, those that a unit looks after.
struct ExpertPair {
  std::uint16_t source = 0, target = 0;  // ranks
  Carrier carrier = Carrier::memory;
  std::uint32_t messages = 0;
  Time counted;  // since the source's turn: its flag goes no earlier
};

struct ExpertExchange {
  std::uint32_t bytes = 0;                           // of a message
  std::vector<std::vector<ExpertMessage>> messages;  // by source rank, in the order of `posted`
  std::vector<ExpertPair> pairs;                     // those of a target rank stand together
  std::vector<std::uint32_t> first_pair;             // by target rank, and their number
  std::vector<Time> sent;                            // by rank: its units have posted everything

  std::uint64_t count(Carrier carrier) const;
};

// `dies`: of the ranks.
ExpertExchange make_exchange(const reference::DispatchCase& layer, const hw::Machine& machine,
                             ExchangeDirection direction, const std::vector<int>& dies);

// Units that look after so many pairs, as many to each.
struct UnitsOfPairs {
  UnitsOfPairs(std::uint32_t pairs, int units)
      : each((pairs + static_cast<std::uint32_t>(units) - 1) / static_cast<std::uint32_t>(units)),
        units_used((pairs + each - 1) / each) {}
  std::uint32_t each, units_used;
};

// What a unit takes for so many bytes, read and written together.
Time unit_time(const hw::Processor& processor, std::uint64_t bytes);

}  // namespace cm384::studies
