// An ELF executable for the scalar unit: RV64, static, linked into the private memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct Elf;  // libelf's

namespace cm384::npu {

class DebugInfo;
struct SourcePlace;

class ElfImage {
 public:
  ElfImage();
  ~ElfImage();
  ElfImage(const ElfImage&) = delete;
  ElfImage& operator=(const ElfImage&) = delete;

  struct Segment {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;         // in memory; what the file does not give is zero
    std::vector<std::byte> content;  // from the file
    bool executable = false;
  };

  // Reads and checks the file. Throws InputError (one line, names the file) when it is missing, truncated, no
  // ELF, not RV64 little endian ET_EXEC, or lies outside the private memory.
  static std::shared_ptr<const ElfImage> read(const std::string& path);
  // Reads an image in memory; `name` stands for the path.
  static std::shared_ptr<const ElfImage> from_memory(std::span<const std::byte> bytes,
                                                     const std::string& name);

  const std::string& path() const { return path_; }
  std::uint64_t entry() const { return entry_; }
  // Bytes of its executable segments.
  std::uint64_t code_bytes() const;
  const std::vector<Segment>& segments() const { return segments_; }
  // Value of a symbol, for example `tohost`.
  std::optional<std::uint64_t> symbol(std::string_view name) const;
  // Symbols whose names begin so: the rest of the name, and the value.
  std::vector<std::pair<std::string, std::uint64_t>> symbols(std::string_view prefix) const;
  // Whether its kernel is a function marked __global__, called with struct cm384_program.
  bool takes_arguments() const { return symbol("cm384_entry_begin") != symbol("cm384_entry_end"); }
  // Names of that function's parameters, by the file's debug information; nothing where it has none. For any
  // thread.
  std::optional<std::vector<std::string>> kernel_parameters() const;
  // Functions in the range [begin, end), by address.
  std::vector<std::string> functions(std::uint64_t begin, std::uint64_t end) const;
  // "name+0x1c" of the function (or label) that holds the address; "?" when there is none.
  std::string symbol_at(std::uint64_t address) const;
  // By the file's debug information; nothing where it has none. For any thread.
  std::optional<SourcePlace> place_of(std::uint64_t address) const;
  // For reports: "Compute at hello.cpp:42, pc 0x80000124"; without debug information "Compute+0x1c, pc
  // 0x80000124".
  std::string describe(std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::string name;
    bool code = false;  // a function or a label in an executable segment
  };
  static std::shared_ptr<const ElfImage> parse(Elf* elf, const std::string& path);

  void read_symbols(void* elf);  // libelf's handle

  std::string path_;
  std::uint64_t entry_ = 0;
  std::vector<Segment> segments_;
  std::vector<Symbol> symbols_;  // by address, then name
  std::vector<std::byte> file_;  // for the debug information, which is read when a report asks for it
  mutable std::mutex asking_;
  mutable std::unique_ptr<DebugInfo> debug_info_;
};

}  // namespace cm384::npu
