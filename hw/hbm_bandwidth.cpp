#include "hw/hbm_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text/error.h"
#include "base/text/parameter_list.h"
#include "base/text/quantity.h"

namespace cm384::hw {
namespace {

constexpr double kSame = 1e-6;  // relative: two bandwidths that differ by the rounding of a clock to 1 Hz
constexpr std::string_view kKnob = "hbm.bandwidth";
constexpr std::string_view kParts[] = {
    "hbm.stacks",  "hbm.pseudo_channels",  "hbm.burst", "hbm.clock", "hbm.t_ccd_s",
    "hbm.t_ccd_l", "hbm.train_bank_groups"};

bool nearly_equal(Bandwidth one, Bandwidth other) {
  const auto a = static_cast<double>(one.bytes_per_second), b = static_cast<double>(other.bytes_per_second);
  return std::abs(a - b) <= kSame * std::max(a, b);
}

std::int64_t bytes_of_bursts(const Hbm& hbm) {
  return std::int64_t{hbm.stacks} * hbm.pseudo_channels * hbm.burst.count;
}

// A span of so many cycles, rounded down: Clock::ticks() makes the same cycles of it again.
Time time_of_cycles(std::int64_t cycles, Frequency clock) {
  __extension__ using Wide = __int128;
  return {static_cast<std::int64_t>(static_cast<Wide>(cycles) * 1'000'000'000'000 / clock.hertz)};
}

// "hbm.t_ccd_s of 1.25ns (in cycles of hbm.clock, 1.6GHz: 2)"
std::string binding(const Hbm& hbm) {
  const std::int64_t cycles = burst_cycles(hbm), shortest = Clock(hbm.clock).ticks(hbm.t_ccd_s);
  if (cycles > std::max<std::int64_t>(shortest, 1))
    return fmt::format("hbm.t_ccd_l, {} over {} bank groups", format(hbm.t_ccd_l), hbm.train_bank_groups);
  return fmt::format("hbm.t_ccd_s of {} (in cycles of hbm.clock, {}: {})", format(hbm.t_ccd_s),
                     format(hbm.clock), cycles);
}

class Settling {
 public:
  Settling(Machine& machine, const Machine& before, const std::set<std::string, std::less<>>& given)
      : machine_(machine), hbm_(machine.memory.hbm), before_(before.memory.hbm), given_(given) {}

  void run() {
    const bool knob = given_.contains(kKnob);
    const bool parts =
        std::ranges::any_of(kParts, [&](std::string_view key) { return given_.contains(key); });
    if (!knob && !parts) return;
    const Bandwidth wanted = hbm_.bandwidth;
    const bool stands = before_.clock.hertz > 0;  // on values of a layer below
    if (stands && !knob && unchanged()) return;
    if (knob && stands) {
      set_stacks();
      set_bursts();
      widen();
    }
    // Incomplete, which is found later.
    if (hbm_.clock.hertz == 0 || hbm_.train_bank_groups == 0) return;
    const Bandwidth peak = hbm_peak(hbm_);
    if (!nearly_equal(peak, wanted)) {
      hbm_.bandwidth = peak;
      if (knob)
        note(fmt::format("{} = {}: {} gives {}", kKnob, format(wanted), binding(hbm_), format(peak)));
      else
        follows(kKnob, "what the parts of hbm give");
    } else if (!knob && stands && (own("hbm.clock") || own("hbm.t_ccd_s") || own("hbm.t_ccd_l"))) {
      note(fmt::format("hbm: {} as before, which {} binds; {} sets all of them", format(peak), binding(hbm_),
                       kKnob));
    }
    const Bandwidth read = hbm_reads_of_cores(machine_);
    if (stands && hbm_.bandwidth > before_.bandwidth && read.bytes_per_second > 0 && read < hbm_.bandwidth)
      note(
          fmt::format("hbm: {}, of which the cores read at most {} "
                      "(on_die_network.hbm_read_bytes_per_cycle); {} widens both",
                      format(hbm_.bandwidth), format(read), kKnob));
  }

 private:
  bool unchanged() const {
    return hbm_.stacks == before_.stacks && hbm_.pseudo_channels == before_.pseudo_channels &&
           hbm_.burst == before_.burst && hbm_.clock == before_.clock && hbm_.t_ccd_s == before_.t_ccd_s &&
           hbm_.t_ccd_l == before_.t_ccd_l && hbm_.train_bank_groups == before_.train_bank_groups;
  }
  bool own(std::string_view key) const { return given_.contains(key); }
  void note(std::string text) { machine_.notes.push_back(std::move(text)); }
  void follows(std::string_view key, std::string_view what) {
    machine_.provenance[std::string(key)] = {Origin::derived, std::string(what)};
  }
  void follows(std::string_view key) { follows(key, "follows hbm.bandwidth"); }

  // Whole doublings and halvings are of the stacks, as far as there can be so many; the rest is the clock's.
  void set_stacks() {
    if (own("hbm.stacks") || own("hbm.clock") || own("hbm.t_ccd_s") ||
        before_.bandwidth.bytes_per_second <= 0)
      return;
    constexpr int kMostStacks = 16;
    double times = static_cast<double>(hbm_.bandwidth.bytes_per_second) /
                   static_cast<double>(before_.bandwidth.bytes_per_second);
    int stacks = hbm_.stacks;
    for (; times >= 2 - kSame && stacks * 2 <= kMostStacks; times /= 2) stacks *= 2;
    for (; times <= 0.5 + kSame && stacks % 2 == 0; times *= 2) stacks /= 2;
    if (stacks == hbm_.stacks) return;
    hbm_.stacks = stacks;
    follows("hbm.stacks");
  }

  // A burst takes as many cycles as before, of a clock that gives the bandwidth; with a clock that was named,
  // as many as give no more than it.
  void set_bursts() {
    const std::int64_t bytes = bytes_of_bursts(hbm_), before = burst_cycles(before_);
    std::int64_t cycles = before;
    __extension__ using Wide = __int128;
    if (!own("hbm.clock")) {
      hbm_.clock.hertz = static_cast<std::int64_t>(
          (static_cast<Wide>(hbm_.bandwidth.bytes_per_second) * cycles + bytes / 2) / bytes);
      if (hbm_.clock < 100_MHz || hbm_.clock > 10_GHz)
        throw InputError(fmt::format(
            "{}: {} of {} pseudo-channels takes a command clock of {}; allowed: 100MHz to 10GHz, with "
            "hbm.stacks and hbm.pseudo_channels to suit",
            kKnob, format(hbm_.bandwidth), hbm_.stacks * hbm_.pseudo_channels, format(hbm_.clock)));
      follows("hbm.clock");
    } else {
      const Wide full = static_cast<Wide>(bytes) * hbm_.clock.hertz;
      const std::int64_t rate = hbm_.bandwidth.bytes_per_second;
      cycles = std::max<std::int64_t>(1, static_cast<std::int64_t>((full + rate - 1) / rate));
    }
    if (!own("hbm.t_ccd_s")) {
      hbm_.t_ccd_s = time_of_cycles(cycles, hbm_.clock);
      follows("hbm.t_ccd_s");
    }
    if (!own("hbm.t_ccd_l")) {
      const std::int64_t longer = std::max(before, Clock(before_.clock).ticks(before_.t_ccd_l));
      hbm_.t_ccd_l = time_of_cycles(cycles * longer / before, hbm_.clock);
      follows("hbm.t_ccd_l");
    }
  }

  // Reads that are on their way must cover the bandwidth times the latency: ports of cores, windows of their
  // engines and places for misses grow with it. A smaller bandwidth leaves them as they are.
  void widen() {
    const double factor = static_cast<double>(hbm_.bandwidth.bytes_per_second) /
                          static_cast<double>(before_.bandwidth.bytes_per_second);
    if (before_.bandwidth.bytes_per_second <= 0 || factor <= 1) return;
    constexpr std::string_view kWidened[] = {"on_die_network.hbm_read_bytes_per_cycle", "l2.misses",
                                             "mte.local_read_window", "cube_mte.local_read_window"};
    for (Parameter& parameter : list_parameters(machine_)) {
      if (std::ranges::find(kWidened, parameter.key) == std::end(kWidened) || own(parameter.key)) continue;
      const double wide = std::ceil(*number_of(parameter) * factor - 1e-9);
      const auto value = std::min(static_cast<std::int64_t>(wide), parameter.whole_high);
      if (Bytes* const* bytes = std::get_if<Bytes*>(&parameter.value))
        (*bytes)->count = value;
      else
        **std::get_if<int*>(&parameter.value) = static_cast<int>(value);
      follows(parameter.key);
    }
  }

  Machine& machine_;
  Hbm& hbm_;
  const Hbm& before_;
  const std::set<std::string, std::less<>>& given_;
};

}  // namespace

std::int64_t burst_cycles(const Hbm& hbm) {
  const Clock clock(hbm.clock);
  const std::int64_t near = std::max<std::int64_t>(clock.ticks(hbm.t_ccd_s), 1);
  const std::int64_t far = std::max(clock.ticks(hbm.t_ccd_l), near);
  return std::max(near, (far + hbm.train_bank_groups - 1) / hbm.train_bank_groups);
}

Bandwidth hbm_peak(const Hbm& hbm) {
  __extension__ using Wide = __int128;
  return {static_cast<std::int64_t>(static_cast<Wide>(bytes_of_bursts(hbm)) * hbm.clock.hertz /
                                    burst_cycles(hbm))};
}

Bandwidth hbm_reads_of_cores(const Machine& machine) {
  const OnDieNetwork& network = machine.memory.on_die_network;
  return {machine.die.aiv * std::int64_t{network.hbm_read_bytes_per_cycle} * network.clock.hertz};
}

void settle_hbm(Machine& machine, const Machine& before, const std::set<std::string, std::less<>>& given) {
  Settling(machine, before, given).run();
}

void settle_core_ports(Machine& machine, const std::set<std::string, std::less<>>& given) {
  const std::string key = "on_die_network.core_ports";
  int& ports = machine.memory.on_die_network.core_ports;
  const int cores = machine.die.aic + machine.die.aiv;
  if (cores <= ports || given.contains(key) || !(given.contains("die.aic") || given.contains("die.aiv")))
    return;
  ports = cores;
  machine.provenance[key] = {Origin::derived, "follows die.aic and die.aiv"};
}

}  // namespace cm384::hw
