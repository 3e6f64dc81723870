// Packets of the RDMA plane as bytes: a packet, its requests, each with the bytes it carries.
#include <algorithm>
#include <cstring>

#include "base/text/error.h"
#include "ub_fabric/planes/rdma/rdma_plane.h"

namespace cm384::rdma {
namespace {

template <class T>
void put(std::vector<std::byte>& to, const T& record) {
  const auto bytes = std::as_bytes(std::span(&record, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void take(std::span<const std::byte>& from, std::span<std::byte> to) {
  if (from.size() < to.size()) throw MachineError("crossings: more taken out than was put in");
  std::copy_n(from.begin(), to.size(), to.begin());
  from = from.subspan(to.size());
}

template <class T>
void take(std::span<const std::byte>& from, T& record) {
  take(from, std::as_writable_bytes(std::span(&record, 1)));
}

}  // namespace

void RdmaPlane::pack(std::uint64_t argument, std::vector<std::byte>& to) {
  const auto index = static_cast<std::uint32_t>(argument);
  const Packet& packet = pools_.packets[index];
  put(to, packet);
  for (std::uint32_t n = packet.pieces.head; n != sim::kNoRecord;) {
    Piece& piece = pools_.pieces[n];
    put(to, piece);
    if (piece.payload.chunk != sim::kNoChunk) {
      const std::byte* const chunk = payloads_.bytes(piece.payload.chunk);
      to.insert(to.end(), chunk, chunk + piece.bytes);
      payloads_.release(piece.payload);
    }
    const std::uint32_t next = piece.next;
    pools_.pieces.release(n);
    n = next;
  }
  pools_.packets.release(index);
}

std::uint64_t RdmaPlane::unpack(std::span<const std::byte>& from) {
  const std::uint32_t index = pools_.packets.allocate();
  Packet packet;
  take(from, packet);
  bool more = !packet.pieces.empty();
  packet.pieces = {};
  while (more) {
    const std::uint32_t number = pools_.pieces.allocate();
    Piece& piece = pools_.pieces[number];
    take(from, piece);
    if (piece.payload.chunk != sim::kNoChunk) {
      piece.payload.chunk = payloads_.allocate();
      take(from, std::span(payloads_.bytes(piece.payload.chunk), piece.bytes));
    }
    more = piece.next != sim::kNoRecord;
    packet.pieces.push(pools_.pieces, number);
  }
  pools_.packets[index] = packet;
  return index;
}

}  // namespace cm384::rdma
