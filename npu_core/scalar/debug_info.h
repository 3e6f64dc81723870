// Function, file and line of an address, from the DWARF debug information of an ELF file (libdw).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cm384::npu {

struct SourcePlace {
  std::string function;
  std::string file;  // without its folder
  int line = 0;
  std::string path;  // of the file, as the compiler was told

  bool operator==(const SourcePlace&) const = default;
};

class DebugInfo {
 public:
  // Of a whole ELF file in memory, which must outlive it. Whatever is wrong with its debug information, or if
  // it has none: no address has a place.
  explicit DebugInfo(std::span<const std::byte> elf);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // Where the program's author wrote it: of functions that were inlined into each other, the innermost one
  // outside the kernel runtime (firmware/runtime). Not for two threads at a time.
  std::optional<SourcePlace> place_of(std::uint64_t address) const;
  // Names of the parameters of the function that begins at an address. Not for two threads at a time.
  std::optional<std::vector<std::string>> parameters_at(std::uint64_t address) const;

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace cm384::npu
