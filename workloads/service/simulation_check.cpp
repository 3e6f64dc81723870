#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/text/error.h"
#include "workloads/service/prefill_times.h"
#include "workloads/service/simulation.h"

namespace cm384::service {
namespace {

std::string name_of(bool prefill, int instance) {
  return fmt::format("{} instance {}", prefill ? "prefill" : "decode", instance);
}

// Instances that a switch makes are not known by number here: only those of the deployment can be named.
void check_instance(const Deployment& deployment, const char* option, bool prefill, int instance) {
  const int most = prefill ? deployment.prefill.instances : deployment.decode.instances;
  if (instance >= most)
    throw InputError(fmt::format("{}: {}: the deployment has {}", option, name_of(prefill, instance), most));
}

// What is to go wrong with an instance that has left its pool by then would not be noticed.
void check_not_left(const Faults& faults, const char* option, bool prefill, int instance, Time at) {
  for (const RoleSwitch& change : faults.switches) {
    if (change.prefill == prefill && change.first <= instance && instance <= change.last && change.at <= at)
      throw InputError(fmt::format("{}: {}: --switch takes it out of its pool before", option,
                                   name_of(prefill, instance)));
  }
}

void check_dies(const Deployment& deployment, const Faults& faults) {
  std::map<std::pair<bool, int>, int> lost;
  std::set<std::tuple<bool, int, int>> named;
  for (const DieFault& fault : faults.dies) {
    check_instance(deployment, "--fault", fault.prefill, fault.instance);
    check_not_left(faults, "--fault", fault.prefill, fault.instance, fault.at);
    const int dies = fault.prefill ? deployment.prefill_dies() : deployment.decode_dies();
    const std::string name = name_of(fault.prefill, fault.instance);
    if (fault.die >= dies)
      throw InputError(fmt::format("--fault: die {} of {}: it has {}", fault.die, name, dies));
    if (!named.emplace(fault.prefill, fault.instance, fault.die).second)
      throw InputError(fmt::format("--fault: die {} of {} is lost twice", fault.die, name));
    int& count = lost[{fault.prefill, fault.instance}];
    count += fault.recovery == Recovery::role_switch ? 2 : 1;
    if (count >= dies) throw InputError(fmt::format("--fault: {}: all its {} dies are lost", name, dies));
  }
}

void check_switches(const Deployment& deployment, const Faults& faults) {
  if (!faults.switches.empty() && deployment.scale.acts())
    throw InputError(
        "--switch: with instances that the load starts, ends or moves (scale.most, scale.decode_most, "
        "scale.move), which may be others by then; allowed: one of the two");
  const int ratio = deployment.decode.npus / deployment.prefill.npus;
  std::set<std::pair<bool, int>> named;
  for (const RoleSwitch& change : faults.switches) {
    check_instance(deployment, "--switch", change.prefill, change.last);
    if (ratio * deployment.prefill.npus != deployment.decode.npus)
      throw InputError(fmt::format("--switch: an instance of decode has {} NPUs, which is no multiple of {}",
                                   deployment.decode.npus, deployment.prefill.npus));
    const int count = change.last - change.first + 1;
    if (count != (change.prefill ? ratio : 1))
      throw InputError(fmt::format(
          "--switch: {} {} instance(s); allowed: {}, which have the NPUs of an instance of decode", count,
          change.prefill ? "prefill" : "decode", change.prefill ? ratio : 1));
    for (int k = change.first; k <= change.last; ++k)
      if (!named.emplace(change.prefill, k).second)
        throw InputError(fmt::format("--switch: {} changes its pool twice", name_of(change.prefill, k)));
  }
  for (const bool prefill : {true, false}) {
    const auto gone = std::ranges::count(named, prefill, &std::pair<bool, int>::first);
    if (gone > 0 && gone >= (prefill ? deployment.prefill.instances : deployment.decode.instances))
      throw InputError(fmt::format("--switch: leaves no instance in {}", prefill ? "prefill" : "decode"));
  }
}

// Each plane is down once at a time.
void check_planes(const Faults& faults) {
  for (std::size_t k = 0; k < faults.planes.size(); ++k) {
    for (std::size_t other = 0; other < k; ++other) {
      const PlaneFault &one = faults.planes[k], &two = faults.planes[other];
      const auto end = [](const PlaneFault& f) {
        return f.duration == Time{} ? Time::never() : f.at + f.duration;
      };
      if (one.plane == two.plane && one.at < end(two) && two.at < end(one))
        throw InputError(fmt::format("--fault: plane {} is lost while it is already lost", one.plane));
    }
  }
}

// A prompt for which the library has no time even where all is cached that can be: what requests before it
// have brought. Of a follower nobody knows when it comes, so that with followers everything can be.
void check_prompts(const RequestTrace& trace, const Deployment& deployment, const Library& library) {
  const PrefillTimes times(deployment, library);
  if (!times.measured()) return;
  std::unordered_set<std::uint64_t> known;
  if (std::ranges::any_of(trace.requests, [](const Request& r) { return r.follows >= 0; }))
    known.insert(trace.keys.begin(), trace.keys.end());
  for (std::size_t k = 0; k < trace.requests.size(); ++k) {
    const Request& r = trace.requests[k];
    std::int64_t cached = 0;
    if (deployment.cache.on) {
      const auto keys = trace.blocks_of(r);
      const auto unknown =
          std::ranges::find_if(keys, [&](std::uint64_t key) { return !known.contains(key); });
      cached = std::min<std::int64_t>((unknown - keys.begin()) * trace.block_tokens, r.prompt - 1);
      known.insert(unknown, keys.end());
    }
    // Its last chunk has the most before it. One that is preempted last of all has its answer there too.
    std::int64_t tokens = r.prompt;
    if (deployment.decode.reserve == "growing") tokens += std::max(0, r.output - 1);
    std::int64_t fresh = tokens - cached;
    if (deployment.prefill.chunk > 0) fresh = 1;
    PrefillWork work;
    work.add(static_cast<double>(fresh), static_cast<double>(tokens - fresh));
    if (times.of(work).evidence == Evidence::extrapolated)
      throw InputError(fmt::format(
          "request {}: a prompt of {} tokens, of which at most {} can be cached, is outside of "
          "what the library has "
          "measured; allowed: requests within it{}, or --allow-extrapolation",
          k, r.prompt, cached, deployment.prefill.chunk > 0 ? "" : ", chunks (--deploy prefill.chunk=8192)"));
  }
}

}  // namespace

void check_service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                   const ServiceOptions& options) {
  const DecodeSpec& decode = deployment.decode;
  const double block = decode.reserve == "growing" ? decode.block : 1;
  for (std::size_t k = 0; k < trace.requests.size(); ++k) {
    const Request& r = trace.requests[k];
    const double tokens = static_cast<double>(r.prompt) + r.output;
    const double bytes = std::ceil(tokens / block) * block * static_cast<double>(decode.token.count);
    if (bytes > static_cast<double>(deployment.decode.kv_room.count))
      throw InputError(fmt::format(
          "request {}: {} + {} tokens are {:.1f} MB of context; a die has room for {:.1f} MB "
          "(decode.kv_room)",
          k, r.prompt, r.output, bytes * 1e-6, static_cast<double>(deployment.decode.kv_room.count) * 1e-6));
  }
  if (!options.allow_extrapolation) check_prompts(trace, deployment, library);
  const Faults& faults = options.faults;
  if (deployment.mixed() && (!faults.outages.empty() || !faults.dies.empty() || !faults.switches.empty()))
    throw InputError(
        "--outage, --fault die=, --switch: not with prefill.pool = decode; allowed: --fault plane=");
  for (const Outage& outage : faults.outages) {
    check_instance(deployment, "--outage", outage.prefill, outage.instance);
    check_not_left(faults, "--outage", outage.prefill, outage.instance, outage.at);
  }
  check_dies(deployment, faults);
  check_planes(faults);
  check_switches(deployment, faults);
}

}  // namespace cm384::service
