#include "system/observe/machine_profile.h"

#include <algorithm>
#include <charconv>

#include "system/observe/kernel_name.h"

namespace cm384::observe {
namespace {

// As many as a picture tells apart: with each, every counter of every part is read.
constexpr std::size_t kMostSamples = 512;

// Four digits of a share are plenty, and keep the file small.
double rounded(double share) {
  return static_cast<double>(static_cast<std::int64_t>(share * 1e4 + 0.5)) / 1e4;
}

// The number at the end of each part of a name: "plane2.l1chip3.to_die5.busy_ps" gives 2, 3, 5.
std::vector<int> numbers_of(std::string_view name) {
  std::vector<int> numbers;
  while (!name.empty()) {
    const std::size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    const std::size_t digits = part.find_last_not_of("0123456789") + 1;
    int number = 0;
    if (digits < part.size()) {
      std::from_chars(part.data() + digits, part.data() + part.size(), number);
      numbers.push_back(number);
    }
    name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  }
  return numbers;
}

// A direction of the fabric's links: which number of a counter's name is its plane, column and L2 chip.
struct LinkKind {
  std::string_view pattern, from, to;
  std::size_t plane, column;
  int l2;  // -1: there is none
  enum { die, socket, node, chip } column_is;
};
constexpr LinkKind kLinkKinds[] = {
    {"die*.ub.port*.busy_ps", "die", "L1 chip", 1, 0, -1, LinkKind::die},
    {"plane*.l1chip*.to_l2chip*.busy_ps", "L1 chip of node", "L2 chip", 0, 1, 2, LinkKind::node},
    {"plane*.l2chip*.to_l1chip*.busy_ps", "L2 chip", "L1 chip of node", 0, 2, 1, LinkKind::node},
    {"plane*.l1chip*.to_die*.busy_ps", "L1 chip", "die", 0, 2, -1, LinkKind::die},
    {"socket*.ub.port*.busy_ps", "socket", "L1 chip", 1, 0, -1, LinkKind::socket},
    {"plane*.l1chip*.to_socket*.busy_ps", "L1 chip", "socket", 0, 2, -1, LinkKind::socket},
    {"plane*.l2chip*.to_l3chip*.busy_ps", "L2 chip", "L3 chip", 0, 1, 2, LinkKind::chip},
    {"plane*.l3chip*.to_l2chip*.busy_ps", "L3 chip", "L2 chip", 0, 2, 1, LinkKind::chip},
    {"plane*.chip*.to_chip*.busy_ps", "chip", "chip", 0, 1, 2, LinkKind::chip},
    {"plane*.chip*.to_die*.busy_ps", "chip", "die", 0, 2, -1, LinkKind::die},
    {"plane*.chip*.to_socket*.busy_ps", "chip", "socket", 0, 2, -1, LinkKind::socket},
};

const LinkKind* link_kind(std::string_view pattern) {
  const auto* kind = std::ranges::find(kLinkKinds, pattern, &LinkKind::pattern);
  return kind == std::end(kLinkKinds) ? nullptr : kind;
}

// Time a unit of a busy counter stands for; 0: it counts no time in which a part is busy.
double ps_a_unit(const sim::Statistic& s, const hw::Machine& machine) {
  if (s.name.ends_with(".busy_ps")) return 1;
  if (!s.name.ends_with(".busy_cycles")) return 0;
  const Frequency clock =
      s.name.find(".hbm.") != std::string::npos ? machine.memory.hbm.clock : machine.die.clock;
  return 1e12 / static_cast<double>(clock.hertz);
}

// MTE instructions, see MteEngine.
bool booked_at_end(std::string_view pattern) {
  return pattern.find(".mte") != std::string_view::npos;
}

}  // namespace

MachineProfile::MachineProfile(supernode::Supernode& machine, std::string what, std::vector<int> dies,
                               const std::vector<int>& sockets)
    : machine_(machine), what_(std::move(what)), dies_(std::move(dies)) {
  const hw::Topology& topology = machine.parameters().topology;
  nodes_.resize(static_cast<std::size_t>(topology.supernodes) * static_cast<std::size_t>(topology.nodes));
  for (const int die : dies_) nodes_[static_cast<std::size_t>(die / topology.dies_per_node)] = true;
  for (const int socket : sockets)
    nodes_[static_cast<std::size_t>(socket / topology.sockets_per_node)] = true;
  machine.visit_statistics([&](const sim::Statistics& part) { add_counters(part, sockets); });
  machine.probes().launch_ended.attach(this, [](void* self, int die, const npu::LaunchRecord& record) {
    static_cast<MachineProfile*>(self)->launch_ended(die, record);
  });
}

void MachineProfile::add_counters(const sim::Statistics& part, const std::vector<int>& sockets) {
  for (const sim::Statistic& s : part.list()) {
    const double unit = ps_a_unit(s, machine_.parameters());
    if (unit == 0) continue;
    const std::vector<int> numbers = numbers_of(s.name);
    Counter counter;
    counter.owner = static_cast<std::size_t>(numbers.front());
    if (const LinkKind* kind = link_kind(s.pattern)) {
      // Names of sub-planes' links are those of one supernode.
      if (machine_.parameters().topology.supernodes > 1) continue;
      counter.plane = numbers[kind->plane];
      counter.column = numbers[kind->column];
      counter.l2 = kind->l2 < 0 ? -1 : numbers[static_cast<std::size_t>(kind->l2)];
      counter.owner = static_cast<std::size_t>(counter.column);
      // Links of those that take no part say nothing.
      const bool there = kind->column_is == LinkKind::die ? std::ranges::count(dies_, counter.column) != 0
                         : kind->column_is == LinkKind::socket
                             ? std::ranges::count(sockets, counter.column) != 0
                             : kind->column_is == LinkKind::chip || static_cast<bool>(nodes_[counter.owner]);
      if (!there) continue;
    }
    counter.read = s.counter != nullptr ? [at = s.counter] { return *at; } : s.read;
    auto group = std::ranges::find(groups_, s.pattern, &Group::pattern);
    if (group == groups_.end())
      group = groups_.insert(groups_.end(), Group{s.pattern, unit, booked_at_end(s.pattern), {}, {}, {}});
    if (group->parts.size() <= counter.owner) group->parts.resize(counter.owner + 1);
    ++group->parts[counter.owner];
    group->counters.push_back(std::move(counter));
  }
}

void MachineProfile::sample(Time now) {
  if (++skipped_ < stride_) return;
  skipped_ = 0;
  const double elapsed = static_cast<double>((now - last_sample_).ps);
  last_sample_ = now;
  for (Group& group : groups_) sample(group, elapsed);
  if (!groups_.empty() && groups_.front().samples.size() == kMostSamples) coarsen();
}

// No part is busy for longer than the interval: what a counter has beyond it belongs to the intervals before,
// where an instruction is booked at its end, and to those after, where a transfer is booked when it is
// granted.
void MachineProfile::sample(Group& group, double elapsed) {
  group.samples.emplace_back(group.parts.size());
  const std::size_t last = group.samples.size() - 1;
  for (Counter& counter : group.counters) {
    const std::uint64_t value = counter.read();
    double busy = static_cast<double>(value - counter.before) * group.ps_a_unit + counter.ahead;
    counter.before = value;
    const auto put = [&](std::size_t at) {
      float& share = group.samples[at][counter.owner];
      const double room = group.parts[counter.owner] - static_cast<double>(share);
      const double part = std::min({busy, elapsed, room * elapsed});
      share += static_cast<float>(part / elapsed);
      busy -= part;
    };
    put(last);
    if (group.booked_at_end) {
      for (std::size_t at = last; busy > 0 && at > 0; --at) put(at - 1);
    } else {
      counter.ahead = busy;
    }
  }
}

// Two samples become one.
void MachineProfile::coarsen() {
  stride_ *= 2;
  for (Group& group : groups_) {
    for (std::size_t i = 0; i + 1 < group.samples.size(); i += 2) {
      std::vector<float> merged = group.samples[i];
      for (std::size_t owner = 0; owner < merged.size(); ++owner)
        merged[owner] = (merged[owner] + group.samples[i + 1][owner]) / 2;
      group.samples[i / 2] = std::move(merged);
    }
    group.samples.resize(group.samples.size() / 2);
  }
}

void MachineProfile::begin_counted(Time now) {
  counted_from_ = now;
  launches_.clear();
  kernels_.clear();
  for (Group& group : groups_) {
    for (Counter& counter : group.counters) counter.counted = counter.read();
  }
}

void MachineProfile::launch_ended(int die, const npu::LaunchRecord& record) {
  const auto rank = std::ranges::find(dies_, die) - dies_.begin();
  launches_.push_back({static_cast<int>(rank), kernel_of(record), record});
  counted_to_ = std::max(counted_to_, record.task_end);
}

void MachineProfile::name_phases(std::string_view kernel, std::span<const std::string_view> phases) {
  phases_.insert_or_assign(std::string(kernel), std::vector<std::string>(phases.begin(), phases.end()));
}

std::size_t MachineProfile::kernel_of(const npu::LaunchRecord& record) {
  Kernel kernel{kernel_name(record), {}};
  if (const auto stage = stages_.find(record.arguments); stage != stages_.end()) kernel.stage = stage->second;
  const auto known = std::ranges::find(kernels_, kernel);
  if (known != kernels_.end()) return static_cast<std::size_t>(known - kernels_.begin());
  kernels_.push_back(std::move(kernel));
  return kernels_.size() - 1;
}

Json MachineProfile::links_of(const Group& group, Time counted_to) const {
  const LinkKind& kind = *link_kind(group.pattern);
  const double elapsed = static_cast<double>((counted_to - counted_from_).ps);
  std::map<int, std::map<int, std::map<int, double>>> shares;  // plane, column, L2 chip
  for (const Counter& counter : group.counters) {
    const double busy = static_cast<double>(counter.read() - counter.counted) * group.ps_a_unit;
    shares[counter.plane][counter.column][counter.l2] = elapsed > 0 ? rounded(busy / elapsed) : 0;
  }
  Json columns = Json::array(), planes = Json::array();
  for (const auto& [column, chips] : shares.begin()->second) columns.push_back(column);
  for (const auto& [number, plane] : shares) {
    Json made = Json::array();
    for (const auto& [column, chips] : plane) {
      Json values = Json::array();
      for (const auto& [l2, share] : chips) values.push_back(share);
      made.push_back(std::move(values));
    }
    planes.push_back(std::move(made));
  }
  return {{"from", kind.from}, {"to", kind.to}, {"columns", columns}, {"planes", planes}};
}

Json MachineProfile::busy_of(const Group& group) {
  Json mean = Json::array(), highest = Json::array();
  for (const std::vector<float>& sample : group.samples) {
    double sum = 0, most = 0;
    for (std::size_t owner = 0; owner < sample.size(); ++owner) {
      if (group.parts[owner] == 0) continue;
      sum += static_cast<double>(sample[owner]);
      most = std::max(most, static_cast<double>(sample[owner]) / group.parts[owner]);
    }
    mean.push_back(rounded(sum / static_cast<double>(group.counters.size())));
    highest.push_back(rounded(most));
  }
  return {{"counter", group.pattern}, {"parts", group.counters.size()}, {"mean", mean}, {"highest", highest}};
}

Json MachineProfile::kernels() const {
  Json list = Json::array();
  for (const Kernel& kernel : kernels_) {
    const auto named = phases_.find(kernel.name);
    list.push_back({{"kernel", kernel.name},
                    {"stage", kernel.stage},
                    {"phases", named == phases_.end() ? Json::array() : Json(named->second)}});
  }
  return list;
}

Json MachineProfile::launches() const {
  Json list = Json::array();
  for (const auto& [rank, kernel, record] : launches_) {
    Json phases = Json::array();
    for (const Time total : record.phase_total)
      phases.push_back(record.blocks == 0 ? 0 : total.us() / static_cast<double>(record.blocks));
    while (!phases.empty() && phases.back() == 0) phases.erase(phases.size() - 1);
    list.push_back({{"rank", rank},
                    {"kernel", kernel},
                    {"start_us", record.task_start.us()},
                    {"task_us", (record.task_end - record.task_start).us()},
                    {"kernel_us", (record.last_retired - record.first_instruction).us()},
                    {"phases_us", phases}});
  }
  return list;
}

Json MachineProfile::to_json() const {
  // A replay has no launches: all of it counts.
  const Time counted_to = launches_.empty() ? machine_.earliest() : counted_to_;
  Json busy = Json::array(), links = Json::array();
  for (const Group& group : groups_) {
    busy.push_back(busy_of(group));
    if (link_kind(group.pattern) != nullptr) links.push_back(links_of(group, counted_to));
  }
  return {{"run", what_},
          {"interval_us", stride_},
          {"counted_from_us", counted_from_.us()},
          {"counted_to_us", counted_to.us()},
          {"dies", dies_},
          {"kernels", kernels()},
          {"launches", launches()},
          {"busy", busy},
          {"links", links}};
}

}  // namespace cm384::observe
