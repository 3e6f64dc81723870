#include "system/observe/explain/explainer.h"

#include <algorithm>

#include "system/observe/explain/explained_hop.h"
#include "system/observe/explain/machine_path.h"

namespace cm384::observe {

namespace {

void put_counted(TraceThread& log, const supernode::Supernode& machine) {
  log.append({npu::TraceEntry::counted, 0, static_cast<std::uint16_t>(machine.dies().front()), 0, 0});
}

}  // namespace

Explainer::Explainer(supernode::Supernode& machine)
    : machine_(machine),
      path_(std::make_unique<MachinePath>(machine.parameters())),
      log_([this](std::span<const std::uint64_t> words) { path_->play(words); }) {
  machine.keep_log(log_, true);
  machine.trace_links();
  ExplainedLink::append_all(log_, machine);
  machine.probes().link_packet.attach(this, [](void* self, const supernode::LinkPacket& sent) {
    auto& explainer = *static_cast<Explainer*>(self);
    ExplainedHop::append(explainer.log_, explainer.machine_.packets(), sent);
  });
}

Explainer::~Explainer() {
  machine_.probes().link_packet.detach(this);
}

void Explainer::begin_counted() {
  put_counted(log_, machine_);
}

Explanation Explainer::finish() {
  log_.drain();
  return Explanation::of(*path_, machine_.parameters());
}

SpanWatch::SpanWatch(supernode::Supernode& machine)
    : machine_(machine), log_([this](std::span<const std::uint64_t> words) { play(words); }) {
  machine.keep_log(log_);
}

void SpanWatch::begin_counted() {
  put_counted(log_, machine_);
}

double SpanWatch::finish_us() {
  log_.drain();
  return static_cast<double>(ended_ps_ - begun_ps_) / 1e6;
}

// From the first task's turn to the end of the last task or block, as MachinePath has it.
void SpanWatch::play(std::span<const std::uint64_t> words) {
  for (std::size_t at = 0; at < words.size();) {
    const npu::TraceEntry entry = npu::TraceLog::entry_of(words[at]);
    const std::uint64_t* const w = &words[at] + 1;
    at += std::size_t{1} + entry.words;
    switch (entry.kind) {
      case npu::TraceEntry::counted:
        begins_ = true;
        break;
      case npu::TraceEntry::task_begun:
        if (begins_) begun_ps_ = ended_ps_ = static_cast<std::int64_t>(w[2]);
        begins_ = false;
        break;
      case npu::TraceEntry::task_ended:
      case npu::TraceEntry::block_ended:
        ended_ps_ = std::max(ended_ps_, static_cast<std::int64_t>(w[1]));
        break;
      default:
        break;
    }
  }
}

}  // namespace cm384::observe
