// Size of a packet on the wire, as the Unified Bus specification frames it (ascend-facts D1, D2).
#pragma once

#include <cstdint>

#include "ub_fabric/packet.h"

namespace cm384::ub {

inline constexpr int kFlitBytes = 20;
inline constexpr int kBlockFlits = 32;           // a data-link block: at most 640 B, closed by its own CRC
inline constexpr int kBlockCrcBytes = 4;         // BCRC
inline constexpr int kLinkBlockHeaderBytes = 2;  // LBH, in every block but the first
// LPH 4 + NTH (CNA16) 8 + cTAH 4 + cMAETAH 12.
inline constexpr int kRequestHeaderBytes = 28;
// LPH 4 + NTH 8 + cATAH 4.
inline constexpr int kResponseHeaderBytes = 16;

// Flits of a packet with `header` + `payload` bytes before framing.
constexpr int wire_flits(int header, int payload) {
  constexpr int block = kBlockFlits * kFlitBytes;
  const int content = header + payload;
  const int first = block - kBlockCrcBytes;
  if (content <= first) return (content + kBlockCrcBytes + kFlitBytes - 1) / kFlitBytes;
  constexpr int further = block - kBlockCrcBytes - kLinkBlockHeaderBytes;
  const int rest = content - first;
  const int whole = rest / further;
  const int last = rest % further;
  const int last_bytes = last == 0 ? 0 : last + kBlockCrcBytes + kLinkBlockHeaderBytes;
  return kBlockFlits * (1 + whole) + (last_bytes + kFlitBytes - 1) / kFlitBytes;
}

// Flits of a packet of that kind which carries `payload` bytes (0 for read requests and acknowledgements).
constexpr int packet_flits(PacketKind kind, int payload) {
  return wire_flits(is_response(kind) ? kResponseHeaderBytes : kRequestHeaderBytes, payload);
}

static_assert(packet_flits(PacketKind::write_request, static_cast<int>(sim::kRequestBytes)) <=
              Hop::kMostFlits);

}  // namespace cm384::ub
