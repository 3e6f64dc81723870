// Data between all ranks at once by their SDMA engines: a stage of an all-to-all whose every rank sends what
// it has in one block, one copy a rank, from as many streams as it has channels. No core takes part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/frame/confidence.h"
#include "workloads/frame/session.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

struct ExchangeCase {
  // [source][target] bytes; those for the own rank are copied in the own memory. 0: no copy.
  std::vector<std::vector<std::uint64_t>> bytes;

  // The same number of bytes for every pair of ranks.
  static ExchangeCase even(int ranks, std::uint64_t bytes) {
    const auto count = static_cast<std::size_t>(ranks);
    return {std::vector<std::vector<std::uint64_t>>(count, std::vector<std::uint64_t>(count, bytes))};
  }
};

// One exchange in a session of dies 0, 1, ..., of which each is a rank.
class Exchange {
 public:
  // Allocates what is sent and received. The case outlives it.
  Exchange(Session& session, const ExchangeCase& exchange, int channels);

  // Puts the copies into streams of their own, where they wait. Once.
  void submit();
  // All ranks begin together, when what is in streams of the dies by now has been taken up.
  void start();
  // After submit(): for a stream that waits for the same as the copies of its die.
  host::Event begun(std::size_t rank) const { return ranks_[rank].event; }

  // Of a rank, once all has run: from its begin to the end of the last copy from it or to it.
  struct Span {
    Time begin, end;
  };
  std::vector<Span> spans() const;

 private:
  // A rank's copies, which wait in their streams until the rank is let go.
  struct Rank {
    host::Notify go;
    host::Event event;
    host::TaskHandle begun;
    std::vector<host::TaskHandle> copies;  // by target; those of no bytes are left out
    std::vector<std::size_t> targets;
  };
  std::size_t ranks() const { return case_.bytes.size(); }
  void submit(std::size_t rank);
  std::uint64_t place(std::size_t target, std::size_t source) const;

  host::Runtime& runtime_;
  const ExchangeCase& case_;
  std::size_t channels_;
  std::vector<std::uint64_t> from_, to_;  // of each rank
  std::vector<Rank> ranks_;
};

// Microseconds, over ranks: from where all have what they send to the end of a rank's last copy, from it or
// to it. Ranks stand on dies 0, 1, ... Without samples: interrupted.
Summary measure_exchange(const StudyContext& context, const std::string& what, const ExchangeCase& exchange,
                         SimulatorCounts& counts);

}  // namespace cm384::studies
