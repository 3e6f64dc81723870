#include "workloads/service/study/serve_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"

namespace cm384::studies {
namespace {

using service::DieFault;
using service::Outage;
using service::PlaneFault;
using service::Recovery;
using service::RoleSwitch;

constexpr int kMostNumber = 1'000'000;

// Any of these throws InputError, whose text the caller replaces by what is allowed.
bool is_prefill(std::string_view pool) {
  if (pool != "prefill" && pool != "decode") throw InputError("");
  return pool == "prefill";
}
int number_of(std::string_view text) {
  const std::int64_t number = hw::parse_integer(text);
  if (number < 0 || number > kMostNumber) throw InputError("");
  return static_cast<int>(number);
}
Time time_of(std::string_view text) {
  const Time time = hw::parse_time(text);
  if (time < Time{}) throw InputError("");
  return time;
}

template <class Read>
auto read(const char* option, const std::string& text, const char* allowed, Read&& read_it) {
  try {
    return read_it();
  } catch (const InputError&) {
    throw InputError(fmt::format("run serve: --{} {}: allowed: {}", option, text, allowed));
  }
}

// "prefill:2:60s:30s".
Outage outage_of(const std::string& text) {
  return read("outage", text, "POOL:INSTANCE:AT:DURATION such as prefill:2:60s:30s", [&] {
    const auto parts = split_fields(text, ':');
    if (parts.size() != 4) throw InputError("");
    return Outage{is_prefill(parts[0]), number_of(parts[1]), time_of(parts[2]), time_of(parts[3])};
  });
}

// "decode:1:prefill@600s", "prefill:0-9:decode@600s".
RoleSwitch switch_of(const std::string& text) {
  return read("switch", text, "decode:INSTANCE:prefill@TIME or prefill:FIRST-LAST:decode@TIME", [&] {
    const auto halves = split_fields(text, '@');
    if (halves.size() != 2) throw InputError("");
    const auto parts = split_fields(halves[0], ':');
    if (parts.size() != 3 || is_prefill(parts[0]) == is_prefill(parts[2])) throw InputError("");
    const auto range = split_fields(parts[1], '-');
    if (range.size() > 2) throw InputError("");
    const RoleSwitch change{is_prefill(parts[0]), number_of(range.front()), number_of(range.back()),
                            time_of(halves[1])};
    if (change.last < change.first) throw InputError("");
    return change;
  });
}

Recovery recovery_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Recovery>, 3> kNames{
      {{"degrade", Recovery::degrade}, {"switch", Recovery::role_switch}, {"restart", Recovery::restart}}};
  const auto found = std::ranges::find(kNames, text, &std::pair<std::string_view, Recovery>::first);
  if (found == kNames.end()) throw InputError("");
  return found->second;
}

// "die=decode:0:17,at=600s,recovery=switch", "plane=3,at=600s,for=60s".
void add_fault(const std::string& text, int planes, service::Faults& faults) {
  read("fault", text,
       "die=POOL:INSTANCE:DIE,at=TIME[,recovery=degrade|switch|restart] or plane=P,at=TIME[,for=TIME]", [&] {
         std::optional<DieFault> die;
         std::optional<PlaneFault> plane;
         std::optional<Recovery> recovery;
         std::optional<Time> at, span;
         for (const std::string_view part : split_fields(text)) {
           const std::size_t equals = std::min(part.find('='), part.size() - 1);
           const std::string_view key = part.substr(0, equals), value = part.substr(equals + 1);
           const auto once = [](auto& field, auto made) {
             if (field) throw InputError("");
             field = made;
           };
           if (key == "die") {
             const auto parts = split_fields(value, ':');
             if (parts.size() != 3) throw InputError("");
             once(die, DieFault{is_prefill(parts[0]), number_of(parts[1]), number_of(parts[2]), {}, {}});
           } else if (key == "plane") {
             once(plane, PlaneFault{number_of(value), {}, {}});
           } else if (key == "at") {
             once(at, time_of(value));
           } else if (key == "for") {
             once(span, time_of(value));
           } else if (key == "recovery") {
             once(recovery, recovery_of(value));
           } else {
             throw InputError("");
           }
         }
         if (!at || die.has_value() == plane.has_value() || (die && span) || (plane && recovery) ||
             span == Time{})
           throw InputError("");
         if (die) {
           die->at = *at;
           die->recovery = recovery.value_or(Recovery::degrade);
           faults.dies.push_back(*die);
         } else {
           plane->at = *at;
           plane->duration = span.value_or(Time{});
           faults.planes.push_back(*plane);
         }
         return 0;
       });
  if (!faults.planes.empty() && faults.planes.back().plane >= planes)
    throw InputError(fmt::format("run serve: --fault {}: the machine has {} sub-planes", text, planes));
}

}  // namespace

service::Faults serve_faults(const ServeOptions& options, int planes) {
  service::Faults faults;
  for (const std::string& text : options.outage) faults.outages.push_back(outage_of(text));
  for (const std::string& text : options.fault) add_fault(text, planes, faults);
  for (const std::string& text : options.role_switch) faults.switches.push_back(switch_of(text));
  return faults;
}

}  // namespace cm384::studies
