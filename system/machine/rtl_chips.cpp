#include "system/machine/rtl_chips.h"

#include <fmt/format.h>

#include "base/text/error.h"
#include "base/text/quantity.h"
#include "system/machine/link_name.h"

namespace cm384::supernode {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw InputError(fmt::format(
      "'{}' names no switch chip; allowed: l1:NODE.PLANE as in l1:3.2, l2:PLANE.CHIP as in l2:0.5, "
      "or a sub-plane and a chip as in plane=2,l1=3",
      text));
}

int number(std::string_view text, std::string_view whole) {
  if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string_view::npos)
    refuse(whole);
  return static_cast<int>(hw::parse_integer(text));
}

RtlChip chip_of(const LinkSelection& selection, std::string_view whole) {
  if (selection.plane < 0 || selection.parts.size() != 1) refuse(whole);
  const LinkName::End& part = selection.parts.front();
  if (part.part != "l1chip" && part.part != "l2chip") refuse(whole);
  return {part.part == "l1chip", selection.plane, part.number, {}};
}

}  // namespace

RtlChip parse_rtl_chip(std::string_view text) {
  const bool brief = text.starts_with("l1:") || text.starts_with("l2:");
  const std::string_view by = brief ? "=" : ",library=";
  if (const std::size_t end = text.find(by); end != std::string_view::npos) {
    RtlChip chip = parse_rtl_chip(text.substr(0, end));
    chip.library = text.substr(end + by.size());
    if (chip.library.empty())
      throw InputError(fmt::format("'{}' names no library; `cm384 rtl build` makes one", text));
    return chip;
  }
  if (text.find('=') != std::string_view::npos) return chip_of(parse_link_selection(text), text);
  const std::string_view kind = text.substr(0, 3);
  const std::size_t dot = text.find('.');
  const std::string_view rest = text.size() < 3 ? std::string_view{} : text.substr(3);
  const bool known = (kind == "l1:" || kind == "l2:") && dot != std::string_view::npos;
  const int first = number(known ? rest.substr(0, dot - 3) : std::string_view{}, text);
  const int second = number(text.substr(dot + 1), text);
  return kind == "l1:" ? RtlChip{true, second, first, {}} : RtlChip{false, first, second, {}};
}

void RtlChips::install(Supernode& machine, const RtlChip& chip) {
  const hw::Machine& m = machine.parameters();
  if (chip.plane >= m.topology.sub_planes)
    throw InputError(
        fmt::format("sub-plane {} does not exist; allowed: 0 to {}", chip.plane, m.topology.sub_planes - 1));
  const ub::SubPlane& plane = machine.plane(chip.plane);
  const ub::Network& network = plane.network();
  LinkSelection{chip.plane, {{chip.l1 ? "l1chip" : "l2chip", chip.number}}}.check(network,
                                                                                  m.topology.sub_planes);
  const unsigned number = network.chip(chip.l1 ? "l1chip" : "l2chip", static_cast<unsigned>(chip.number));
  for (const Put& other : chips_) {
    if (other.chip.l1 == chip.l1 && other.chip.plane == chip.plane && other.chip.number == chip.number)
      throw InputError("one switch chip is named twice");
  }
  chips_.push_back(
      {chip, ub::make_rtl_switch({m.topology, m.ub, m.cpu, m.package_link}, plane.timings().of_chip(number),
                                 network.ports(number), chip.library)});
  machine.install(chip.plane, number, *chips_.back().model);
}

void RtlChips::write_waves(const std::string& stem) {
  for (const Put& put : chips_) {
    const RtlChip& c = put.chip;
    put.model->write_waves(c.l1 ? fmt::format("{}.l1-{}.{}.fst", stem, c.number, c.plane)
                                : fmt::format("{}.l2-{}.{}.fst", stem, c.plane, c.number));
  }
}

void RtlChips::finish_waves() {
  for (const Put& put : chips_) put.model->finish_waves();
}

ub::RtlSwitchCounters RtlChips::counters() const {
  ub::RtlSwitchCounters sum;
  for (const Put& put : chips_) {
    sum.cycles += put.model->counters().cycles;
    sum.packets += put.model->counters().packets;
  }
  return sum;
}

}  // namespace cm384::supernode
