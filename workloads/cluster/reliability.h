// A run that takes a whole pool for weeks: what fails, what is lost for it, and how often to save.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/toml_file.h"

namespace cm384::cluster {

// How a run comes back. Seconds.
struct RecoveryLevel {
  std::string name, source;
  double detection = 0, restart = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the level", hw::Required{});
    visit("detection", self.detection, hw::Range{0.0, 1e6}, "s until the fault is known", hw::Required{});
    visit("restart", self.restart, hw::Range{0.0, 1e6}, "s from then until the run computes again",
          hw::Required{});
    visit("source", self.source, "of both");
  }
};

struct FailingPart {
  std::string name, each, level, source;
  double fit = 0, least = 0, most = 0;  // failures per 10^9 h of each; plausible ends, which no run uses
  double interrupts = 1;                // share of them that stop the run
  double slows = 0;   // of the others, until repaired: share of its speed that the run loses
  double repair = 0;  // h; of what interrupts: a node is away; 0: none is
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the part", hw::Required{});
    visit("each", self.each, "what `cm384 machine count` counts", hw::Required{});
    visit("fit", self.fit, hw::Range{0.0, 1e9}, "failures per 10^9 h", hw::Required{});
    visit("least", self.least, hw::Range{0.0, 1e9}, "plausible; no run uses it");
    visit("most", self.most, hw::Range{0.0, 1e9}, "plausible; no run uses it");
    visit("interrupts", self.interrupts, hw::Range{0.0, 1.0}, "share that stops the run");
    visit("level", self.level, "how the run comes back", hw::Required{});
    visit("slows", self.slows, hw::Range{0.0, 0.99}, "share of speed that others take");
    visit("repair", self.repair, hw::Range{0.0, 1e5}, "h");
    visit("source", self.source, "of the rate");
  }
};

struct ReliabilityTable {
  std::string name, note;
  std::vector<RecoveryLevel> levels;
  std::vector<FailingPart> parts;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the table", hw::Required{});
    visit("note", self.note, "what is to be said of it");
    visit("level", self.levels);
    visit("part", self.parts);
  }
  // "default", or a file. Throws InputError.
  static ReliabilityTable load(const std::string& name_or_file);
  static ReliabilityTable parse(std::string_view text, const std::string& name);
};

// A part with how often it fails in the whole pool, and how the run comes back from it.
struct Hazard {
  std::string name;
  double per_second = 0;  // of all of them
  double interrupts = 1, slows = 0;
  double repair = 0;                  // s
  double detection = 0, restart = 0;  // s
  bool of_npu = false;                // one NPU of a node fails, not what all of them share
};

struct ReliabilityCase {
  std::vector<Hazard> hazards;
  int supernodes = 1, nodes = 48;  // of each; the run takes all but the spares
  int spares = 0;                  // nodes of each supernode
  double wall = 0;                 // s that are looked at
  double interval = 0;             // s of work between two checkpoints
  double write = 0;                // s that one stops the run
  double beside = 0;               // s after these until it is written, beside work; at most `interval`
};

// Where the time of a run went: shares of `wall`, which add up to 1. What was not saved at the end counts as
// useful.
struct ReliabilityShares {
  double useful = 0;  // work that was saved, at full speed
  double redo = 0;    // work and checkpoints that a fault threw away
  double checkpoint = 0, detection = 0, restart = 0;
  double waiting = 0;  // for a node, with all spares taken
  double slow = 0;     // what slow parts took of saved work
};

struct ReliabilityRun {
  bool complete = true;  // false: ended from outside
  ReliabilityShares shares;
  double short_of_spares = 0;          // share of time in which a supernode has more nodes away than spares
  std::vector<std::int64_t> failures;  // of each hazard
  std::vector<std::int64_t> interruptions;  // of them, those that stopped the run
  std::vector<double> lost;                 // s of the run that these took: redo, detection, restart
};

// Notified of what happens to a run; times in seconds.
struct CourseWatch {
  std::function<void(std::string_view doing, double from, double to)> did;
  // A part of a supernode failed, and was repaired; `stops`: it stopped the run.
  std::function<void(std::size_t hazard, int supernode, bool stops, double from, double to)> failed;
};

// Failures are Poisson and strike at any time, also while the run is down; one that strikes a spare node
// takes it away and stops nothing. A node under repair does not fail. `go_on` is asked now and then. `watch`:
// null: nobody does.
ReliabilityRun run_reliability(const ReliabilityCase& of, std::uint64_t seed,
                               const std::function<bool()>& go_on = {}, const CourseWatch* watch = nullptr);

// Failures a second that stop a run on all nodes but the spares.
double interruptions_per_second(const ReliabilityCase& of);
// Young 1974: sqrt(2 M d), seconds of work between checkpoints that stop the run for `write` seconds each.
double young_interval(double mtbf, double write);
// With checkpoints that are written beside work: what that takes from a run does not depend on the interval,
// so Young's holds for what stops it; but one is written before the next begins.
double best_interval(double mtbf, double write, double beside);
// Daly 2006: useful share of a run with failures in work, checkpoints and restarts alike, `restart` seconds
// each, nodes at hand: interval / (M exp(R/M) (exp((interval + write)/M) - 1)). A checkpoint that counts
// `beside` seconds after it has stopped the run is there in time with exp(-beside/M).
double daly_goodput(double mtbf, double interval, double write, double restart, double beside = 0);

}  // namespace cm384::cluster
