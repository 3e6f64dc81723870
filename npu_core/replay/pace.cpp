#include "npu_core/replay/pace.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace cm384::npu {
namespace {

// Work of another kind is farther than any of the same.
Time distance(PacedWork a, PacedWork b) {
  return Time{std::abs(a.alone.ps - b.alone.ps)} + (a.kind == b.kind ? Time{} : 1'000_s);
}

}  // namespace

void PaceBoard::settle(Time reached) {
  sorted_.clear();
  notes_.each([this](std::vector<Note>& notes) {
    sorted_.insert(sorted_.end(), notes.begin(), notes.end());
    notes.clear();
  });
  std::ranges::sort(sorted_, {}, [](const Note& n) { return std::tuple(n.at, n.kind, n.die, n.launch); });
  for (const Note& note : sorted_) apply(note);
  std::erase_if(open_, [&](std::size_t number) {
    Launch& launch = launches_[number];
    std::erase_if(launch.followers,
                  [&](Follower& follower) { return schedule_end(launch, follower, reached); });
    return launch.followers.empty();
  });
}

void PaceBoard::apply(const Note& note) {
  Launch& launch = launches_[note.launch];
  switch (note.kind) {
    case Note::Kind::began:
      launch.setters.push_back({note.die, note.at, Time::never(), note.work});
      return;
    case Note::Kind::ended:
      std::ranges::find(launch.setters, note.die, &Setter::die)->end = note.at;
      return;
    case Note::Kind::follows:
      if (launch.followers.empty()) open_.push_back(note.launch);
      launch.followers.push_back({note.at, note.work, note.number, note.told});
      return;
  }
}

// SIZE_MAX: none that is to be followed has begun.
std::size_t PaceBoard::choose_setter(const Launch& launch, const Follower& follower) {
  constexpr std::int64_t kAlike = 50;  // a fiftieth of the work
  Time nearest = Time::never();
  for (const PacedWork work : launch.expected) nearest = std::min(nearest, distance(work, follower.work));
  const Time alike = nearest + Time{follower.work.alone.ps / kAlike};
  std::size_t first = SIZE_MAX, last = SIZE_MAX;
  for (std::size_t n = 0; n < launch.setters.size(); ++n) {
    if (distance(launch.setters[n].work, follower.work) > alike) continue;
    if (first == SIZE_MAX) first = n;
    if (launch.setters[n].begin <= follower.begin) last = n;
  }
  return last != SIZE_MAX ? last : first;
}

bool PaceBoard::schedule_end(const Launch& launch, Follower& follower, Time reached) {
  if (follower.setter == SIZE_MAX) follower.setter = choose_setter(launch, follower);
  if (follower.setter == SIZE_MAX) return false;
  const Setter& setter = launch.setters[follower.setter];
  if (setter.end == Time::never()) return false;
  const Time own = follower.work.alone, alone = setter.work.alone;
  Time took = setter.end - setter.begin;
  if (alone != own && alone != Time{})
    took.ps = static_cast<std::int64_t>(static_cast<double>(took.ps) * static_cast<double>(own.ps) /
                                        static_cast<double>(alone.ps));
  const Time due = follower.begin + took, end = std::max(due, reached);
  ++late_.launches;
  late_.sum += end - due;
  late_.most = std::max(late_.most, end - due);
  follower.told->ends_at(follower.number, end);
  return true;
}

}  // namespace cm384::npu
