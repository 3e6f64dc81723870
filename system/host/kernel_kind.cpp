#include "system/host/kernel_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text/error.h"
#include "firmware/abi/program.h"

namespace cm384::host {
namespace {

constexpr const char* kSymbol = "cm384_kernel_type";

npu::KernelType type_of(const std::string& path, std::uint64_t value) {
  switch (value) {
    case CM384_KERNEL_AIV_ONLY:
    case CM384_KERNEL_MIX_AIV_1_0:
      return npu::KernelType::aiv;
    case CM384_KERNEL_AIC_ONLY:
    case CM384_KERNEL_MIX_AIC_1_0:
      return npu::KernelType::aic;
    case CM384_KERNEL_MIX_AIC_1_2:
      return npu::KernelType::mix;
    default:
      throw InputError(
          fmt::format("{}: its KERNEL_TASK_TYPE is number {}; there are AIV_ONLY, AIC_ONLY, MIX_AIV_1_0, "
                      "MIX_AIC_1_0 and MIX_AIC_1_2: docs/ascend-c.md",
                      path, value));
  }
}

}  // namespace

npu::KernelType kernel_type(const npu::ElfImage& image, std::uint64_t tiling_key) {
  const auto of_key = image.symbol(fmt::format("{}_{}", kSymbol, tiling_key));
  return type_of(image.path(), of_key.value_or(image.symbol(kSymbol).value_or(CM384_KERNEL_AIV_ONLY)));
}

std::vector<npu::KernelType> kernel_types(const npu::ElfImage& image, const std::string& name) {
  std::vector<npu::KernelType> types;
  for (const auto& [key, value] : image.symbols(kSymbol)) types.push_back(type_of(name, value));
  return types;
}

void set_blocks(npu::LaunchRequest& request, std::uint64_t blocks, const hw::Die& die) {
  const int available = request.type == npu::KernelType::aiv   ? die.aiv
                        : request.type == npu::KernelType::aic ? die.aic
                                                               : std::min(die.aic, die.aiv / 2);
  if (blocks == 0 || blocks > kMostBlocks)
    throw InputError(fmt::format("{} blocks; allowed: 1 to {}", blocks, kMostBlocks));
  if (available == 0) throw InputError("the kernel is for cube cores, and a die has none");
  request.cores.resize(std::min(blocks, static_cast<std::uint64_t>(available)));
  std::iota(request.cores.begin(), request.cores.end(), std::uint16_t{0});
  request.blocks = static_cast<std::uint32_t>(blocks);
}

std::uint64_t vector_cores(npu::KernelType type) {
  return type == npu::KernelType::mix ? 2 : type == npu::KernelType::aiv ? 1 : 0;
}

}  // namespace cm384::host
