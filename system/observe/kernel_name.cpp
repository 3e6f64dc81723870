#include "system/observe/kernel_name.h"

#include <filesystem>

namespace cm384::observe {

std::string kernel_name(const npu::ElfImage& image) {
  const std::string& path = image.path();
  return std::filesystem::path(path.substr(0, path.find(" (built in)"))).stem().string();
}

std::string kernel_name(const npu::LaunchRecord& record) {
  return record.image ? kernel_name(*record.image) : "";
}

}  // namespace cm384::observe
