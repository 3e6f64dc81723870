// Where a byte of a die lies in its HBM.
#pragma once

#include <cstdint>

#include "hw/parameters/memory.h"

namespace cm384::npu {

struct HbmLocation {
  std::uint32_t channel = 0;  // pseudo-channel of the die
  std::uint32_t bank = 0;     // first bank of the train; the others follow, each in the next bank group
  std::uint32_t row = 0;
  bool operator==(const HbmLocation&) const = default;
};

// From low to high: 512 B line, pseudo-channel, lines of the open rows, bank, row. With `hash`,
// pseudo-channel and bank are XORed with all the bits above them, so that no power-of-two stride meets one
// channel or bank only. Where stacks are no power of two, the stack is the rest of what stands above the
// pseudo-channels of one, which with `hash` moves on with what is above it.
class AddressMapping {
 public:
  // Throws InputError when another count is not a power of two, or the counts do not give the capacity.
  explicit AddressMapping(const hw::Hbm& parameters);

  HbmLocation locate(std::uint64_t offset) const;
  std::uint32_t channels() const { return stacks_ << channel_bits_; }
  // Banks that the bursts of one line alternate over.
  std::uint32_t train_banks() const { return train_banks_; }
  std::uint32_t banks() const { return train_banks_ << bank_bits_; }

 private:
  std::uint32_t channel_bits_ = 0;  // of a stack, or of all where their number is a power of two
  std::uint32_t stacks_ = 1;        // beyond those bits
  std::uint32_t column_bits_ = 0;   // lines of a train's open rows
  std::uint32_t bank_bits_ = 0;     // choices of train_banks_ banks
  std::uint32_t train_banks_ = 1;
  bool hash_ = false;
};

}  // namespace cm384::npu
