#include "workloads/prefill/overlap.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "workloads/collectives/exchange.h"

namespace cm384::studies {
namespace {

using Span = Exchange::Span;
using operators::KernelOperator;

constexpr std::uint64_t kLine = 512;
// Sequences that are shorter run again and again, so that starting is little of what is measured.
constexpr double kLeast_us = 100;
constexpr int kMostRounds = 16;

double us_of(const Span& span) {
  return (span.end - span.begin).us();
}
double both_us(const Span& one, const Span& other) {
  const Time from = std::max(one.begin, other.begin), to = std::min(one.end, other.end);
  return to > from ? (to - from).us() : 0;
}

// Operators and copies on a machine of their own. What is not run is there all the same, so that operands
// stand in the same places of a die.
class Pair {
 public:
  Pair(const StudyContext& context, const std::string& what, int ranks, const Sequence& sequence)
      : context_(context), what_(what), ranks_(ranks), sequence_(sequence) {}

  void exchange(std::uint64_t lines) { exchange_ = ExchangeCase::even(ranks_, lines * kLine); }
  // Of the sequence, one after another; each operator has operands of its own.
  void rounds(int count) { rounds_ = count; }

  // Of each rank. Without elements: not asked for.
  struct Spans {
    std::vector<Span> copies, operators;
  };
  // With the operators on the first `loaded` ranks, after exchange(). Empty: interrupted.
  std::optional<Spans> run(bool copies, std::size_t loaded, SimulatorCounts& counts) const {
    SessionOptions options;
    options.what = what_;
    for (int rank = 0; rank < ranks_; ++rank) options.dies.push_back(rank);
    Session session(context_, options);
    host::Runtime& runtime = session.runtime();
    Exchange exchange(session, exchange_, context_.machine.sdma.channels);
    session.expect(1, 500_us);
    Memory memory;
    std::vector<std::unique_ptr<KernelOperator>> placed;
    if (copies) exchange.submit();
    for (std::size_t rank = 0; rank < loaded; ++rank) {
      const host::Stream stream = runtime.create_stream(static_cast<int>(rank));
      if (copies) runtime.stream_wait_event(stream, exchange.begun(rank));
      for (int round = 0; round < rounds_; ++round) {
        for (const MakeOperator& make : sequence_) placed.push_back(enqueue(session, stream, make(), memory));
      }
    }
    if (copies) exchange.start();
    if (!runtime.wait()) return {};
    session.count(counts);
    Spans made;
    if (copies) made.copies = exchange.spans();
    const std::size_t launches = sequence_.size() * static_cast<std::size_t>(rounds_);
    for (std::size_t first = 0; first < placed.size(); first += launches)
      made.operators.push_back(
          {placed[first]->record().task_start, placed[first + launches - 1]->record().task_end});
    return made;
  }

 private:
  using Memory = std::vector<std::unique_ptr<host::DeviceMemory>>;

  std::unique_ptr<KernelOperator> enqueue(Session& session, host::Stream stream,
                                          std::unique_ptr<KernelOperator> one, Memory& memory) const {
    memory.push_back(std::make_unique<host::DeviceMemory>(session.runtime(), stream.die));
    const int aic = context_.machine.die.groups();
    one->place({*memory.back(), [&session](std::string_view kernel) { return session.built_in(kernel); },
                operators::cores_from(0, one->type() == npu::KernelType::aiv ? 2 * aic : aic), false});
    one->launch_in_graph(true);
    one->enqueue(stream);
    return one;
  }

  const StudyContext& context_;
  const std::string& what_;
  const int ranks_;
  const Sequence& sequence_;
  ExchangeCase exchange_;
  int rounds_ = 1;
};

double mean_us(const std::vector<Span>& spans) {
  double us = 0;
  for (const Span& span : spans) us += us_of(span);
  return us / static_cast<double>(spans.size());
}

}  // namespace

double slowdown_while_both(double alone_us, double took_us, double both_us) {
  const double done_us = alone_us - (took_us - both_us);  // of its work, while both ran
  return both_us > 0 && done_us > 0 ? both_us / done_us : 1;
}

std::optional<Overlap> measure_overlap(const StudyContext& context, const std::string& what, int ranks,
                                       const Sequence& sequence, SimulatorCounts& counts) {
  Pair pair(context, what, ranks, sequence);
  // How long an exchange takes, about: a latency, and so much for each line to each rank.
  constexpr std::array<std::uint64_t, 2> kProbes{64, 256};
  std::array<double, 2> us{};
  for (std::size_t n = 0; n < kProbes.size(); ++n) {
    pair.exchange(kProbes[n]);
    const auto probe = pair.run(true, 0, counts);
    if (!probe) return {};
    us[n] = mean_us(probe->copies);
  }
  const auto once = pair.run(false, 1, counts);
  if (!once) return {};
  const int rounds = std::clamp(static_cast<int>(kLeast_us / mean_us(once->operators)), 1, kMostRounds);
  pair.rounds(rounds);
  const double wanted_us = rounds * mean_us(once->operators) - us[0];
  const double lines = kProbes[0] + wanted_us * (kProbes[1] - kProbes[0]) / (us[1] - us[0]);
  pair.exchange(static_cast<std::uint64_t>(std::max(1.0, std::ceil(lines))));

  const auto alone = pair.run(false, 1, counts);
  const auto copies = alone ? pair.run(true, 0, counts) : std::nullopt;
  const auto both = copies ? pair.run(true, static_cast<std::size_t>(ranks), counts) : std::nullopt;
  if (!both) return {};
  Overlap made;
  made.operator_us = mean_us(alone->operators);
  made.exchange_us = mean_us(copies->copies);
  made.operator_slowdown = made.exchange_slowdown = 0;
  for (std::size_t rank = 0; rank < both->copies.size(); ++rank) {
    const double together = both_us(both->copies[rank], both->operators.at(rank));
    made.operator_slowdown +=
        slowdown_while_both(made.operator_us, us_of(both->operators.at(rank)), together) / ranks;
    made.exchange_slowdown +=
        slowdown_while_both(us_of(copies->copies[rank]), us_of(both->copies[rank]), together) / ranks;
  }
  return made;
}

}  // namespace cm384::studies
