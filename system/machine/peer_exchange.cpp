#include "system/machine/peer_exchange.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/text/error.h"
#include "system/machine/window_process.h"

namespace cm384::supernode {
namespace {

constexpr std::uint32_t kNoModule = 0xffffffff;

template <class T>
void append(sim::Blob& to, const T& record) {
  const auto bytes = std::as_bytes(std::span(&record, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class T>
T read(std::span<const std::byte>& from) {
  T record;
  if (from.size() < sizeof record) throw sim::PeerLost("the processes of this simulation are out of step");
  std::memcpy(&record, from.data(), sizeof record);
  from = from.subspan(sizeof record);
  return record;
}

enum class Failure : char { input = 'i', machine = 'm', other = 'o' };

// Its kind, then its text.
std::string text_of(const std::exception_ptr& failure) {
  const auto text = [](Failure kind, const std::exception& error) {
    return std::string(1, static_cast<char>(kind)) + error.what();
  };
  try {
    std::rethrow_exception(failure);
  } catch (const InputError& error) {
    return text(Failure::input, error);
  } catch (const MachineError& error) {
    return text(Failure::machine, error);
  } catch (const std::exception& error) {
    return text(Failure::other, error);
  }
}

std::exception_ptr failure_of(const std::string& text) {
  const std::string what = text.substr(1);
  switch (static_cast<Failure>(text.front())) {
    case Failure::input:
      return std::make_exception_ptr(InputError(what));
    case Failure::machine:
      return std::make_exception_ptr(MachineError(what));
    default:
      return std::make_exception_ptr(std::runtime_error(what));
  }
}

}  // namespace

PeerExchange::PeerExchange(RunControl& control, const std::atomic<std::size_t>& unfinished,
                           ub::PacketPool& packets, sim::PayloadPool& payloads)
    : control_(control), unfinished_(unfinished), crossings_(packets, payloads, &carrier_) {}

void PeerExchange::add(WindowModule& module, unsigned owner) {
  modules_.push_back({&module, owner, module.process() == phases_[0] ? 0u : 1u});
  if (owner != sim::peers().self()) module.hold_credits();
}

// How many events a module's queues get, and when: first of all the owner makes room for them there.
void PeerExchange::announce(std::uint32_t module, unsigned peer, Report& report) {
  const Entry& entry = modules_[module];
  sim::Blob& blob = out_[peer];
  for (std::uint32_t q = 0; q < entry.module->queues().size(); ++q) {
    Head head{module, q, 0};
    const std::size_t at = blob.size();
    append(blob, head);
    entry.module->queues()[q]->each_posted([&](const sim::Event& event) {
      append(blob, event.at);
      report.next[entry.phase] = std::min(report.next[entry.phase], event.at);
      ++head.events;
    });
    if (head.events == 0) {
      blob.resize(at);
    } else {
      std::memcpy(blob.data() + at, &head, sizeof head);
    }
  }
}

void PeerExchange::cross(unsigned owner) {
  for (const Entry& entry : modules_) {
    if (entry.owner == owner) entry.module->exchange(crossings_);
  }
}

// A report, heads with times, a head of no module, what Crossings makes.
void PeerExchange::depart(unsigned peer, Report& report) {
  sim::Blob& blob = out_[peer];
  blob.assign(sizeof report, std::byte{});
  for (std::uint32_t n = 0; n < modules_.size(); ++n) {
    if (modules_[n].owner == peer) announce(n, peer, report);
  }
  append(blob, Head{kNoModule, 0, 0});
  cross(peer);
  carrier_.turned = [&blob](std::vector<std::byte>& packed) {
    blob.insert(blob.end(), packed.begin(), packed.end());
    packed.clear();
  };
  crossings_.turn();
  crossings_.clear();
  for (const Entry& entry : modules_) {
    if (entry.owner == peer) entry.module->drop_posted();
  }
}

void PeerExchange::arrive(unsigned peer) {
  std::span<const std::byte> left = std::span(in_[peer]).subspan(sizeof(Report));
  for (auto head = read<Head>(left); head.module != kNoModule; head = read<Head>(left)) {
    if (head.module >= modules_.size() || modules_[head.module].owner != sim::peers().self())
      throw MachineError("processes of this simulation do not agree on who owns what");
    sim::EventQueue& queue = *modules_[head.module].module->queues()[head.queue];
    constexpr std::uint64_t kLastKey = (std::uint64_t{1} << 44) - 1;  // which makes kDeparted
    for (; head.events != 0; --head.events) queue.post_late(read<Time>(left), kLastKey, 0, 0);
  }
  carrier_.turned = [left](std::vector<std::byte>& bytes) { bytes.assign(left.begin(), left.end()); };
  crossings_.turn();
  cross(sim::peers().self());
  crossings_.clear();
}

void PeerExchange::own_next(Report& report) const {
  for (std::size_t phase = 0; phase < kPhases; ++phase)
    report.next[phase] = std::min(report.next[phase], phases_[phase]->earliest());
}

PeerExchange::Report PeerExchange::agree(const Report& mine) const {
  Report agreed = mine;
  for (unsigned p = 0; p < in_.size(); ++p) {
    if (p == sim::peers().self()) continue;
    std::span<const std::byte> left(in_[p]);
    const auto theirs = read<Report>(left);
    for (std::size_t phase = 0; phase < kPhases; ++phase)
      agreed.next[phase] = std::min(agreed.next[phase], theirs.next[phase]);
    agreed.credits = std::min(agreed.credits, theirs.credits);
    agreed.progress = std::max(agreed.progress, theirs.progress);
    agreed.unfinished += theirs.unfinished;
    agreed.interrupted |= theirs.interrupted;
    agreed.failed |= theirs.failed;
  }
  return agreed;
}

// The sender of credits does not know whether a link waits for them and is woken by them.
bool PeerExchange::credits_may_wake(const Report& agreed) const {
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    if (agreed.credits != Time::never() &&
        phases_[phase]->window_start(agreed.credits) < phases_[phase]->window_start(agreed.next[phase]))
      return true;
  }
  return false;
}

void PeerExchange::synchronize() {
  sim::Peers& peers = sim::peers();
  const unsigned self = peers.self();
  Report mine;
  out_.resize(peers.count());
  carrier_.earliest_credits = Time::never();
  for (unsigned p = 0; p < peers.count(); ++p) {
    if (p != self) depart(p, mine);
  }
  own_next(mine);
  mine.credits = carrier_.earliest_credits;
  mine.progress = control_.last_progress;
  mine.unfinished = unfinished_.load();
  mine.interrupted = peers.interrupted_here();
  mine.failed = control_.failure != nullptr;
  for (unsigned p = 0; p < peers.count(); ++p) {
    if (p != self) std::memcpy(out_[p].data(), &mine, sizeof mine);
  }
  peers.exchange(out_, in_);
  Report agreed = agree(mine);
  for (unsigned p = 0; p < peers.count(); ++p) {
    if (p != self) arrive(p);
  }
  control_.last_progress = agreed.progress;
  agreed_unfinished_ = agreed.unfinished;
  if (agreed.interrupted) peers.agree_on_interruption();
  if (agreed.failed) agree_on_failure();
  if (credits_may_wake(agreed)) {
    mine.next.fill(Time::never());
    own_next(mine);
    in_ = peers.all(std::as_bytes(std::span(&mine, 1)));
    agreed = agree(mine);
  }
  for (std::size_t phase = 0; phase < kPhases; ++phase) phases_[phase]->agree_on_next(agreed.next[phase]);
}

// Of several the one whose module comes first.
void PeerExchange::agree_on_failure() {
  std::string mine(sizeof(std::uint64_t), '\0');
  if (control_.failure) {
    const std::uint64_t module = control_.failed_module;
    std::memcpy(mine.data(), &module, sizeof module);
    mine += text_of(control_.failure);
  }
  std::uint64_t first = UINT64_MAX;
  std::string text;
  for (const sim::Blob& blob : sim::peers().all(std::as_bytes(std::span(mine)))) {
    std::uint64_t module = 0;
    if (blob.size() <= sizeof module) continue;
    std::memcpy(&module, blob.data(), sizeof module);
    if (module >= first) continue;
    first = module;
    text.assign(reinterpret_cast<const char*>(blob.data()) + sizeof module, blob.size() - sizeof module);
  }
  control_.failure = failure_of(text);
}

}  // namespace cm384::supernode
