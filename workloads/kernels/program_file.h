// The file of `cm384 run program`: buffers of every rank, structs of fields, communication contexts, launches
// in order, checks and results (docs/programs.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "workloads/frame/array_file.h"

namespace cm384::studies {

// A number of each rank: the same for all, a list by rank, the rank itself, or how many there are.
class RankValue {
 public:
  enum class Name : std::uint8_t { rank, ranks };
  using Any = std::variant<std::int64_t, double, Name, std::vector<std::int64_t>, std::vector<double>>;
  RankValue() = default;
  explicit RankValue(Any value) : value_(std::move(value)) {}
  Number number(int rank, int ranks) const;
  std::int64_t whole(int rank, int ranks) const;  // of what is_whole()
  bool is_whole() const;

 private:
  Any value_ = std::int64_t{0};
};

struct ProgramBuffer {
  struct Range {
    Number first = std::int64_t{0}, step = std::int64_t{1};  // both integers or both doubles
    Number at(std::uint64_t n) const;                        // throws InputError beyond 64 bits
  };
  // Uniform: floats in [low, high), integers from low to high.
  struct Random {
    double low = 0, high = 1;
    std::uint64_t seed = 1;
  };
  struct File {
    std::string path;  // {rank} stands for the rank
  };
  std::string name;
  ElementType type{};
  std::vector<std::uint64_t> shape;
  std::variant<RankValue, Range, Random, File> fill;  // RankValue 0: as memory is, untouched
  bool filled = false;
  bool payload = false;  // in payload mode control its bytes are not kept
  std::uint64_t count() const;
  std::uint64_t bytes() const { return count() * bytes_of(type); }
};

// A buffer's address at a rank.
struct ProgramPointer {
  std::size_t buffer = 0;
  std::uint64_t offset = 0;       // bytes
  std::optional<RankValue> rank;  // of another rank; nothing: of the own
};

struct ProgramStruct {
  struct Field {
    std::uint32_t at = 0;  // bytes from the beginning
    ElementType type{};
    std::variant<RankValue, ProgramPointer> value;
  };
  std::string name;
  std::uint32_t bytes = 0;
  std::vector<Field> fields;
};

// What GetHcclContext<index>() gives: the resources of a communication group as kernels read them, with each
// rank's windows.
struct ProgramContext {
  unsigned index = 0;
  std::optional<std::size_t> window_in, window_out, window_exp;  // buffers
  std::vector<std::vector<int>> members;                         // groups of ranks, apart from each other
};

struct ProgramLaunch {
  struct Table {
    std::size_t buffer = 0;  // an array of its addresses, rank after rank
  };
  struct Struct {
    std::size_t number = 0;
  };
  std::string name, kernel;
  int blocks = 1;
  std::vector<std::variant<RankValue, ProgramPointer, Table, Struct>> arguments;
  std::vector<bool> takes_part;  // by rank
  std::uint64_t tiling_key = 0;
  std::vector<std::string> phases;  // what the kernel's phases are called, from 0
};

struct ProgramCheck {
  std::size_t buffer = 0;
  std::variant<RankValue, ProgramBuffer::File> expected;
  std::optional<double> relative, absolute;  // tolerances; nothing: equal
  std::uint64_t count = 0;                   // of its first elements
};
struct ProgramResult {
  std::size_t buffer = 0;
  std::string path;  // {rank} stands for the rank
};

struct ProgramFile {
  std::string folder;     // paths of kernels and inputs are relative to it
  std::vector<int> dies;  // of rank 0, 1, ...
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramStruct> structs;
  std::vector<ProgramContext> contexts;
  std::vector<ProgramLaunch> launches;
  std::vector<ProgramCheck> checks;
  std::vector<ProgramResult> results;

  int ranks() const { return static_cast<int>(dies.size()); }
  std::string input(std::string_view path, int rank) const;
  // Kernels, and what buffers and checks take from files.
  std::vector<std::string> inputs() const;
};
// The path of a rank's file: {rank} replaced.
std::string path_of_rank(std::string_view path, int rank);

// Throws InputError, one line with file, line and key.
ProgramFile read_program(const std::string& path);

}  // namespace cm384::studies
