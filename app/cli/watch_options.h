// What to write beside the rows about the machine as it runs; options of `run` and of `trace replay`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "system/machine/link_name.h"
#include "system/observe/timeline.h"
#include "workloads/frame/options.h"

namespace cm384::cli {

// Throws InputError for what is no choice of links or parts.
void check_parts(std::string_view text);

struct WatchOptions {
  std::string stats, timeline;
  bool stats_detail = false;
  studies::Texts stats_parts;
  studies::Integers timeline_dies, timeline_cores;
  Time timeline_from{}, timeline_to{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using studies::Form;
    using studies::Needs;
    using studies::Range;
    visit("stats", self.stats, Form{"FILE"}, "write what every part of the machine counted, as JSON");
    visit("stats-detail", self.stats_detail, "every core, channel and link on its own as well",
          Needs{"stats", {}});
    visit("stats-parts", self.stats_parts, Form{"die=N|plane=N,node=N,l2=N", check_parts},
          "only counters of these parts and links, with all that is inside the named ones; may be repeated",
          Needs{"stats", {}});
    visit("timeline", self.timeline, Form{"FILE"},
          "write Chrome trace JSON for Perfetto, compressed if the name ends in .gz");
    visit("timeline-dies", self.timeline_dies, Range{0, 65535}, "dies that it shows; default: the first one",
          Needs{"timeline", {}});
    visit("timeline-cores", self.timeline_cores, Range{0, 1023}, "cores of them; default: all",
          Needs{"timeline", {}});
    visit("timeline-from", self.timeline_from, Range{Time{}, Time::never()}, "leave out what ends before",
          Needs{"timeline", {}});
    visit("timeline-to", self.timeline_to, Range{Time{}, Time::never()},
          "leave out what begins after; 0: nothing", Needs{"timeline", {}});
  }

  std::vector<supernode::LinkSelection> parts() const;
  // What the timeline shows. Throws InputError for a reversed window.
  observe::TimelineOptions shown() const;
};

}  // namespace cm384::cli
