#include "workloads/collectives/exchange.h"

#include <algorithm>

namespace cm384::studies {
namespace {

// What goes to a rank, and what comes from it, begins on a line: else a request would be cut in two.
std::uint64_t whole_lines(std::uint64_t bytes) {
  return (bytes + 511) / 512 * 512;
}

}  // namespace

Exchange::Exchange(Session& session, const ExchangeCase& exchange, int channels)
    : runtime_(session.runtime()), case_(exchange), channels_(static_cast<std::size_t>(channels)) {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto sum = [&](auto&& bytes) {
      std::uint64_t all = 0;
      for (std::size_t peer = 0; peer < ranks(); ++peer) all += whole_lines(bytes(peer));
      return std::max<std::uint64_t>(all, 512);
    };
    const std::uint64_t sent = sum([&](std::size_t peer) { return case_.bytes[rank][peer]; });
    const std::uint64_t received = sum([&](std::size_t peer) { return case_.bytes[peer][rank]; });
    from_.push_back(runtime_.allocate(static_cast<int>(rank), sent));
    to_.push_back(runtime_.allocate(static_cast<int>(rank), received));
    runtime_.mark_payload(from_.back(), sent);
  }
}

void Exchange::submit() {
  for (std::size_t rank = 0; rank < ranks(); ++rank) submit(rank);
}

void Exchange::start() {
  std::vector<int> dies;
  for (std::size_t rank = 0; rank < ranks(); ++rank) dies.push_back(static_cast<int>(rank));
  runtime_.host_barrier(dies);
  for (const int die : dies)
    runtime_.record_notify(runtime_.create_stream(die), ranks_[static_cast<std::size_t>(die)].go);
}

std::vector<Exchange::Span> Exchange::spans() const {
  std::vector<Span> spans(ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    for (std::size_t n = 0; n < ranks_[rank].copies.size(); ++n) {
      const Time end = runtime_.task(ranks_[rank].copies[n]).record.completed;
      for (const std::size_t of : {rank, ranks_[rank].targets[n]})
        spans[of].end = std::max(spans[of].end, end);
    }
  }
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    spans[rank].begin = runtime_.task(ranks_[rank].begun).record.completed;
    spans[rank].end = std::max(spans[rank].begin, spans[rank].end);
  }
  return spans;
}

// Peers in an order that starts behind the own rank; itself last.
void Exchange::submit(std::size_t rank) {
  const int die = static_cast<int>(rank);
  Rank& own = ranks_.emplace_back();
  const host::Stream first = runtime_.create_stream(die);
  own.go = runtime_.create_notify(die);
  own.event = runtime_.create_event(die);
  runtime_.wait_notify(first, own.go);
  own.begun = runtime_.record_event(first, own.event);
  std::vector<host::Stream> streams;
  for (std::size_t channel = 0; channel < std::min(channels_, ranks()); ++channel) {
    streams.push_back(runtime_.create_stream(die));
    runtime_.stream_wait_event(streams.back(), own.event);
  }
  std::uint64_t from = from_[rank];
  for (std::size_t i = 1; i <= ranks(); ++i) {
    const std::size_t peer = (rank + i) % ranks();
    const std::uint64_t bytes = case_.bytes[rank][peer];
    if (bytes == 0) continue;
    own.copies.push_back(runtime_.memcpy_async(streams[i % streams.size()], place(peer, rank), from, bytes));
    own.targets.push_back(peer);
    from += whole_lines(bytes);
  }
}

// Where `target` takes what comes from `source`.
std::uint64_t Exchange::place(std::size_t target, std::size_t source) const {
  std::uint64_t at = to_[target];
  for (std::size_t before = 0; before < source; ++before) at += whole_lines(case_.bytes[before][target]);
  return at;
}

Summary measure_exchange(const StudyContext& context, const std::string& what, const ExchangeCase& exchange,
                         SimulatorCounts& counts) {
  SessionOptions options;
  for (std::size_t rank = 0; rank < exchange.bytes.size(); ++rank)
    options.dies.push_back(static_cast<int>(rank));
  options.what = what;
  Session session(context, options);
  Exchange copies(session, exchange, context.machine.sdma.channels);
  session.expect(1, 500_us);
  copies.submit();
  copies.start();
  if (!session.runtime().wait()) return {};
  session.count(counts);
  std::vector<double> us;
  for (const Exchange::Span& span : copies.spans()) us.push_back((span.end - span.begin).us());
  return summarise(std::move(us));
}

}  // namespace cm384::studies
