#include "traces/traffic.h"

#include <fmt/format.h>

#include <array>

#include "base/text/error.h"
#include "base/text/number.h"
#include "traces/host_words.h"
#include "traces/traffic_csv.h"
#include "traces/traffic_file.h"

namespace cm384::traces {
namespace {

constexpr std::array<std::string_view, kTrafficKinds> kTrafficNames{
    "transfer", "fill", "compute", "barrier", "launch", "end", "idle", "stream", "kernel", "given", "call"};
constexpr std::array<std::string_view, 4> kOperations{"read", "write", "add-s32", "add-f32"};
constexpr std::array<std::string_view, 3> kDependencyNames{"completion", "arrival", "issue"};
constexpr std::uint64_t kMostTransferBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kBurstBytes = 512u << 10;  // the largest local buffer of a core: L1
constexpr std::int64_t kLatest = std::int64_t{1} << 60;

std::string transfer_fault(const TrafficRecord& r) {
  if (r.by_rdma && (r.by_ub || r.target.cpu))
    return "via: the RDMA plane reaches dies only; allowed to a CPU socket: ub";
  if (r.source.cpu) return "source: a CPU socket issues nothing; allowed: a die";
  if (r.core < TrafficRecord::kAnyCore || r.core >= TrafficRecord::kMostCores)
    return fmt::format("core: {}; allowed: 0 to {}, or none", r.core, TrafficRecord::kMostCores - 1);
  const bool sdma = r.engine == TrafficRecord::Engine::sdma;
  if (sdma && (r.core != 0 || r.kind != TrafficRecord::Kind::transfer || r.bursts != 1))
    return "core: an SDMA copy has none, and one burst; allowed: 0";
  if (r.engine == TrafficRecord::Engine::fix && (r.core < 0 || r.operation == sim::Operation::read))
    return "core: a fixpipe only writes, from a core of its own";
  const std::uint64_t most = sdma || r.core == TrafficRecord::kAnyCore ? kMostTransferBytes : kBurstBytes;
  if (r.bytes == 0 || r.bytes > most) return fmt::format("bytes: {}; allowed: 1 to {}", r.bytes, most);
  if (r.bursts == 0 || r.bursts > 65535) return fmt::format("bursts: {}; allowed: 1 to 65535", r.bursts);
  if (r.kind == TrafficRecord::Kind::fill &&
      (r.core < 0 || r.target != r.source || r.bytes > 512 || r.bursts != 1))
    return "kind: a fill without a core, to other memory or of more than 512 B; allowed: a cache line of a "
           "core";
  if (r.core == TrafficRecord::kAnyCore && r.bursts != 1)
    return "bursts: more than one without a core; allowed: 1";
  if (r.offset >= TrafficRecord::kMostOffset)
    return fmt::format("offset: {}; allowed: below {}", r.offset, TrafficRecord::kMostOffset);
  if (r.stride < -static_cast<std::int64_t>(TrafficRecord::kMostOffset) ||
      r.stride > static_cast<std::int64_t>(TrafficRecord::kMostOffset))
    return fmt::format("stride: {}; allowed: up to {} either way", r.stride, TrafficRecord::kMostOffset);
  return {};
}

}  // namespace

std::string fault_of(const TrafficRecord& r, std::uint64_t number) {
  if (r.start.ps < 0 || r.start.ps > kLatest)
    return fmt::format("start: {} ps; allowed: 0 to {} ps", r.start.ps, kLatest);
  if (r.end < r.start || r.end.ps > kLatest)
    return fmt::format("end: {} ps; allowed: from the start, {} ps, to {} ps", r.end.ps, r.start.ps, kLatest);
  if (r.source.number >= kMostUnits || r.target.number >= kMostUnits)
    return fmt::format("{}: {}; allowed: numbers below {}",
                       r.source.number >= kMostUnits ? "source" : "target",
                       text_of(r.source.number >= kMostUnits ? r.source : r.target), kMostUnits);
  if (r.moves()) {
    if (std::string fault = transfer_fault(r); !fault.empty()) return fault;
  }
  if (std::string fault = words_fault(r); !fault.empty()) return fault;
  for (const TrafficDependency& d : r.dependencies) {
    if (d.on >= number)
      return fmt::format("dependencies: record {} waits for {}; allowed: earlier ones", number, d.on);
    if (number - d.on > kReach)
      return fmt::format("dependencies: reaches back {} records; allowed: {}", number - d.on, kReach);
    if (d.delay.ps > kLatest || d.delay.ps < -kLatest)
      return fmt::format("dependencies: delay of {} ps; allowed: up to {} ps either way", d.delay.ps,
                         kLatest);
  }
  return {};
}

bool Selection::select(TrafficRecord& record, bool keep) {
  if (kept_.size() <= number_ % kReach) kept_.resize(number_ % kReach + 1);
  keep = keep && record.kind < TrafficRecord::Kind::idle;
  record.words.clear();
  if (keep) {
    std::erase_if(record.dependencies, [this](TrafficDependency& d) {
      const std::uint64_t kept = kept_[d.on % kReach];
      d.on = kept - 1;
      return kept == 0;
    });
  }
  kept_[number_++ % kReach] = keep ? ++next_ : 0;
  return keep;
}

std::string_view name_of(TrafficRecord::Kind kind) {
  return kTrafficNames.at(static_cast<std::size_t>(kind));
}
std::string_view name_of(sim::Operation operation) {
  return kOperations.at(static_cast<std::size_t>(sim::kind_of(operation)));
}
std::string_view name_of(TrafficDependency::Kind kind) {
  return kDependencyNames.at(static_cast<std::size_t>(kind));
}

std::string text_of(Unit unit) {
  return fmt::format("{}{}", unit.cpu ? "cpu" : "die", unit.number);
}

bool parse_unit(std::string_view text, Unit& unit) {
  if (!text.starts_with("die") && !text.starts_with("cpu")) return false;
  unit.cpu = text.starts_with("cpu");
  text.remove_prefix(3);
  const auto number = hw::number_of<decltype(unit.number)>(text);
  unit.number = number.value_or(unit.number);
  return number.has_value();
}

std::unique_ptr<TrafficSink> create_traffic(const std::string& path, const TrafficHeader& header) {
  if (path.ends_with(".csv")) return std::make_unique<TrafficCsvWriter>(path, header);
  return std::make_unique<TrafficFileWriter>(path, header);
}

}  // namespace cm384::traces
