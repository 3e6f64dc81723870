// Flits as the bench sees them, and what the specification says about their bits, written apart from the RTL.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace cm384::rtl {

using Flit = std::vector<std::uint8_t>;

// Kinds of control blocks; hw/rtl/ub_link/ub_link_pkg.sv.
enum class Control : std::uint8_t { null, returns, retry_request, retry_answer };

inline constexpr int kHeaderBytes = 4;
inline constexpr int kBlockHeaderBytes = 2;
inline constexpr int kCrcBytes = 4;
inline constexpr int kMaxBlocks = 16;

// The first two bytes of a block.
struct BlockHeader {
  bool credit, acknowledge;
  unsigned credit_lane, lane, format, route;
};

inline BlockHeader block_header(const Flit& flit) {
  const unsigned bits = flit[0] | flit[1] << 8;
  return {(bits & 1) != 0, (bits >> 1 & 1) != 0, bits >> 2 & 15, bits >> 6 & 15, bits >> 10 & 15, bits >> 14};
}

// CRC-30/CDMA over a block's bytes without its BCRC, bit 0 of a byte first: long division by hand.
inline std::uint32_t crc30(std::span<const std::uint8_t> bytes) {
  std::uint32_t state = 0x3fffffff;
  for (const std::uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool out = (state >> 29 & 1) != (byte >> bit & 1u);
      state = state << 1 & 0x3fffffff;
      if (out) state ^= 0x2030b9c7;
    }
  }
  return state;
}

// Puts the BCRC at the end of a block.
inline void seal(std::vector<std::uint8_t>& block) {
  const std::uint32_t crc = crc30(std::span(block).first(block.size() - kCrcBytes));
  for (int b = 0; b < 4; ++b) block[block.size() - kCrcBytes + b] = static_cast<std::uint8_t>(crc >> 8 * b);
}

inline bool is_sealed(const std::vector<std::uint8_t>& block) {
  std::vector<std::uint8_t> again = block;
  seal(again);
  return again == block;
}

// A good control block of that kind; content of a data block can look like one only by design.
inline bool is_control(const Flit& first, Control kind) {
  const BlockHeader header = block_header(first);
  return header.format == 0 && header.lane == static_cast<unsigned>(kind) && is_sealed(first);
}

// A retry request or answer.
inline Flit retry_block(Control kind, unsigned position, unsigned tag, int flit_bytes) {
  Flit flit(flit_bytes);
  flit[0] = static_cast<std::uint8_t>(static_cast<unsigned>(kind) << 6);
  for (int b = 0; b < 2; ++b) {
    flit[2 + b] = static_cast<std::uint8_t>(position >> 8 * b);
    flit[4 + b] = static_cast<std::uint8_t>(tag >> 8 * b);
  }
  seal(flit);
  return flit;
}

inline unsigned field(const Flit& flit, int byte) {
  return flit[byte] | flit[byte + 1] << 8;
}

// The bench's own random numbers: equal on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>((next() >> 32) * limit >> 32); }
  bool chance(unsigned of_1024) { return below(1024) < of_1024; }

 private:
  std::uint64_t state_;
};

// Damages flits as independent bit errors do: (1 - rate)^bits of them pass. One bit of a struck flit is
// turned; a second one would change nothing, since the CRC catches both cases.
class BitErrors {
 public:
  BitErrors(double rate, int flit_bytes, std::uint64_t seed) : bits_(8u * flit_bytes), random_(seed) {
    double passes = 1;
    for (unsigned b = 0; b < bits_; ++b) passes *= 1 - rate;
    threshold_ = static_cast<std::uint64_t>((1 - passes) * 9007199254740992.0);
  }
  void operator()(Flit& flit) {
    if (random_.next() >> 11 >= threshold_) return;
    const unsigned bit = random_.below(bits_);
    flit[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    ++struck_;
  }
  std::uint64_t struck() const { return struck_; }

 private:
  unsigned bits_;
  std::uint64_t threshold_;
  Random random_;
  std::uint64_t struck_ = 0;
};

}  // namespace cm384::rtl
