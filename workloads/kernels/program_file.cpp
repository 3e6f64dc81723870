#include "workloads/kernels/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "npu_core/die/launch.h"
#include "workloads/kernels/program_tables.h"

namespace cm384::studies {
namespace {

using hw::TomlPlace;
using namespace program_tables;

// The program of the tables: names and values of a form of their own.
class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : file_(text, path) {
    ProgramTable table;
    file_.read(table);
    program_.folder = std::filesystem::path(path).parent_path().string();
    read_dies(table);
    for (const BufferTable& t : table.buffers) read_buffer(t);
    for (const StructTable& t : table.structs) read_struct(t);
    for (const ContextTable& t : table.contexts) read_context(t);
    for (const LaunchTable& t : table.launches) read_launch(t);
    for (const CheckTable& t : table.checks) read_check(t);
    for (const SaveTable& t : table.saves) read_save(t);
    if (program_.launches.empty()) table.place.refuse("launch", "is missing: nothing to run");
  }
  ProgramFile program() && { return std::move(program_); }

 private:
  std::int64_t whole(const toml::node& node, std::string_view key, std::int64_t low,
                     std::int64_t high) const {
    const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
    if (!value || *value < low || *value > high)
      file_.refuse(node, key, fmt::format("allowed: a whole number, {} to {}", low, high));
    return *value;
  }

  void read_dies(const ProgramTable& table) {
    if (!table.place.has("dies")) {
      if (!table.place.has("ranks"))
        table.place.refuse("ranks",
                           fmt::format("is missing; allowed: a whole number from 1 to {}", kMostRanks));
      program_.dies.resize(static_cast<std::size_t>(table.ranks));
      std::iota(program_.dies.begin(), program_.dies.end(), 0);
      return;
    }
    if (table.place.has("ranks"))
      table.place.refuse("dies", "given together with ranks; allowed: one of the two");
    if (table.dies.empty()) table.place.refuse("dies", "allowed: a list of dies");
    for (const int die : table.dies) {
      if (std::ranges::find(program_.dies, die) != program_.dies.end())
        table.place.refuse("dies", fmt::format("die {} is listed twice", die));
      program_.dies.push_back(die);
    }
  }

  // A new name, used by nothing else.
  const std::string& fresh_name(const TomlPlace& place, const std::string& name) const {
    if (buffer_named(name) || struct_named(name)) place.refuse("name", fmt::format("\"{}\" is taken", name));
    return name;
  }
  std::optional<std::size_t> buffer_named(std::string_view name) const {
    const auto found = std::ranges::find(program_.buffers, name, &ProgramBuffer::name);
    if (found == program_.buffers.end()) return {};
    return static_cast<std::size_t>(found - program_.buffers.begin());
  }
  std::optional<std::size_t> struct_named(std::string_view name) const {
    const auto found = std::ranges::find(program_.structs, name, &ProgramStruct::name);
    if (found == program_.structs.end()) return {};
    return static_cast<std::size_t>(found - program_.structs.begin());
  }
  std::string no_such(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& buffer : program_.buffers) names.push_back(buffer.name);
    for (const auto& each : program_.structs) names.push_back(each.name);
    return fmt::format("\"{}\" is not a buffer{}", name, hw::suggestion(name, names));
  }
  std::size_t buffer(const TomlPlace& place, std::string_view key, const std::string& name) const {
    const auto number = buffer_named(name);
    if (!number) place.refuse(key, no_such(name));
    return *number;
  }

  RankValue rank_value(const toml::node& node, std::string_view key) const {
    if (node.is_integer()) return RankValue(*node.value<std::int64_t>());
    if (node.is_floating_point()) return RankValue(*node.value<double>());
    if (node.is_string() && *node.value<std::string>() == "rank") return RankValue(RankValue::Name::rank);
    if (node.is_string() && *node.value<std::string>() == "ranks") return RankValue(RankValue::Name::ranks);
    if (!node.is_array()) file_.refuse(node, key, "allowed: a number, \"rank\", \"ranks\" or a list by rank");
    const toml::array& list = *node.as_array();
    if (list.size() != program_.dies.size())
      file_.refuse(node, key, fmt::format("{} numbers for {} ranks", list.size(), program_.dies.size()));
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    for (const toml::node& entry : list) {
      if (!entry.is_number()) file_.refuse(entry, key, "allowed: numbers");
      if (entry.is_integer()) integers.push_back(*entry.value<std::int64_t>());
      reals.push_back(*entry.value<double>());
    }
    if (integers.size() == reals.size()) return RankValue(std::move(integers));
    return RankValue(std::move(reals));
  }

  void read_buffer(const BufferTable& table) {
    ProgramBuffer buffer;
    buffer.name = fresh_name(table.place, table.name);
    buffer.type = *element_type(table.type);
    const toml::node& shape = *table.shape;
    if (shape.is_array()) {
      for (const toml::node& n : *shape.as_array())
        buffer.shape.push_back(static_cast<std::uint64_t>(whole(n, "shape", 1, kMostElements)));
    } else {
      buffer.shape = {static_cast<std::uint64_t>(whole(shape, "shape", 1, kMostElements))};
    }
    double size = static_cast<double>(bytes_of(buffer.type));
    for (const std::uint64_t n : buffer.shape) size *= static_cast<double>(n);
    if (size > static_cast<double>(kMostElements)) file_.refuse(shape, "shape", "more than a die's 64 GiB");
    buffer.payload = table.payload;
    if (const toml::node* fill = table.fill.node) {
      buffer.filled = true;
      read_fill(*fill, buffer);
      if (const auto* value = std::get_if<RankValue>(&buffer.fill))
        check_fits(*fill, "fill", buffer.type, *value);
      if (const auto* range = std::get_if<ProgramBuffer::Range>(&buffer.fill)) {
        check_fits(*fill, "range", buffer.type, range->first);
        try {
          check_fits(*fill, "range", buffer.type, range->at(buffer.count() - 1));
        } catch (const InputError& error) {
          file_.refuse(*fill, "range", error.what());
        }
      }
      if (const auto* random = std::get_if<ProgramBuffer::Random>(&buffer.fill)) {
        check_fits(*fill, "low", buffer.type, random->low);
        check_fits(*fill, "high", buffer.type, random->high);
      }
    }
    program_.buffers.push_back(std::move(buffer));
  }
  // A number that an integer type cannot hold.
  void check_fits(const toml::node& node, std::string_view key, ElementType type, const Number& value) const {
    if (!fits(value, type))
      file_.refuse(node, key, fmt::format("{} does not fit {}", text_of(value), name_of(type)));
  }
  void check_fits(const toml::node& node, std::string_view key, ElementType type,
                  const RankValue& value) const {
    for (int rank = 0; rank < program_.ranks(); ++rank)
      check_fits(node, key, type, value.number(rank, program_.ranks()));
  }
  void read_fill(const toml::node& node, ProgramBuffer& buffer) const {
    if (!node.is_table()) {
      buffer.fill = rank_value(node, "fill");
      return;
    }
    const toml::table& table = *node.as_table();
    if (table.contains("file")) {
      buffer.fill = ProgramBuffer::File{read<FileTable>(table).file};
    } else if (table.contains("range")) {
      const toml::array* range = (*read<RangeTable>(table).range).as_array();
      if (range == nullptr || range->size() != 2 || !range->is_homogeneous() || !(*range)[0].is_number())
        file_.refuse(node, "range", "allowed: [first, step]");
      const bool whole = (*range)[0].is_integer() && !is_float(buffer.type);
      if (whole) {
        buffer.fill =
            ProgramBuffer::Range{*(*range)[0].value<std::int64_t>(), *(*range)[1].value<std::int64_t>()};
      } else {
        buffer.fill = ProgramBuffer::Range{*(*range)[0].value<double>(), *(*range)[1].value<double>()};
      }
    } else {
      const auto random = read<RandomTable>(table);
      if (!(random.low < random.high)) file_.refuse(node, "low", "allowed: below high");
      buffer.fill = ProgramBuffer::Random{random.low, random.high, static_cast<std::uint64_t>(random.seed)};
    }
  }
  template <class Table>
  Table read(const toml::table& table) const {
    Table made;
    file_.read(table, made);
    return made;
  }

  ProgramPointer pointer(const toml::table& at) const {
    const auto table = read<PointerTable>(at);
    ProgramPointer to;
    to.buffer = buffer(table.place, "buffer", table.buffer);
    to.offset = static_cast<std::uint64_t>(table.offset);
    if (to.offset > program_.buffers[to.buffer].bytes())
      table.place.refuse(
          "offset", fmt::format("allowed: a whole number, 0 to {}", program_.buffers[to.buffer].bytes()));
    if (const toml::node* rank = table.rank.node) {
      to.rank = rank_value(*rank, "rank");
      for (int r = 0; r < program_.ranks(); ++r) {
        if (!to.rank->is_whole() || to.rank->whole(r, program_.ranks()) < 0 ||
            to.rank->whole(r, program_.ranks()) >= program_.ranks())
          file_.refuse(*rank, "rank", fmt::format("allowed: 0 to {}", program_.ranks() - 1));
      }
    }
    return to;
  }

  // Fields in their order with C's alignment: {u32 = 5}, {u64 = {buffer = "x"}}, {bytes = 64} of zeros,
  // {align = 8}.
  void read_struct(const StructTable& table) {
    ProgramStruct made;
    made.name = fresh_name(table.place, table.name);
    const toml::node& fields = *table.fields;
    if (!fields.is_array())
      file_.refuse(fields, "fields", "allowed: a list such as [{u32 = 5}, {bytes = 64}]");
    std::uint32_t widest = 1;
    const auto align = [&made](std::uint32_t to) { made.bytes = (made.bytes + to - 1) / to * to; };
    for (const toml::node& node : *fields.as_array()) {
      if (!node.is_table() || node.as_table()->size() != 1)
        file_.refuse(node, "fields", "allowed: one type and its value each, such as {u32 = 5}");
      const auto only = node.as_table()->begin();
      const std::string kind(only->first.str());
      const toml::node& value = only->second;
      if (kind == "bytes" || kind == "align") {
        const auto number = static_cast<std::uint32_t>(whole(value, kind, 1, 1 << 20));
        if (kind == "bytes") {
          made.bytes += number;
        } else {
          align(number);
        }
        continue;
      }
      const auto found = element_type(kind);
      if (!found) file_.refuse(node, kind, "allowed: bytes, align, or a type from i8 to f64");
      const auto bytes = static_cast<std::uint32_t>(bytes_of(*found));
      widest = std::max(widest, bytes);
      align(bytes);
      ProgramStruct::Field field{made.bytes, *found, {}};
      if (value.is_table()) {
        if (*found != ElementType::u64) file_.refuse(value, kind, "an address takes u64");
        field.value = pointer(*value.as_table());
      } else {
        const RankValue number = rank_value(value, kind);
        check_fits(value, kind, *found, number);
        field.value = number;
      }
      made.fields.push_back(std::move(field));
      made.bytes += bytes;
    }
    align(widest);
    program_.structs.push_back(std::move(made));
  }

  // Lists of ranks, none of which is listed twice.
  std::vector<std::vector<int>> groups(const toml::node& node) const {
    std::vector<std::vector<int>> made;
    std::vector<bool> seen(program_.dies.size());
    const toml::array* lists = node.as_array();
    if (lists == nullptr || lists->empty())
      file_.refuse(node, "members", "allowed: lists of ranks, such as [[0, 1], [2, 3]]");
    for (const toml::node& list : *lists) {
      const toml::array* ranks = list.as_array();
      if (ranks == nullptr || ranks->empty())
        file_.refuse(node, "members", "allowed: lists of ranks, such as [[0, 1], [2, 3]]");
      std::vector<int>& group = made.emplace_back();
      for (const toml::node& rank : *ranks) {
        group.push_back(static_cast<int>(whole(rank, "members", 0, program_.ranks() - 1)));
        const auto at = static_cast<std::size_t>(group.back());
        if (seen[at]) file_.refuse(node, "members", fmt::format("rank {} is listed twice", group.back()));
        seen[at] = true;
      }
    }
    return made;
  }

  void read_context(const ContextTable& table) {
    ProgramContext context;
    context.index = static_cast<unsigned>(table.group);
    for (const auto& other : program_.contexts) {
      if (other.index == context.index)
        table.place.refuse("group", fmt::format("group {} has a context already", context.index));
    }
    const auto window = [&](std::string_view key, const std::string& name) {
      return table.place.has(key) ? std::optional(buffer(table.place, key, name)) : std::nullopt;
    };
    context.window_in = window("window_in", table.window_in);
    context.window_out = window("window_out", table.window_out);
    context.window_exp = window("window_exp", table.window_exp);
    if (table.members) {
      context.members = groups(*table.members);
    } else {
      std::vector<int>& all = context.members.emplace_back(program_.dies.size());
      std::iota(all.begin(), all.end(), 0);
    }
    program_.contexts.push_back(context);
  }

  void read_launch(const LaunchTable& table) {
    ProgramLaunch launch;
    launch.kernel = table.kernel;
    launch.name = table.name.empty() ? std::filesystem::path(launch.kernel).stem().string() : table.name;
    launch.blocks = table.blocks;
    launch.tiling_key = static_cast<std::uint64_t>(table.tiling_key);
    launch.takes_part.assign(program_.dies.size(), !table.ranks);
    if (const toml::node* ranks = table.ranks.node) {
      if (!ranks->is_array() || ranks->as_array()->empty())
        file_.refuse(*ranks, "ranks", "allowed: a list of ranks");
      for (const toml::node& rank : *ranks->as_array())
        launch.takes_part[static_cast<std::size_t>(whole(rank, "ranks", 0, program_.ranks() - 1))] = true;
    }
    if (table.phases.size() > npu::kPhases)
      table.place.refuse("phases", fmt::format("allowed: a list of at most {} names", npu::kPhases));
    launch.phases = table.phases;
    if (const toml::node* arguments = table.arguments.node) {
      if (!arguments->is_array() || arguments->as_array()->size() > CM384_PROGRAM_ARGUMENTS)
        file_.refuse(*arguments, "arguments",
                     fmt::format("allowed: a list of at most {}", CM384_PROGRAM_ARGUMENTS));
      for (const toml::node& argument : *arguments->as_array()) read_argument(argument, launch);
    }
    program_.launches.push_back(std::move(launch));
  }
  void read_argument(const toml::node& node, ProgramLaunch& launch) const {
    const auto name = node.value<std::string>();
    if (node.is_string() && *name != "rank" && *name != "ranks") {
      if (const auto number = buffer_named(*name)) {
        launch.arguments.emplace_back(ProgramPointer{*number, 0, {}});
      } else if (const auto which = struct_named(*name)) {
        launch.arguments.emplace_back(ProgramLaunch::Struct{*which});
      } else {
        file_.refuse(node, "arguments", no_such(*name));
      }
    } else if (node.is_table()) {
      const toml::table& table = *node.as_table();
      if (table.contains("table")) {
        const auto addresses = read<AddressesTable>(table);
        launch.arguments.emplace_back(
            ProgramLaunch::Table{buffer(addresses.place, "table", addresses.table)});
      } else {
        launch.arguments.emplace_back(pointer(table));
      }
    } else {
      launch.arguments.emplace_back(rank_value(node, "arguments"));
    }
  }

  void read_check(const CheckTable& table) {
    ProgramCheck check;
    check.buffer = buffer(table.place, "buffer", table.buffer);
    const bool close = static_cast<bool>(table.close);
    if (close == static_cast<bool>(table.equal))
      table.place.refuse("equal", "allowed: one of equal and close");
    const std::string_view key = close ? "close" : "equal";
    const toml::node& expected = close ? *table.close : *table.equal;
    if (expected.is_string() && !expected.value<std::string>()->starts_with("rank")) {
      check.expected = ProgramBuffer::File{*expected.value<std::string>()};
    } else {
      check.expected = rank_value(expected, key);
    }
    if (close) {
      check.relative = table.relative;
      check.absolute = table.absolute;
    } else if (table.place.has("rtol") || table.place.has("atol")) {
      table.place.refuse("rtol", "has an effect only with close");
    }
    const std::uint64_t all = program_.buffers[check.buffer].count();
    check.count = table.place.has("count") ? static_cast<std::uint64_t>(table.count) : all;
    if (check.count > all) table.place.refuse("count", fmt::format("allowed: a whole number, 1 to {}", all));
    program_.checks.push_back(std::move(check));
  }

  void read_save(const SaveTable& table) {
    ProgramResult result{buffer(table.place, "buffer", table.buffer), table.file};
    if (program_.ranks() > 1 && result.path.find("{rank}") == std::string::npos)
      table.place.refuse("file", "has no {rank}: all ranks would write one file");
    program_.results.push_back(std::move(result));
  }

  hw::TomlFile file_;
  ProgramFile program_;
};

}  // namespace

ProgramFile read_program(const std::string& path) {
  return Reader(read_input(path, kLargestText), path).program();
}

}  // namespace cm384::studies
