// A packet on a link, as an entry of the trace log: `core` is its lane, `die` the cells it takes.
#pragma once

#include <cstdint>

#include "npu_core/causality/trace_log.h"
#include "system/machine/probes.h"
#include "system/observe/explain/link_path.h"

namespace cm384::observe {

struct ExplainedHop {
  enum Flag : std::uint16_t { kResponse = 1 };

  static void append(npu::TraceLog& log, const ub::PacketPool& packets, const supernode::LinkPacket& sent) {
    const ub::Packet& p = packets[sent.hop.packet()];
    const bool response = ub::is_response(p.kind);
    const std::uint64_t initiator = response ? p.destination : p.source;
    log.append(
        {npu::TraceEntry::hop, 0, static_cast<std::uint16_t>(sent.hop.cells()),
         static_cast<std::uint16_t>(sent.hop.lane()), static_cast<std::uint16_t>(response ? kResponse : 0)},
        ExplainedLink::number_of(sent.link), initiator << 48 | std::uint64_t{p.core} << 32 | p.tag,
        sent.start.ps, sent.tail.ps);
  }
};

}  // namespace cm384::observe
