// Something that serves one after another, each for a known time, as paths meet it: a link, a controller's
// slots. In every evaluation it serves those that come as they come there.
#pragma once

#include <array>
#include <memory>

#include "system/observe/explain/calendar.h"
#include "system/observe/explain/path.h"

namespace cm384::observe {

// What a service is spent on, and what makes it take half the time.
struct Served {
  Part part = Part::other;
  Resource by = Resource::none, too = Resource::none;

  double halved(double ps, std::size_t resource) const {
    const auto is = [resource](Resource r) {
      return r != Resource::none && static_cast<std::size_t>(r) == resource;
    };
    return is(by) || is(too) ? ps / 2 : ps;
  }
};

class Server {
 public:
  // A path comes; in the run it was served from `start` (ps) on, for `service`. What of its wait is not for
  // those before it is `otherwise`. Leaves the path at the start.
  void serve(Path& path, double start, double service, const Served& served, Part otherwise);
  // Serves somebody without a path, who comes at `start` in every evaluation.
  void occupy(double start, double service, const Served& served);
  // Time it has served since the last forget_busy(), ps.
  double busy() const { return busy_; }
  void forget_busy() { busy_ = 0; }
  // When it has served those that came in the run, ps.
  double free_at() const { return free_at_; }

 private:
  Calendar& calendar(std::size_t resource);

  std::unique_ptr<std::array<Calendar, kResources>> calendars_;
  double free_at_ = 0, busy_ = 0;
  std::array<float, kParts> spent_{};  // of the last one, until free_at_
};

}  // namespace cm384::observe
