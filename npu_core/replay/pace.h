// Launches with like work on many dies: some dies play what was recorded, request by request, and set the
// pace; the others, the followers, keep their cores busy for as long as one of these took and move nothing.
//
// A follower that begins at b with work that takes `alone` by itself ends at b + (e - s) alone / alone_s,
// where a setter began at s, ended at e and takes alone_s by itself. It follows the setter whose work is
// most like its own: of its kind, if there are such, and of about its length. Of those alike it is the one
// that began last before it; where none of them has begun it waits for the first, so that it may end later
// than it should by what that setter is behind; late() sums this up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/engine/worker.h"
#include "base/text/units.h"

namespace cm384::npu {

// A die's follower.
class PaceFollower {
 public:
  // Its launch of that number ends at `at`, not before what the die has run.
  virtual void ends_at(std::uint32_t number, Time at) = 0;

 protected:
  ~PaceFollower() = default;
};

// What a launch does on a die.
struct PacedWork {
  int kind = 0;  // work of another kind may take as long alone, but not beside other work
  Time alone;    // by itself
};

class PaceBoard {
 public:
  // How much later than it should a follower has ended.
  struct Late {
    std::uint64_t launches = 0;  // of followers
    Time sum, most;
  };

  explicit PaceBoard(unsigned workers) : notes_(workers) {}
  PaceBoard(const PaceBoard&) = delete;
  PaceBoard& operator=(const PaceBoard&) = delete;

  // A launch that several dies have: its number.
  std::size_t add() {
    launches_.emplace_back();
    return launches_.size() - 1;
  }
  // One more die sets its pace. Before the run.
  void add_setter(std::size_t launch, PacedWork work) { launches_[launch].expected.push_back(work); }
  // A setter's first block begins, its last block has ended: by the die's worker.
  void began(std::size_t launch, int die, Time at, PacedWork work) {
    notes_.mine().push_back({Note::Kind::began, die, launch, at, work, 0, nullptr});
  }
  void ended(std::size_t launch, int die, Time at) {
    notes_.mine().push_back({Note::Kind::ended, die, launch, at, {}, 0, nullptr});
  }
  // A follower's first block begins; `follower` is told the end of `number`, the die's own of the launch.
  void follow(std::size_t launch, int die, Time at, PacedWork work, std::uint32_t number,
              PaceFollower& follower) {
    notes_.mine().push_back({Note::Kind::follows, die, launch, at, work, number, &follower});
  }
  // No module runs; dies take events from `reached` on.
  void settle(Time reached);

  const Late& late() const { return late_; }

 private:
  struct Note {
    enum class Kind : std::uint8_t { began, ended, follows };
    Kind kind = Kind::began;
    int die = 0;
    std::size_t launch = 0;
    Time at;
    PacedWork work;
    std::uint32_t number = 0;
    PaceFollower* told = nullptr;
  };
  struct Setter {
    int die = 0;
    Time begin, end = Time::never();
    PacedWork work;
  };
  struct Follower {
    Time begin;
    PacedWork work;
    std::uint32_t number = 0;
    PaceFollower* told = nullptr;
    std::size_t setter = SIZE_MAX;  // of the launch's; none yet
  };
  struct Launch {
    std::vector<PacedWork> expected;  // of its setters
    std::vector<Setter> setters;      // that have begun, in this order
    std::vector<Follower> followers;  // that have not been told
  };

  void apply(const Note& note);
  static std::size_t choose_setter(const Launch& launch, const Follower& follower);
  // Schedules a follower's end, once the setter's is known; false before that.
  bool schedule_end(const Launch& launch, Follower& follower, Time reached);

  sim::PerWorker<std::vector<Note>> notes_;
  std::vector<Note> sorted_;
  std::vector<Launch> launches_;
  std::vector<std::size_t> open_;  // launches with followers
  Late late_;
};

}  // namespace cm384::npu
