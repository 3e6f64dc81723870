#include "system/machine/prefetcher.h"

#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::supernode {

// Each loop follows pointers that the one before has asked for.
void Prefetcher::ask(Time end) {
  items_.clear();
  active_.clear();
  for (const Socketed& die : dies_) die.die->queue().prefetch(end, 0);
  for (const Socketed& die : dies_) die.die->queue().prefetch(end, 1);
  for (const Socketed& die : dies_) survey(die, end);
  for (const Item& item : items_) item.at->controller->prefetch(item.event, 0);
  for (const Item& item : items_) {
    const auto expected = item.at->controller->prefetch(item.event, 1);
    activate(*item.at, expected.core, npu::CorePipes::engine_of(expected.tag));
  }
  for (int stage = 0; stage < npu::CoreCluster::kPrefetchStages; ++stage) {
    for (const Active& active : active_) {
      if (active.part == kCore) {
        active.die->cluster().prefetch(active.core, stage);
      } else {
        active.die->cluster().prefetch_engine(active.core, active.part, stage);
      }
    }
  }
  for (const Item& item : items_) item.at->controller->prefetch(item.event, 2);
}

void Prefetcher::survey(const Socketed& die, Time end) {
  parts_[static_cast<std::size_t>(&die - dies_.data())].assign(
      static_cast<std::size_t>(die.die->cluster().size()), 0);
  die.die->queue().survey(end, [&](const sim::Event& e) {
    if (e.unit == controller_unit_) {
      items_.push_back({&die, e});
    } else {
      activate(die, e.unit, e.what);
    }
  });
}

void Prefetcher::activate(const Socketed& die, std::uint32_t core, std::uint32_t what) {
  std::vector<std::uint8_t>& parts = parts_[static_cast<std::size_t>(&die - dies_.data())];
  if (core >= parts.size()) return;
  const auto add = [&](std::uint32_t part) {
    if ((parts[core] >> part & 1) != 0) return;
    parts[core] |= static_cast<std::uint8_t>(1u << part);
    active_.push_back({die.die, core, part});
  };
  add(kCore);
  if (what < npu::kEngines) add(what);
}

}  // namespace cm384::supernode
