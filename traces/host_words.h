// The words of records about kernels, streams and the host.
//
//     transfer   of an SDMA engine: stream, how many copies the stream had before
//     launch     number of the launch on its die, block
//     end        the same
//     idle       none
//     stream     number (1, 2, ... on its die), offsets of its entries and of its completions, depth
//     kernel     number, type (0: vector cores, 1: cube cores, 2: groups), core of block 0, 1, ... (none:
//     any) given      stream, entry call       0 submit: stream, entry; 1 synchronize: stream (0xffffffff:
//     all of the die); 2 compute: ps;
//                3 barrier of host threads: die that counts, number of the barrier there, threads;
//                4 entry: stream, entry, which the next unfold hands over; 5 unfold: how many such entries an
//                AICPU writes in the host's place
//
// An entry is a struct cm384_task (firmware/abi/queue.h), eight words; a kernel it names is a `kernel` of the
// die.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "traces/traffic.h"

namespace cm384::traces {

enum class HostCallKind : std::uint64_t { submit, synchronize, compute, barrier, entry, unfold };

inline constexpr std::size_t kEntryWords = 8;
inline constexpr std::uint64_t kAllStreams = 0xffffffff;
inline constexpr std::uint64_t kMostStreams = 1u << 15;
inline constexpr std::size_t kMostWords = 200;

// The entry that a `given`, or a call that submits or has it unfolded, brings to a stream; empty: the record
// is neither.
std::span<const std::uint64_t> entry_of(const TrafficRecord& record);

// What is wrong with a record's words: "words: ...; allowed: ..."; empty when nothing is.
std::string words_fault(const TrafficRecord& record);

}  // namespace cm384::traces
