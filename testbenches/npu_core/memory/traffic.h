// Stand-in for the MTEs of a die: each core has a program of pieces, asks for them in order at its own pace
// and keeps a window of bytes outstanding. Drives DieMemory alone, before and without the cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "npu_core/memory/die_memory.h"

namespace cm384::npu::testing {

struct Piece {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;  // contiguous; split at 512 B boundaries
  bool instruction_start = false;
};

struct Pace {
  double instruction_cycles = 12.6;  // before an instruction's first request
  double request_cycles = 8.0;       // from request to request
  std::uint32_t window = 16384;      // bytes outstanding a core
  double cycle_ps = 540.54;
};

struct Outcome {
  Time finish{};
  std::uint64_t bytes = 0;  // asked for
  double terabytes_per_second() const { return static_cast<double>(bytes) / static_cast<double>(finish.ps); }
};

// `program(core, i, piece)` gives piece i of a core, false at its end.
template <class Program>
Outcome run(DieMemory& memory, int cores, const Pace& pace, Program&& program, Time start = {},
            bool write = false, bool allocate = true, int first_requester = 0) {
  struct Core {
    std::uint64_t next = 0;
    Piece piece;
    bool active = false;
    double ready = 0;  // ps
    std::uint32_t outstanding = 0;
    std::priority_queue<std::pair<std::int64_t, std::uint32_t>,
                        std::vector<std::pair<std::int64_t, std::uint32_t>>, std::greater<>>
        pending;
  };
  Outcome outcome;
  std::vector<Core> state(static_cast<std::size_t>(cores));
  using Entry = std::pair<std::int64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto advance = [&](int c) {
    Core& core = state[static_cast<std::size_t>(c)];
    if (core.piece.bytes == 0) {
      if (!program(c, core.next++, core.piece)) return;
      if (core.piece.instruction_start) core.ready += pace.instruction_cycles * pace.cycle_ps;
    }
    ready.emplace(static_cast<std::int64_t>(core.ready) + 1, c);
  };
  for (int c = 0; c < cores; ++c) {
    state[static_cast<std::size_t>(c)].ready = static_cast<double>(start.ps) + c * 137.0;
    advance(c);
  }
  while (!ready.empty()) {
    const auto [at, c] = ready.top();
    ready.pop();
    Core& core = state[static_cast<std::size_t>(c)];
    const auto room = static_cast<std::uint32_t>(512 - core.piece.offset % 512);
    const std::uint32_t bytes = std::min(core.piece.bytes, room);
    while (!core.pending.empty() && core.pending.top().first <= at) {
      core.outstanding -= core.pending.top().second;
      core.pending.pop();
    }
    if (core.outstanding + bytes > pace.window) {
      core.ready = static_cast<double>(core.pending.top().first);
      ready.emplace(core.pending.top().first, c);
      continue;
    }
    MemoryAccess access;
    access.offset = core.piece.offset;
    access.bytes = bytes;
    access.write = write;
    access.allocate = allocate;
    access.requester = static_cast<std::uint16_t>(first_requester + c);
    access.at = Time{at};
    const Time done = memory.access(access);
    outcome.finish = std::max(outcome.finish, done - start);
    outcome.bytes += bytes;
    core.outstanding += bytes;
    core.pending.emplace(done.ps, bytes);
    core.piece.offset += bytes;
    core.piece.bytes -= bytes;
    core.ready = std::max(core.ready, static_cast<double>(at)) + pace.request_cycles * pace.cycle_ps;
    advance(c);
  }
  return outcome;
}

// The matrix of ascend-facts A6: rows of `row_bytes`, each core its own block of rows, read in tiles of
// tile_rows x tile_bytes, one instruction a tile, columns before rows; `rounds` times over.
struct MatrixRead {
  std::uint64_t base = 0;
  std::uint64_t row_bytes = 24576;
  std::uint32_t rows_a_core = 256;
  std::uint32_t tile_rows = 64;
  std::uint32_t tile_bytes = 2048;
  std::uint32_t rounds = 1;
  bool shared = false;   // every core reads the first core's rows
  bool rotated = false;  // each core starts a tile further on

  bool operator()(int core, std::uint64_t i, Piece& piece) const {
    const std::uint64_t columns = (row_bytes + tile_bytes - 1) / tile_bytes;
    const std::uint64_t tiles = columns * (rows_a_core / tile_rows);
    std::uint64_t tile = i / tile_rows;
    if (tile >= tiles * rounds) return false;
    tile %= tiles;
    if (rotated) tile = (tile + static_cast<std::uint64_t>(core)) % tiles;
    const std::uint64_t column = tile % columns;
    std::uint64_t row = tile / columns * tile_rows + i % tile_rows;
    if (!shared) row += static_cast<std::uint64_t>(core) * rows_a_core;
    piece.offset = base + row * row_bytes + column * tile_bytes;
    piece.bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(tile_bytes, row_bytes - column * tile_bytes));
    piece.instruction_start = i % tile_rows == 0;
    return true;
  }
};

}  // namespace cm384::npu::testing
