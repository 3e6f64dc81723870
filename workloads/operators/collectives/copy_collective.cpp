#include "workloads/operators/collectives/copy_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/text/error.h"
#include "firmware/abi/sum_parts.h"

namespace cm384::operators {

using reference::CollectiveKind;

namespace {

std::size_t at(int number) {
  return static_cast<std::size_t>(number);
}
std::uint64_t whole_lines_of(std::uint64_t bytes) {
  return (bytes + 511) / 512 * 512;
}

}  // namespace

CopyCollective::CopyCollective(host::Runtime& runtime, const reference::CollectiveCase& collective,
                               const CopySetting& setting, std::shared_ptr<npu::Program> sums)
    : runtime_(runtime),
      case_(collective),
      setting_(setting),
      program_(std::move(sums)),
      moves_(rounds_of(collective.kind, setting.algorithm, collective.ranks,
                       runtime.machine().parameters().topology)),
      ranks_(at(collective.ranks)),
      rounds_(moves_.rounds.size()) {}

// Of an all-reduce parts are whole lines, the last ones may have less, or nothing.
std::uint64_t CopyCollective::offset_of(int part) const {
  if (case_.kind != CollectiveKind::all_reduce) return at(part) * case_.bytes;
  const std::uint64_t lines = (case_.bytes + 511) / 512, ranks = at(case_.ranks);
  return std::min(case_.bytes, at(part) * ((lines + ranks - 1) / ranks) * 512);
}

std::uint64_t CopyCollective::bytes_of(int part) const {
  return case_.kind == CollectiveKind::all_reduce ? offset_of(part + 1) - offset_of(part) : case_.bytes;
}

void CopyCollective::place(RankMemory& memory) {
  const bool adds = moves_.gathers_from > 0;
  for (int n = 0; n < case_.ranks; ++n) {
    Rank& rank = ranks_[at(n)];
    host::DeviceMemory& own = memory[at(n)];
    const std::uint64_t in = case_.in() * 2, out = case_.out() * 2;
    rank.in = own.allocate_lines(in);
    rank.out = own.allocate_lines(out);
    if (setting_.reads) rank.window = own.allocate_lines(in);
    if (adds) rank.sums = own.allocate_lines(in);
    std::uint64_t arriving = 0;
    for (std::size_t r = 0; r < moves_.gathers_from; ++r) {
      for (const PartMove& move : moves_.rounds[r])
        arriving += move.to == n ? whole_lines_of(bytes_of(move.part)) : 0;
    }
    if (adds) rank.arrivals = own.allocate_lines(arriving);
    if (setting_.full) {
      const std::vector<std::uint16_t> values = reference::make_collective_input(case_, n);
      runtime_.put(rank.in, std::span<const std::uint16_t>(values));
    } else {
      runtime_.mark_payload(rank.in, in);
    }
    for (int peer = 0; peer < case_.ranks; ++peer) {
      rank.ready.push_back(runtime_.create_notify(own.die()));
      rank.done.push_back(runtime_.create_notify(own.die()));
    }
    rank.main = runtime_.create_stream(own.die());
    rank.local = runtime_.create_stream(own.die());
    const int streams = std::min(runtime_.machine().parameters().sdma.channels, case_.ranks - 1);
    for (int s = 0; s < streams; ++s) rank.streams.push_back(runtime_.create_stream(own.die()));
    // Where its input has the parts: all of them, but of an all-gather, which has its own one.
    const std::uint64_t input = setting_.reads ? rank.window : rank.in;
    rank.partial.assign(at(case_.ranks), 0);
    for (int part = 0; part < case_.ranks; ++part) {
      if (case_.kind != CollectiveKind::all_gather) rank.partial[at(part)] = input + offset_of(part);
      if (case_.kind == CollectiveKind::all_gather && part == n) rank.partial[at(part)] = input;
    }
  }
}

void CopyCollective::plan() {
  for (std::size_t n = 0; n < rounds_.size(); ++n) plan_round(n, rounds_[n]);
}

// Where what goes in a round comes from is what was there before it.
void CopyCollective::plan_round(std::size_t number, Round& round) {
  round.pieces.assign(ranks_.size(), std::vector<std::vector<Piece>>(ranks_.size()));
  round.sums.resize(ranks_.size());
  const bool adds = number < moves_.gathers_from;
  std::vector<std::map<int, PartSum>> sums(ranks_.size());
  std::vector<std::map<int, std::uint64_t>> now(ranks_.size());  // of ranks: where parts are afterwards
  for (const PartMove& move : moves_.rounds[number]) {
    const std::uint64_t bytes = bytes_of(move.part);
    if (bytes == 0) continue;
    Rank& to = ranks_[at(move.to)];
    Piece piece{ranks_[at(move.from)].partial[at(move.part)], to.out + offset_of(move.part), bytes};
    if (case_.kind == CollectiveKind::all_to_all) piece.to = to.out + offset_of(move.from);
    if (adds) {
      piece.to = to.arrivals;
      to.arrivals += whole_lines_of(bytes);
      sums[at(move.to)][move.part].terms.push_back(piece.to);
    } else {
      now[at(move.to)][move.part] = piece.to;
    }
    const int who = setting_.reads ? move.to : move.from, other = setting_.reads ? move.from : move.to;
    std::vector<Piece>& pieces = round.pieces[at(who)][at(other)];
    if (!pieces.empty() && pieces.back().from + pieces.back().bytes == piece.from &&
        pieces.back().to + pieces.back().bytes == piece.to) {
      pieces.back().bytes += bytes;
    } else {
      pieces.push_back(piece);
    }
  }
  for (int n = 0; n < case_.ranks; ++n) {
    Rank& rank = ranks_[at(n)];
    for (auto& [part, sum] : sums[at(n)]) {
      sum.bytes = bytes_of(part);
      sum.terms.insert(sum.terms.begin(), rank.partial[at(part)]);
      // The last that comes of its own part makes the result.
      bool last = part == n;
      for (std::size_t later = number + 1; later < moves_.gathers_from; ++later) {
        last = last && std::ranges::none_of(moves_.rounds[later],
                                            [&](const PartMove& m) { return m.to == n && m.part == n; });
      }
      const std::uint64_t place = case_.kind == CollectiveKind::all_reduce ? offset_of(part) : 0;
      sum.out = last ? rank.out + place : rank.sums + offset_of(part);
      now[at(n)][part] = sum.out;
      round.sums[at(n)].push_back(std::move(sum));
    }
    // A rank's own part of an all-gather stands in its output from then on.
    if (case_.kind == CollectiveKind::all_gather && number == 0) now[at(n)][n] = rank.out + offset_of(n);
    for (const auto& [part, place] : now[at(n)]) rank.partial[at(part)] = place;
  }
}

std::vector<int> CopyCollective::peers_of(int rank, const Round& round) const {
  std::vector<int> peers;
  for (int step = 1; step < case_.ranks; ++step) {
    const int peer = (rank + step) % case_.ranks;
    if (!round.pieces[at(rank)][at(peer)].empty() || !round.pieces[at(peer)][at(rank)].empty())
      peers.push_back(peer);
  }
  return peers;
}

// Entries of a graph are all there before the first one has its turn.
void CopyCollective::check_entries() const {
  const auto depth = static_cast<std::size_t>(runtime_.machine().parameters().scheduler.queue_depth);
  for (int n = 0; n < case_.ranks; ++n) {
    std::size_t main = 8;
    for (const Round& round : rounds_)
      main += std::min(ranks_[at(n)].streams.size(), peers_of(n, round).size()) + 3;
    if (main > depth)
      throw InputError(
          fmt::format("--algorithm {}: {} ranks: {} entries of a stream; scheduler.queue_depth is {}",
                      name_of(setting_.algorithm), case_.ranks, main, depth));
  }
}

host::Event CopyCollective::after(host::Stream stream) {
  const host::Event event = runtime_.create_event(stream.die);
  runtime_.record_event(stream, event);
  return event;
}

void CopyCollective::enqueue(RankMemory& memory) {
  place(memory);
  plan();
  check_entries();
  std::vector<int> dies;
  for (const host::DeviceMemory& own : memory) dies.push_back(own.die());
  std::vector<host::Notify> go;
  if (setting_.graph) {
    for (int n = 0; n < case_.ranks; ++n) {
      go.push_back(runtime_.create_notify(dies[at(n)]));
      runtime_.wait_notify(ranks_[at(n)].main, go.back());
    }
  } else {
    runtime_.host_barrier(dies);
  }
  for (int n = 0; n < case_.ranks; ++n) {
    if (setting_.by_aicpu) {
      host::unfold_on_device(runtime_, dies[at(n)], [&] { submit(n, memory); });
    } else {
      submit(n, memory);
    }
  }
  if (!setting_.graph) return;
  runtime_.host_barrier(dies);
  for (int n = 0; n < case_.ranks; ++n)
    runtime_.record_notify(runtime_.create_stream(dies[at(n)]), go[at(n)]);
}

void CopyCollective::submit(int n, RankMemory& memory) {
  Rank& rank = ranks_[at(n)];
  const host::Event begun = runtime_.create_event(rank.main.die);
  rank.first = runtime_.record_event(rank.main, begun);
  // The part that stays, beside the first round.
  const bool stays = case_.kind == CollectiveKind::all_gather || case_.kind == CollectiveKind::all_to_all;
  if (stays) {
    const bool gathers = case_.kind == CollectiveKind::all_gather;
    runtime_.stream_wait_event(rank.local, begun);
    runtime_.memcpy_async(rank.local, rank.out + offset_of(n), rank.in + (gathers ? 0 : offset_of(n)),
                          case_.bytes);
  }
  if (setting_.reads) runtime_.memcpy_async(rank.main, rank.window, rank.in, case_.in() * 2);
  for (std::size_t number = 0; number < rounds_.size(); ++number) {
    submit_round(n, number, memory);
    if (stays && number == 0) runtime_.stream_wait_event(rank.main, after(rank.local));
  }
  rank.last = runtime_.record_event(rank.main, runtime_.create_event(rank.main.die));
}

// Each stream has peers of its own: it notifies them that this rank is ready, copies when they are, and waits
// until they have copied.
void CopyCollective::submit_round(int n, std::size_t number, RankMemory& memory) {
  Rank& rank = ranks_[at(n)];
  const Round& round = rounds_[number];
  const std::vector<int> peers = peers_of(n, round);
  const std::size_t streams = std::min(rank.streams.size(), peers.size());
  const host::Event begun = after(rank.main);
  for (std::size_t s = 0; s < streams; ++s) {
    const host::Stream stream = rank.streams[s];
    const auto each = [&](auto&& call) {
      for (std::size_t p = s; p < peers.size(); p += streams)
        call(peers[p], round.pieces[at(n)][at(peers[p])], !round.pieces[at(peers[p])][at(n)].empty());
    };
    runtime_.stream_wait_event(stream, begun);
    each([&](int peer, const std::vector<Piece>&, bool copies) {
      if (copies) runtime_.record_notify(stream, ranks_[at(peer)].ready[at(n)]);
    });
    each([&](int peer, const std::vector<Piece>& pieces, bool) {
      if (pieces.empty()) return;
      runtime_.wait_notify(stream, rank.ready[at(peer)]);
      for (const Piece& piece : pieces) runtime_.memcpy_async(stream, piece.to, piece.from, piece.bytes);
      runtime_.record_notify(stream, ranks_[at(peer)].done[at(n)]);
    });
    each([&](int peer, const std::vector<Piece>&, bool copies) {
      if (copies) runtime_.wait_notify(stream, rank.done[at(peer)]);
    });
    runtime_.stream_wait_event(rank.main, after(stream));
  }
  launch_sums(n, round.sums[at(n)], memory);
}

// As many launches as there are numbers of terms: one, unless a rank's parts differ.
void CopyCollective::launch_sums(int n, const std::vector<PartSum>& sums, RankMemory& memory) {
  std::set<std::size_t> terms;
  for (const PartSum& sum : sums) terms.insert(sum.terms.size());
  host::DeviceMemory& own = memory[at(n)];
  for (const std::size_t count : terms) {
    std::vector<std::uint64_t> table;
    std::uint64_t most = 0;
    cm384_sum_parts a{};
    for (const PartSum& sum : sums) {
      if (sum.terms.size() != count) continue;
      table.insert(table.end(), {sum.out, sum.bytes});
      table.insert(table.end(), sum.terms.begin(), sum.terms.end());
      most = std::max(most, sum.bytes);
      ++a.count;
    }
    a.sums = own.allocate_lines(table.size() * sizeof table[0]);
    runtime_.put(a.sums, std::span<const std::uint64_t>(table));
    a.terms = static_cast<std::uint32_t>(count);
    // A block adds a chunk of a term or more, where there is so much.
    const auto blocks = static_cast<int>(
        std::clamp<std::uint64_t>(most / 4096, 1, static_cast<std::uint64_t>(setting_.cores)));
    npu::LaunchRequest request{program_, own.put(a), runtime_.first_cores(blocks)};
    request.graph = setting_.graph;
    runtime_.launch(ranks_[at(n)].main, std::move(request));
    ++launches_;
  }
}

double CopyCollective::rank_us(int n) const {
  const Rank& rank = ranks_[at(n)];
  const host::HostTask& first = runtime_.task(rank.first);
  const Time from = setting_.graph ? first.record.completed : first.called;
  return (runtime_.task(rank.last).record.completed - from).us();
}

Time CopyCollective::begin() const {
  Time first = Time::never();
  for (const Rank& rank : ranks_) {
    const host::HostTask& task = runtime_.task(rank.first);
    first = std::min(first, setting_.graph ? task.record.completed : task.called);
  }
  return first;
}

Time CopyCollective::end() const {
  Time last;
  for (const Rank& rank : ranks_) last = std::max(last, runtime_.task(rank.last).record.completed);
  return last;
}

std::string CopyCollective::check() const {
  for (int n = 0; n < case_.ranks; ++n) {
    std::string difference =
        reference::compare_collective(case_, n, runtime_.get<std::uint16_t>(ranks_[at(n)].out, case_.out()));
    if (!difference.empty()) return difference;
  }
  return {};
}

}  // namespace cm384::operators
