// A packet on a link, as an entry of the trace log.
#pragma once

#include <cstdint>

#include "npu_core/causality/trace_log.h"
#include "supernode/probes.h"

namespace cm384::observe {

struct ExplainedHop {
  enum Flag : std::uint16_t { kToEndpoint = 1, kFromEndpoint = 2, kResponse = 4 };

  static void put(npu::TraceLog& log, const ub::PacketPool& packets, const supernode::LinkPacket& sent) {
    using Kind = supernode::LinkName::Kind;
    const ub::Packet& p = packets[sent.hop.packet()];
    const bool response = ub::is_response(p.kind);
    const std::uint64_t initiator = response ? p.destination : p.source;
    const int flags = (sent.link.kind == Kind::to_endpoint     ? kToEndpoint
                       : sent.link.kind == Kind::from_endpoint ? kFromEndpoint
                                                               : 0) |
                      (response ? kResponse : 0);
    log.put({npu::TraceEntry::hop, 0, 0, 0, static_cast<std::uint16_t>(flags)},
            reinterpret_cast<std::uintptr_t>(&sent.link),
            initiator << 48 | std::uint64_t{p.core} << 32 | p.tag, sent.start.ps, sent.tail.ps);
  }
};

}  // namespace cm384::observe
