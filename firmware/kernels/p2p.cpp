// Reads, writes, atomic adds and ping-pong between this die and another memory: the microbenchmarks of
// table 1. Arguments and results: firmware/abi/p2p.h.
#include "firmware/abi/p2p.h"

#include "kernel_operator.h"

using namespace AscendC;

namespace {

// UBuffer: the moving buffers, then small records.
constexpr uint32_t kResult = CM384_P2P_BUFFER_BYTES;
constexpr uint32_t kFlagOut = kResult + 256;
constexpr uint32_t kFlagIn = kFlagOut + 32;

struct Samples {
  uint64_t count = 0, sum = 0, min = ~uint64_t{0}, max = 0, last_issue = 0;

  void add(uint64_t issued, uint64_t cycles) {
    last_issue = issued;
    ++count;
    sum += cycles;
    if (cycles < min) min = cycles;
    if (cycles > max) max = cycles;
  }
};

struct Span {
  uint64_t start_cycle, start_sys;
};

Span StartTogether() {
  SyncAll();
  return {GetCoreCycle(), static_cast<uint64_t>(GetSystemCycle())};
}

void WriteResult(const cm384_p2p& arguments, const Span& start, const Samples& samples) {
  const uint64_t end_cycle = GetCoreCycle();
  const uint64_t values[9] = {start.start_cycle,
                              end_cycle,
                              start.start_sys,
                              static_cast<uint64_t>(GetSystemCycle()),
                              samples.count,
                              samples.sum,
                              samples.count != 0 ? samples.min : 0,
                              samples.max,
                              samples.last_issue};
  const LocalTensor<uint64_t> record(kResult, 9);
  for (uint32_t i = 0; i < 9; ++i) record.SetValue(i, values[i]);
  SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
  DataCopy(GlobalAt<uint64_t>(arguments.results + GetBlockIdx() * CM384_P2P_RESULT_STRIDE), record, 9);
}

// The MTE instruction of a mode, and the flag that tells the scalar unit of its completion.
template <uint32_t Mode>
struct Transfer {
  static constexpr HardEvent kDone = Mode == CM384_P2P_READ ? HardEvent::MTE2_S : HardEvent::MTE3_S;

  CM384_INLINE static void issue(uint64_t remote, uint32_t local, uint64_t bytes) {
    if constexpr (Mode == CM384_P2P_READ) {
      CopyBursts<CM384_MTE_GM_TO_UB>(local, remote, bytes);
    } else if constexpr (Mode == CM384_P2P_WRITE) {
      CopyBursts<CM384_MTE_UB_TO_GM>(remote, local, bytes);
    } else {
      CopyBursts<CM384_MTE_UB_TO_GM_ADD_S32>(remote, local, bytes);
    }
  }
};

// One instruction at a time, each timed from just before its issue to its completion flag.
template <uint32_t Mode>
void MoveTimed(const cm384_p2p& arguments, uint64_t remote, Samples* samples) {
  using T = Transfer<Mode>;
  const uint64_t bytes = arguments.bytes, chunk = arguments.chunk_bytes;
  uint64_t number = 0;
  for (uint64_t at = 0; at < bytes; at += chunk, ++number) {
    const uint64_t now = bytes - at < chunk ? bytes - at : chunk;
    const uint64_t issued = GetCoreCycle();
    T::issue(remote + at, 0, now);
    SetFlag<T::kDone>(EVENT_ID0);
    WaitFlag<T::kDone>(EVENT_ID0);
    const uint64_t cycles = GetCoreCycle() - issued;
    if (number >= arguments.warmup) samples->add(issued, cycles);
  }
}

// Up to `buffers` instructions under way; a buffer is used again when its last instruction has completed.
template <uint32_t Mode>
void MoveStreaming(const cm384_p2p& arguments, uint64_t remote) {
  using T = Transfer<Mode>;
  const uint64_t bytes = arguments.bytes, chunk = arguments.chunk_bytes;
  const uint32_t buffers = arguments.buffers;
  uint32_t buffer = 0, used = 0;
  for (uint64_t at = 0; at < bytes; at += chunk) {
    if (used == buffers) {
      WaitFlag<T::kDone>(buffer);
    } else {
      ++used;
    }
    T::issue(remote + at, static_cast<uint32_t>(buffer * chunk), bytes - at < chunk ? bytes - at : chunk);
    SetFlag<T::kDone>(buffer);
    buffer = buffer + 1 == buffers ? 0 : buffer + 1;
  }
  for (uint32_t i = 0; i < used; ++i) WaitFlag<T::kDone>(i);
}

// Fills what MTE3 will send with 32-bit words.
void Fill(const cm384_p2p& arguments, uint32_t word) {
  Duplicate(LocalTensor<uint32_t>(0u), word,
            static_cast<int32_t>(arguments.buffers * arguments.chunk_bytes / 4));
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
}

template <uint32_t Mode>
void Move(const cm384_p2p& arguments) {
  const uint64_t block = GetBlockIdx();
  const uint64_t remote = arguments.target + block * arguments.target_stride;
  if constexpr (Mode == CM384_P2P_WRITE) Fill(arguments, arguments.pattern + static_cast<uint32_t>(block));
  if constexpr (Mode == CM384_P2P_ATOMIC) Fill(arguments, arguments.pattern);
  Samples samples;
  const Span start = StartTogether();
  if (arguments.buffers == 1) {
    MoveTimed<Mode>(arguments, remote, &samples);
  } else {
    MoveStreaming<Mode>(arguments, remote);
  }
  WriteResult(arguments, start, samples);
  if constexpr (Mode == CM384_P2P_READ) {
    if (arguments.keep == 0) return;
    const uint64_t last = (arguments.bytes - 1) / arguments.chunk_bytes;
    CopyBursts<CM384_MTE_UB_TO_GM>(arguments.keep + block * arguments.keep_stride,
                                   last % arguments.buffers * arguments.chunk_bytes,
                                   arguments.bytes - last * arguments.chunk_bytes);
  }
}

// Sends flag value `round` to the other side; the caller has ordered what must arrive before it.
void SendFlag(const cm384_p2p& arguments, uint32_t round) {
  const LocalTensor<uint32_t> flag(kFlagOut, 8);
  // The last flag must have left the UBuffer before its buffer is written again.
  SetFlag<HardEvent::MTE3_S>(EVENT_ID0);
  WaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
  flag.SetValue(0, round);
  SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
  DataCopy(GlobalAt<uint32_t>(arguments.target_flag + GetBlockIdx() * 512), flag, 8);
}

// Returns when the other side's flag has reached `round`.
void AwaitFlag(const cm384_p2p& arguments, uint32_t round) {
  const LocalTensor<uint32_t> flag(kFlagIn, 8);
  const uint64_t address = arguments.own_flag + GetBlockIdx() * 512;
  for (;;) {
    DataCopy(flag, GlobalAt<uint32_t>(address), 8);
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    if (flag.GetValue(0) >= round) return;
    PollMark(address, 32);
  }
}

void PingPong(const cm384_p2p& arguments) {
  const bool initiator = arguments.mode == CM384_P2P_PING;
  const uint64_t remote = arguments.target + GetBlockIdx() * arguments.target_stride;
  for (uint32_t i = 1; i < 8; ++i) LocalTensor<uint32_t>(kFlagOut, 8).SetValue(i, 0);
  if (initiator) Fill(arguments, arguments.pattern);
  Samples samples;
  const Span start = StartTogether();
  for (uint32_t round = 1; round <= arguments.rounds; ++round) {
    const uint64_t issued = GetCoreCycle();
    if (initiator) {
      CopyBursts<CM384_MTE_UB_TO_GM>(remote, 0, arguments.chunk_bytes);
      SendFlag(arguments, round);  // waits for the acknowledgement of the data first
      AwaitFlag(arguments, round);
      const uint64_t cycles = GetCoreCycle() - issued;
      if (round > arguments.warmup) samples.add(issued, cycles);
    } else {
      AwaitFlag(arguments, round);
      SendFlag(arguments, round);
    }
  }
  WriteResult(arguments, start, samples);
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_p2p arguments = *reinterpret_cast<const cm384_p2p*>(address);
  if (arguments.buffers == 0 || arguments.buffers > 8 || arguments.chunk_bytes == 0 ||
      static_cast<uint64_t>(arguments.buffers) * arguments.chunk_bytes > CM384_P2P_BUFFER_BYTES ||
      (arguments.buffers > 1 && arguments.chunk_bytes % 32 != 0)) {
    Abort("p2p: the buffers do not fit the UBuffer");
  }
  switch (arguments.mode) {
    case CM384_P2P_READ:
      return Move<CM384_P2P_READ>(arguments);
    case CM384_P2P_WRITE:
      return Move<CM384_P2P_WRITE>(arguments);
    case CM384_P2P_ATOMIC:
      return Move<CM384_P2P_ATOMIC>(arguments);
    case CM384_P2P_PING:
    case CM384_P2P_ECHO:
      return PingPong(arguments);
    default:
      Abort("p2p: unknown mode");
  }
}
