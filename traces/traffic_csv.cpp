#include "traces/traffic_csv.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/text/error.h"
#include "base/text/number.h"
#include "traces/host_words.h"

namespace cm384::traces {
namespace {

const std::vector<std::string> kTrafficColumns{
    "id",    "kind",   "start_ps", "end_ps", "source", "core", "target",       "operation", "offset",
    "bytes", "bursts", "stride",   "lane",   "via",    "l2",   "dependencies", "words"};
enum TrafficColumn : std::size_t {
  kId,
  kKind,
  kStart,
  kEndColumn,
  kSource,
  kCore,
  kTarget,
  kOperation,
  kOffset,
  kBytes,
  kBursts,
  kStride,
  kLane,
  kVia,
  kL2,
  kDependenciesColumn,
  kWords
};
constexpr std::int64_t kMost = std::int64_t{1} << 62;
constexpr std::string_view kShaped = "# shaped: ";

// The value whose name the field holds, among the first `count` of an enumeration.
template <class Enum>
Enum named(const FieldReader& fields, std::size_t column, std::uint8_t count) {
  std::string allowed;
  for (std::uint8_t k = 0; k < count; ++k) {
    const auto value = static_cast<Enum>(k);
    if (fields.text(column) == name_of(value)) return value;
    allowed += fmt::format("{}{}", k == 0 ? "" : ", ", name_of(value));
  }
  fields.fail(column, allowed);
}

Unit unit_of(const FieldReader& fields, std::size_t column) {
  Unit unit;
  if (!parse_unit(fields.text(column), unit)) fields.fail(column, "dieN or cpuN");
  return unit;
}

bool yes_or_no(const FieldReader& fields, std::size_t column, std::string_view yes, std::string_view no) {
  if (fields.text(column) != yes && fields.text(column) != no)
    fields.fail(column, fmt::format("'{}' or '{}'", yes, no));
  return fields.text(column) == yes;
}

TrafficDependency dependency_of(const FieldReader& fields, std::string_view text) {
  constexpr std::string_view kAllowed =
      "ID:KIND:DELAY_PS, separated by blanks; KIND completion, arrival, issue";
  const auto parts = split_fields(text, ':');
  const auto number = [&](std::string_view part, auto& value) {
    const auto read = hw::number_of<std::remove_reference_t<decltype(value)>>(part);
    if (!read) fields.fail(kDependenciesColumn, std::string(kAllowed));
    value = *read;
  };
  TrafficDependency d;
  if (parts.size() != 3) fields.fail(kDependenciesColumn, std::string(kAllowed));
  number(parts[0], d.on);
  number(parts[2], d.delay.ps);
  bool known = false;
  for (std::uint8_t k = 0; k < 3; ++k) {
    if (parts[1] != name_of(static_cast<TrafficDependency::Kind>(k))) continue;
    d.kind = static_cast<TrafficDependency::Kind>(k);
    known = true;
  }
  if (!known) fields.fail(kDependenciesColumn, std::string(kAllowed));
  return d;
}

constexpr std::string_view kSdma = "sdma", kFix = ".fix";

std::string core_text(const TrafficRecord& r) {
  if (r.engine == TrafficRecord::Engine::sdma) return std::string(kSdma);
  if (r.core == TrafficRecord::kAnyCore) return "";
  return fmt::format("{}{}", r.core, r.engine == TrafficRecord::Engine::fix ? kFix : "");
}

void read_core(const FieldReader& fields, TrafficRecord& r) {
  std::string_view text = fields.text(kCore);
  r.engine = text == kSdma          ? TrafficRecord::Engine::sdma
             : text.ends_with(kFix) ? TrafficRecord::Engine::fix
                                    : TrafficRecord::Engine::mte;
  r.core = text.empty() ? TrafficRecord::kAnyCore : 0;
  if (text.empty() || text == kSdma) return;
  if (r.engine == TrafficRecord::Engine::fix) text.remove_suffix(kFix.size());
  const auto core = hw::number_of<decltype(r.core)>(text);
  if (!core || *core < 0) fields.fail(kCore, "a core's number, as it is or with .fix; sdma; nothing");
  r.core = *core;
}

}  // namespace

TrafficCsvWriter::TrafficCsvWriter(const std::string& path, const TrafficHeader& header) : file_(path) {
  for (const std::string& line : header.shaped) file_.write(fmt::format("{}{}\n", kShaped, line));
  file_.write(fmt::format("{}\n", fmt::join(kTrafficColumns, ",")));
}

void TrafficCsvWriter::add(const TrafficRecord& r) {
  if (const std::string fault = fault_of(r, records_); !fault.empty())
    throw InputError(fmt::format("record {}: {}", records_, fault));
  std::string dependencies;
  for (const TrafficDependency& d : r.dependencies)
    dependencies +=
        fmt::format("{}{}:{}:{}", dependencies.empty() ? "" : " ", d.on, name_of(d.kind), d.delay.ps);
  file_.write(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", records_++, name_of(r.kind),
                          r.start.ps, r.end.ps, text_of(r.source), core_text(r), text_of(r.target),
                          name_of(r.operation), r.offset, r.bytes, r.bursts, r.stride, r.lane,
                          r.by_ub     ? "ub"
                          : r.by_rdma ? "rdma"
                                      : "",
                          r.allocate ? "yes" : "no", dependencies, fmt::join(r.words, " ")));
}

TrafficCsvReader::TrafficCsvReader(const std::string& path) : lines_(path) {
  if (!lines_.next(line_)) lines_.fail("header: the file is empty");
  while (line_.starts_with(kShaped)) {
    header_.shaped.push_back(line_.substr(kShaped.size()));
    if (!lines_.next(line_)) lines_.fail("header: is missing");
  }
  const auto fields = split_fields(line_);
  words_ = fields.size() != kWords;
  if (!std::equal(fields.begin(), fields.end(), kTrafficColumns.begin(),
                  words_ ? kTrafficColumns.end() : kTrafficColumns.end() - 1))
    lines_.fail(
        fmt::format("header: '{}'; allowed: {}", line_.substr(0, 80), fmt::join(kTrafficColumns, ",")));
}

void TrafficCsvReader::read_words(const FieldReader& fields, TrafficRecord& r) const {
  r.words.clear();
  if (!words_ || fields.text(kWords).empty()) return;
  for (const std::string_view text : split_fields(fields.text(kWords), ' ')) {
    const auto word = hw::number_of<std::uint64_t>(text);
    if (!word || r.words.size() == kMostWords)
      fields.fail(kWords, fmt::format("up to {} whole numbers, separated by blanks", kMostWords));
    r.words.push_back(*word);
  }
}

bool TrafficCsvReader::next(TrafficRecord& r) {
  do {
    if (!lines_.next(line_)) return false;
  } while (line_.empty() || line_ == "\r");
  auto parts = split_fields(line_);
  if (const std::size_t wanted = kWords + (words_ ? 1u : 0u); parts.size() != wanted)
    lines_.fail(fmt::format("line: {} fields; allowed: {}", parts.size(), wanted));
  const FieldReader fields(lines_, std::move(parts), kTrafficColumns);
  if (fields.integer(kId, 0, kMost) != static_cast<std::int64_t>(records_))
    fields.fail(kId, fmt::format("{}, the record's number", records_));
  r.kind = named<TrafficRecord::Kind>(fields, kKind, kTrafficKinds);
  r.start.ps = fields.integer(kStart, 0, kMost);
  r.end.ps = fields.integer(kEndColumn, 0, kMost);
  r.source = unit_of(fields, kSource);
  read_core(fields, r);
  r.target = unit_of(fields, kTarget);
  r.operation = named<sim::Operation>(fields, kOperation, 4);
  r.offset = static_cast<std::uint64_t>(fields.integer(kOffset, 0, kMost));
  r.bytes = static_cast<std::uint64_t>(fields.integer(kBytes, 0, kMost));
  r.bursts = static_cast<std::uint32_t>(fields.integer(kBursts, 0, 65535));
  r.stride = fields.integer(kStride, -kMost, kMost);
  r.lane = static_cast<std::uint8_t>(fields.integer(kLane, 0, 15));
  const std::string_view via = fields.text(kVia);
  if (!via.empty() && via != "ub" && via != "rdma") fields.fail(kVia, "ub, rdma or nothing");
  r.by_ub = via == "ub";
  r.by_rdma = via == "rdma";
  r.allocate = yes_or_no(fields, kL2, "yes", "no");
  r.dependencies.clear();
  if (!fields.text(kDependenciesColumn).empty()) {
    for (const std::string_view text : split_fields(fields.text(kDependenciesColumn), ' ')) {
      if (text.empty()) continue;
      if (r.dependencies.size() == kMostDependencies)
        fields.fail(kDependenciesColumn, fmt::format("{} of them", kMostDependencies));
      r.dependencies.push_back(dependency_of(fields, text));
    }
  }
  read_words(fields, r);
  if (const std::string fault = fault_of(r, records_); !fault.empty()) lines_.fail(fault);
  ++records_;
  return true;
}

}  // namespace cm384::traces
