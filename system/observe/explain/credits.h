// The input buffer at the other end of a lane of a link, as paths meet it: a packet goes out when there are
// cells, of those that were never taken or of those that have come back.
//
// Who comes in another order in an evaluation finds other cells there: the ones that came back last before
// it, or else the first that will.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "npu_core/pipes/fifo.h"
#include "system/observe/explain/path.h"

namespace cm384::observe {

class Credits {
 public:
  // A packet takes `cells` of a buffer of `buffer`: not before they are there. In the evaluation of buffers
  // there are twice as many.
  void acquire(Path& path, int cells, int buffer);
  // Cells that a packet has held since `start` (ps in the run) are back where `back` stands.
  void release(const Path& back, int cells, double start);
  // Sum over cells of the time that each was held, in ps.
  double held() const { return held_; }
  void forget_held() { held_ = 0; }

 private:
  // Cells that are there, by when they came back; of one evaluation.
  class Pool {
   public:
    void add(double at, int cells);
    // When there are as many for somebody who comes at `at`.
    double acquire(double at, int cells);

   private:
    static constexpr std::size_t kMost = 24;  // beyond that the two oldest become one
    struct Cells {
      double at = 0;
      int count = 0;
    };
    std::vector<Cells> there_;  // in order of time
  };
  struct Returned {  // in the run
    double at = 0;
    int cells = 0;
    std::array<float, kParts> spent{};
  };

  std::vector<Pool> pools_;  // by resource; none before the first packet
  std::int64_t out_ = 0, back_ = 0;
  npu::Fifo<Returned> returned_;
  double held_ = 0;
};

}  // namespace cm384::observe
