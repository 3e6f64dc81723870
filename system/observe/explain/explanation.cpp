#include "system/observe/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/error.h"
#include "system/observe/explain/machine_path.h"

namespace cm384::observe {
namespace {

constexpr double kLeastShare = 0.005;  // of the path: what has less is not printed
// Of a gain: where more than this was waited for what the graph leaves out, the gain may be larger.
constexpr double kLeastKnown = 0.2;
// Of the span. A change that takes no time off, of a picosecond, moves the end: packets come in another
// order, take other ports, are sprayed another way. More where they queue for trunks.
constexpr double kOtherChoices = 0.03, kOtherChoicesSprayed = 0.06;
constexpr double kSprayed = 0.1;         // of the path: then they do
constexpr std::size_t kMostPrinted = 2;  // parameters of a resource

// Whether units may wait for it without the graph knowing.
bool queues(Resource resource) {
  switch (resource) {
    case Resource::host:
    case Resource::launch:
    case Resource::scalar:
    case Resource::fetch:
    case Resource::barrier:
    case Resource::core_flag:
      return false;
    default:
      return true;
  }
}

double error_of(const Explanation& why) {
  const auto trunk = std::ranges::find(why.path, Resource::trunk, &Explanation::Share::resource);
  const bool sprayed = trunk != why.path.end() && trunk->share > kSprayed;
  return (sprayed ? kOtherChoicesSprayed : kOtherChoices) * why.span_us;
}

// "vector_core.*.head" also means "vector_core.add.head".
bool means(std::string_view pattern, std::string_view key) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == key;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return key.size() > before.size() + after.size() && key.starts_with(before) && key.ends_with(after);
}

// A value as text, "3732ps" or "28GB/s", times a factor; to whole picoseconds, and to a whole number where
// `whole`.
std::string scaled(std::string_view value, double factor, bool whole) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(value.data() + value.size() - end));
  number *= factor;
  if (unit == "ps" || whole) number = std::round(number);
  return fmt::format("{:.10g}{}", number, unit);
}

// The assignment that scales a parameter; of a count, to the nearest.
std::string scaling(const hw::Machine& machine, const std::string& key, const std::string& value,
                    double factor) {
  const std::string other = fmt::format("{}={}", key, scaled(value, factor, false));
  const bool from_whole = value.find_first_not_of("0123456789") == std::string::npos;
  if (!from_whole || other.find('.', key.size()) == std::string::npos) return other;
  try {
    hw::Machine changed = machine;
    hw::override_parameter(changed, other);
    return other;
  } catch (const InputError&) {
    return fmt::format("{}={}", key, scaled(value, factor, true));
  }
}

}  // namespace

std::vector<std::string> twice_as_fast(const hw::Machine& machine, Resource resource) {
  const ResourceText& text = text_of(resource);
  std::vector<std::string> changes;
  const auto scale = [&](const std::vector<std::string_view>& patterns, double factor) {
    for (const auto& parameter : machine.provenance) {
      const std::string& key = parameter.first;
      if (std::ranges::none_of(patterns, [&](std::string_view p) { return means(p, key); })) continue;
      const std::string value = hw::value_of(machine, key);
      const std::string assignment = scaling(machine, key, value, factor);
      if (assignment != fmt::format("{}={}", key, value)) changes.push_back(assignment);
    }
  };
  scale(text.faster, 2);
  if (changes.empty() && !text.faster.empty()) return {};
  scale(text.slower, 0.5);
  try {
    hw::Machine changed = machine;
    for (const std::string& assignment : changes) hw::override_parameter(changed, assignment);
    hw::check_machine(changed);
  } catch (const InputError&) {
    return {};
  }
  return changes;
}

Explanation Explanation::of(const MachinePath& path, const hw::Machine& machine) {
  Explanation made;
  const Path& end = path.end();
  const double span = end.at - path.begun();
  made.span_us = span / 1e6;
  for (std::size_t k = 0; k < kParts; ++k) {
    const double spent = static_cast<double>(end.spent[k]);
    if (spent > 0) {
      const auto part = static_cast<Part>(k);
      made.path.push_back({name_of(part), spent / 1e6, spent / span, resource_of(part)});
    }
  }
  std::ranges::stable_sort(made.path, std::greater(), &Share::us);
  for (const Busy& busy : path.busiest())
    made.busiest.push_back({text_of(busy.resource).name, busy.share * span / 1e6, busy.share, busy.resource});
  made.error_us = error_of(made);
  const double left_out = end.gain[0];
  made.followed_us = (span - left_out) / 1e6;
  // Where cells run out, how soon they come back decides by which port a request leaves.
  const double of_buffers = (end.gain[static_cast<std::size_t>(Resource::buffers)] - left_out) / 1e6;
  const bool cells_run_out = of_buffers >= made.error_us;
  for (std::size_t k = 1; k < kResources; ++k) {
    const auto resource = static_cast<Resource>(k);
    const double gain = end.gain[k] - left_out;
    Gain one;
    one.resource = resource;
    one.us = gain / 1e6;
    one.share = gain / span;
    if (one.us < made.error_us) {
      one.at_most_us = std::max(0.0, one.us) + made.error_us;
    } else {
      one.at_least = (queues(resource) && left_out > kLeastKnown * gain) ||
                     (resource == Resource::wire && cells_run_out);
    }
    one.changes = twice_as_fast(machine, resource);
    made.gains.push_back(std::move(one));
  }
  std::ranges::stable_sort(made.gains, std::greater(), &Gain::us);
  return made;
}

// All links at once, where those of one tier alone give as much.
bool Explanation::of_one_tier(const Gain& gain) const {
  constexpr double kAsMuch = 0.9;
  return gain.resource == Resource::link && std::ranges::any_of(gains, [&](const Gain& other) {
           return (other.resource == Resource::trunk || other.resource == Resource::die_link) &&
                  other.us >= kAsMuch * gain.us;
         });
}

std::vector<std::size_t> Explanation::to_check() const {
  constexpr std::size_t kMostGains = 4, kMostOfPath = 3;
  std::vector<std::size_t> chosen;
  const auto choose = [&](std::size_t number) {
    if (std::ranges::find(chosen, number) == chosen.end()) chosen.push_back(number);
  };
  for (std::size_t k = 0; k < gains.size() && chosen.size() < kMostGains; ++k) {
    if (!gains[k].changes.empty() && gains[k].share >= kLeastShare && !of_one_tier(gains[k])) choose(k);
  }
  const auto of = [&](Resource resource) {
    return static_cast<std::size_t>(std::ranges::find(gains, resource, &Gain::resource) - gains.begin());
  };
  std::size_t of_path = 0;
  for (const Share& part : path) {
    const std::size_t k = of(part.resource);
    if (k == gains.size() || gains[k].changes.empty()) continue;
    choose(k);
    if (++of_path == kMostOfPath) break;
  }
  for (const Share& busy : busiest) {
    const std::size_t k = of(busy.resource);
    if (k == gains.size() || gains[k].changes.empty() || gains[k].share >= kLeastShare) continue;
    choose(k);
    break;
  }
  return chosen;
}

std::string Explanation::text() const {
  std::string out = fmt::format("critical path, {:.1f} us:", span_us);
  for (const Share& part : path) {
    if (part.share >= kLeastShare) out += fmt::format(" {} {:.0f} %,", part.name, part.share * 100);
  }
  out.back() = '\n';
  const bool copies = std::ranges::any_of(
      path, [](const Share& part) { return part.name == name_of(Part::sdma) && part.share >= kLeastShare; });
  if (copies) out += "SDMA: a copy is not followed into its engine, links and memories\n";
  if (!busiest.empty()) out += "busiest:";
  for (std::size_t k = 0; k < std::min<std::size_t>(5, busiest.size()); ++k)
    out += fmt::format(" {} {:.0f} %,", busiest[k].name, busiest[k].share * 100);
  out.back() = '\n';
  out += fmt::format("twice as fast, or as large, to within {:.1f} us:", error_us);
  const std::size_t before = out.size();
  for (const Gain& gain : gains) {
    if ((gain.share < kLeastShare || of_one_tier(gain)) && !gain.checked) continue;
    const bool told = gain.at_most_us == 0;
    const double us = told ? gain.us : gain.at_most_us;
    out += fmt::format("\n  {:<30} {} {:>6.1f} us less, {:.1f} %", text_of(gain.resource).name,
                       !told           ? "at most "
                       : gain.at_least ? "at least"
                                       : "        ",
                       us, us / span_us * 100);
    if (gain.checked)
      out +=
          fmt::format("; measured {:.1f} us, {:.1f} %", gain.measured_us, gain.measured_us / span_us * 100);
    if (!gain.changes.empty() && gain.changes.size() <= kMostPrinted)
      out += fmt::format("  ({})", fmt::join(gain.changes, ", "));
  }
  if (out.size() == before) out += " nothing that is followed gives any";
  return out + "\n";
}

Json Explanation::to_json() const {
  const auto shares = [](const std::vector<Share>& list) {
    Json made = Json::array();
    for (const Share& s : list) made.push_back({{"name", s.name}, {"us", s.us}, {"share", s.share}});
    return made;
  };
  Json json{{"span_us", span_us},
            {"followed_us", followed_us},
            {"error_us", error_us},
            {"path", shares(path)},
            {"busiest", shares(busiest)}};
  json["gains"] = Json::array();
  for (const Gain& gain : gains) {
    Json one{{"name", text_of(gain.resource).name},
             {"predicted_us", gain.us},
             {"at_least", gain.at_least},
             {"share", gain.share},
             {"changes", gain.changes}};
    if (gain.at_most_us > 0) one["at_most_us"] = gain.at_most_us;
    if (gain.checked) one["measured_us"] = gain.measured_us;
    json["gains"].push_back(std::move(one));
  }
  return json;
}

Json Explanation::of_row() const {
  const auto shares = [](const std::vector<Share>& list) {
    Json made = Json::array();
    for (const Share& s : list) made.push_back({{"resource", s.name}, {"share", s.share}});
    return made;
  };
  Json json{{"critical_path", shares(path)}, {"busy", shares(busiest)}, {"what_if", Json::array()}};
  for (const Gain& gain : gains)
    json["what_if"].push_back({{"resource", text_of(gain.resource).name},
                               {"factor", 2},
                               {"predicted_us", span_us - gain.us},
                               {"at_least", gain.at_least}});
  return json;
}

}  // namespace cm384::observe
