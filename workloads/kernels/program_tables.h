// What the file of `cm384 run program` may hold, table by table (docs/programs.md).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/text/toml_file.h"
#include "firmware/abi/program.h"
#include "workloads/frame/options.h"

namespace cm384::studies::program_tables {

using hw::Required;
using hw::TomlNode;
using hw::TomlPlace;

inline constexpr std::int64_t kMostElements = std::int64_t{1} << 36;
inline constexpr std::int64_t kMostWhole = std::numeric_limits<std::int64_t>::max();

struct BufferTable {
  std::string name, type;
  TomlNode shape, fill;
  bool payload = false;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the buffer", Required{});
    visit("type", self.type,
          OneOf{{"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"}},
          "of its elements", Required{});
    visit("shape", self.shape, "a number of elements, or a list of such", Required{});
    visit("fill", self.fill, "a value, { file }, { range } or { random }");
    visit("payload", self.payload, "in payload mode control its bytes are not kept");
  }
};

struct FileTable {
  std::string file;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, "of raw elements, or .npy; {rank} stands for the rank", Required{});
  }
};

struct RangeTable {
  TomlNode range;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("range", self.range, "[first, step]", Required{});
  }
};

struct RandomTable {
  std::string random;
  double low = 0, high = 1;
  std::int64_t seed = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("random", self.random, OneOf{{"uniform"}}, "how it is drawn", Required{});
    visit("low", self.low, "the least");
    visit("high", self.high, "what floats stay below, integers reach");
    visit("seed", self.seed, Range{std::int64_t{0}, kMostWhole}, "of the draw");
  }
};

struct PointerTable {
  std::string buffer;
  std::int64_t offset = 0;
  TomlNode rank;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("buffer", self.buffer, "by name", Required{});
    visit("offset", self.offset, Range{std::int64_t{0}, kMostWhole}, "bytes from its beginning");
    visit("rank", self.rank, "of whose buffer; default: the own");
  }
};

struct AddressesTable {
  std::string table;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("table", self.table, "a buffer, whose addresses are meant, rank after rank", Required{});
  }
};

struct StructTable {
  std::string name;
  TomlNode fields;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the struct", Required{});
    visit("fields", self.fields, "in their order", Required{});
  }
};

struct ContextTable {
  int group = 0;
  std::string window_in, window_out, window_exp;
  TomlNode members;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("group", self.group, Range{0, CM384_PROGRAM_CONTEXTS - 1}, "that GetHcclContext names");
    visit("window_in", self.window_in, "a buffer");
    visit("window_out", self.window_out, "a buffer");
    visit("window_exp", self.window_exp, "a buffer");
    visit("members", self.members, "lists of ranks, each a group of its own; without it all ranks are one");
  }
};

struct LaunchTable {
  std::string name, kernel;
  int blocks = 1;
  std::int64_t tiling_key = 0;
  TomlNode arguments, ranks;
  hw::Texts phases;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "default: that of the kernel's file");
    visit("kernel", self.kernel, "an ELF file", Required{});
    visit("blocks", self.blocks, Range{1, 65'535}, "that run it", Required{});
    visit("tiling_key", self.tiling_key, Range{std::int64_t{0}, kMostWhole}, "as the kernel reads it");
    visit("arguments", self.arguments, "of the kernel");
    visit("ranks", self.ranks, "that take part; default: all");
    visit("phases", self.phases, "what the kernel's phases are called");
  }
};

struct CheckTable {
  std::string buffer;
  TomlNode equal, close;
  double relative = 0, absolute = 0;
  std::int64_t count = 0;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("buffer", self.buffer, "by name", Required{});
    visit("equal", self.equal, "a value or a file");
    visit("close", self.close, "the same, within tolerances");
    visit("rtol", self.relative, Range{0.0, hw::kNoLimit}, "of the value");
    visit("atol", self.absolute, Range{0.0, hw::kNoLimit}, "whatever the value");
    visit("count", self.count, Range{std::int64_t{1}, kMostElements}, "of its first elements; default: all");
  }
};

struct SaveTable {
  std::string buffer, file;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("buffer", self.buffer, "by name", Required{});
    visit("file", self.file, "{rank} stands for the rank", Required{});
  }
};

struct ProgramTable {
  int ranks = 0;
  hw::Integers dies;
  std::vector<BufferTable> buffers;
  std::vector<StructTable> structs;
  std::vector<ContextTable> contexts;
  std::vector<LaunchTable> launches;
  std::vector<CheckTable> checks;
  std::vector<SaveTable> saves;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("ranks", self.ranks, Range{1, kMostRanks}, "on dies 0, 1, ..");
    visit("dies", self.dies, Range{0, kMostRanks - 1}, "of rank 0, 1, ..");
    visit("buffer", self.buffers);
    visit("struct", self.structs);
    visit("context", self.contexts);
    visit("launch", self.launches);
    visit("check", self.checks);
    visit("save", self.saves);
  }
};

}  // namespace cm384::studies::program_tables
