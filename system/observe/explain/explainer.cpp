#include "system/observe/explain/explainer.h"

#include "system/observe/explain/explained_hop.h"
#include "system/observe/explain/machine_path.h"

namespace cm384::observe {

Explainer::Explainer(supernode::Supernode& machine)
    : machine_(machine),
      path_(std::make_unique<MachinePath>(machine.parameters())),
      log_([this](std::span<const std::uint64_t> words) { path_->play(words); }) {
  machine.keep_log(log_, true);
  machine.trace_links();
  ExplainedLink::put_all(log_, machine);
  machine.probes().link_packet.attach(this, [](void* self, const supernode::LinkPacket& sent) {
    auto& explainer = *static_cast<Explainer*>(self);
    ExplainedHop::put(explainer.log_, explainer.machine_.packets(), sent);
  });
}

Explainer::~Explainer() {
  machine_.probes().link_packet.detach(this);
}

void Explainer::begin_counted() {
  log_.put({npu::TraceEntry::counted, 0, static_cast<std::uint16_t>(machine_.dies().front()), 0, 0});
}

Explanation Explainer::finish() {
  log_.drain();
  return Explanation::of(*path_, machine_.parameters());
}

}  // namespace cm384::observe
