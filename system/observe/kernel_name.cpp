#include "system/observe/kernel_name.h"

#include <filesystem>

#include "npu_core/scalar/elf_image.h"

namespace cm384::observe {

std::string kernel_name(const npu::LaunchRecord& record) {
  if (!record.image) return "";
  const std::string& path = record.image->path();
  return std::filesystem::path(path.substr(0, path.find(" (built in)"))).stem().string();
}

}  // namespace cm384::observe
