#include "system/observe/wave.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "base/text/quantity.h"

namespace cm384::observe {
namespace {

// Modules run in turn, in windows: a change may come so much later than one of a later time.
constexpr Time kReorder = 10_us;

}  // namespace

Wave::Wave(supernode::Supernode& machine, const std::string& path,
           std::vector<supernode::LinkSelection> selected)
    : machine_(machine), selected_(std::move(selected)), file_(WaveFile::create(path)) {
  machine.need_order("waves");
  if (selected_.empty()) selected_.push_back({-1, {{"die", machine.dies().front()}}});
  for (const supernode::LinkSelection& s : selected_)
    s.check(machine.plane(0).network(), machine.parameters().topology.sub_planes);
  file_->begin_scope("links");
  machine.visit_links([this](const supernode::LinkName& link) {
    if (shows(link)) declare_link(link);
  });
  if (links_.empty()) throw InputError("--wave-links: selects no link of this machine");
  file_->end_scope();
  file_->begin_scope("dies");
  for (const int die : machine.dies()) {
    for (const supernode::LinkSelection& s : selected_) {
      if (std::ranges::count(s.parts, supernode::LinkName::End{"die", die}) != 0 && !under_way_.contains(die))
        under_way_[die] = declare(fmt::format("die{}_requests_under_way", die), 16);
    }
  }
  file_->end_scope();
  file_->end_declarations();
  machine.probes().link_packet.attach(
      this, [](void* self, const supernode::LinkPacket& p) { static_cast<Wave*>(self)->packet(p); });
}

Wave::~Wave() = default;

bool Wave::shows(const supernode::LinkName& link) const {
  return std::any_of(selected_.begin(), selected_.end(),
                     [&link](const supernode::LinkSelection& s) { return s.matches(link); });
}

std::size_t Wave::declare(const std::string& name, unsigned bits) {
  signals_.push_back({bits});
  return file_->add_signal(name, bits);
}

void Wave::declare_link(const supernode::LinkName& link) {
  const std::string name = link.signal();
  Link made;
  made.busy = declare(name + "_busy", 1);
  for (int lane = 0; lane < machine_.parameters().ub.link.lanes; ++lane) {
    const std::size_t signal = declare(fmt::format("{}_credits_lane{}", name, lane), 16);
    if (lane == 0) made.first_lane = signal;
  }
  links_[name] = made;
}

void Wave::packet(const supernode::LinkPacket& p) {
  if (!shows(p.link)) return;
  Link& link = links_.at(p.link.signal());
  change(link.busy, p.start, 1);
  change(link.busy, p.tail, 0);
  change(link.first_lane + p.hop.lane(), p.start, static_cast<std::uint64_t>(std::max(p.free_cells, 0)));
  if (const auto die = under_way_.find(p.link.endpoint);
      die != under_way_.end() && p.link.kind == supernode::LinkName::Kind::from_endpoint)
    change(die->second, p.start, machine_.controller(die->first).pending());
  if (p.start > latest_) {
    latest_ = p.start;
    write_until(latest_ - kReorder);
  }
}

void Wave::change(std::size_t signal, Time at, std::uint64_t value) {
  changes_.push({at, order_++, signal, value});
}

// Of several values of one time the last one counts; a link that goes on without a gap stays busy.
void Wave::write_until(Time end) {
  while (!changes_.empty() && changes_.top().at < end) {
    const Time at = changes_.top().at;
    std::map<std::size_t, std::uint64_t> now;
    while (!changes_.empty() && changes_.top().at == at) {
      const Change& c = changes_.top();
      std::uint64_t& value = now[c.signal];
      value = signals_[c.signal].bits == 1 ? value | c.value : c.value;
      changes_.pop();
    }
    for (const auto& [number, value] : now) {
      Signal& signal = signals_[number];
      if (signal.value == value) continue;
      signal.value = value;
      file_->change(at, number, value);
    }
  }
}

void Wave::finish() {
  write_until(Time::never());
  file_->finish();
}

}  // namespace cm384::observe
