#include "npu_core/memory/address_mapping.h"

#include <bit>
#include <string>

#include "base/text/error.h"

namespace cm384::npu {
namespace {

constexpr std::uint32_t kLineBits = 9;

std::uint32_t bits_of(std::string_view what, std::int64_t count) {
  if (count <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(count))) {
    throw InputError("hbm: " + std::string(what) + " = " + std::to_string(count) + " is no power of two");
  }
  return static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(count)));
}

// XOR of the lowest eight groups of `bits` bits of `value`, which hold all of it here.
std::uint32_t fold(std::uint64_t value, std::uint32_t bits) {
  value ^= value >> (4 * bits);
  value ^= value >> (2 * bits);
  value ^= value >> bits;
  return static_cast<std::uint32_t>(value & ((std::uint64_t{1} << bits) - 1));
}

}  // namespace

AddressMapping::AddressMapping(const hw::Hbm& parameters) : hash_(parameters.hash) {
  stacks_ = static_cast<std::uint32_t>(parameters.stacks);
  channel_bits_ = bits_of("pseudo_channels", parameters.pseudo_channels);
  if (std::has_single_bit(stacks_)) {
    channel_bits_ += bits_of("stacks", parameters.stacks);
    stacks_ = 1;
  }
  const std::uint32_t group_bits = bits_of("bank_groups", parameters.bank_groups);
  const std::uint32_t train_bits = bits_of("train_bank_groups", parameters.train_bank_groups);
  if (train_bits > group_bits) throw InputError("hbm: train_bank_groups exceeds bank_groups");
  bank_bits_ = group_bits + bits_of("banks_per_group", parameters.banks_per_group) - train_bits;
  train_banks_ = 1u << train_bits;
  column_bits_ = bits_of("row", parameters.row.count) + train_bits - kLineBits;
  if (parameters.capacity.count >> (kLineBits + channel_bits_ + column_bits_ + bank_bits_) < stacks_)
    throw InputError("hbm: one row of every bank is already more than capacity");
}

HbmLocation AddressMapping::locate(std::uint64_t offset) const {
  const std::uint64_t line = offset >> kLineBits;
  std::uint64_t above_channel = line >> channel_bits_;
  std::uint32_t stack = 0;
  if (stacks_ > 1) {
    stack = static_cast<std::uint32_t>(above_channel % stacks_);
    above_channel /= stacks_;
    if (hash_) stack = static_cast<std::uint32_t>((stack + above_channel) % stacks_);
  }
  const std::uint64_t above_column = above_channel >> column_bits_;
  const std::uint64_t row = above_column >> bank_bits_;
  auto channel = static_cast<std::uint32_t>(line & ((std::uint64_t{1} << channel_bits_) - 1));
  auto bank = static_cast<std::uint32_t>(above_column & ((std::uint64_t{1} << bank_bits_) - 1));
  if (hash_) {
    channel ^= fold(above_channel, channel_bits_);
    bank ^= fold(row, bank_bits_);
  }
  channel += stack << channel_bits_;
  return {channel, bank * train_banks_, static_cast<std::uint32_t>(row)};
}

}  // namespace cm384::npu
