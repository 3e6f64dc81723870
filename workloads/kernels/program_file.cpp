#include "workloads/kernels/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"
#include "firmware/abi/program.h"
#include "npu_core/die/launch.h"
#include "workloads/frame/options.h"

namespace cm384::studies {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : file_(text, path) {
    program_.folder = std::filesystem::path(path).parent_path().string();
    file_.check_keys(file_.root(),
                     {"ranks", "dies", "buffer", "struct", "context", "launch", "check", "save"});
    take_dies();
    for (const toml::table* t : file_.tables("buffer")) take_buffer(*t);
    for (const toml::table* t : file_.tables("struct")) take_struct(*t);
    for (const toml::table* t : file_.tables("context")) take_context(*t);
    for (const toml::table* t : file_.tables("launch")) take_launch(*t);
    for (const toml::table* t : file_.tables("check")) take_check(*t);
    for (const toml::table* t : file_.tables("save")) take_result(*t);
    if (program_.launches.empty()) file_.refuse(file_.root(), "launch", "is missing: nothing to run");
  }
  ProgramFile program() && { return std::move(program_); }

 private:
  const toml::node& required(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) file_.refuse(table, key, "is missing");
    return *node;
  }
  std::int64_t whole(const toml::node& node, std::string_view key, std::int64_t low,
                     std::int64_t high) const {
    const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
    if (!value || *value < low || *value > high)
      file_.refuse(node, key, fmt::format("allowed: a whole number, {} to {}", low, high));
    return *value;
  }
  std::int64_t whole_or(const toml::table& table, std::string_view key, std::int64_t low, std::int64_t high,
                        std::int64_t fallback) const {
    const toml::node* node = table.get(key);
    return node == nullptr ? fallback : whole(*node, key, low, high);
  }
  double real(const toml::table& table, std::string_view key, double fallback) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return fallback;
    if (!node->is_number()) file_.refuse(*node, key, "allowed: a number");
    return *node->value<double>();
  }

  void take_dies() {
    const toml::table& root = file_.root();
    if (const toml::node* dies = root.get("dies")) {
      if (root.get("ranks") != nullptr) file_.refuse(*dies, "dies", "beside ranks; allowed: one of them");
      if (!dies->is_array() || dies->as_array()->empty())
        file_.refuse(*dies, "dies", "allowed: a list of dies");
      for (const toml::node& die : *dies->as_array()) {
        const int number = static_cast<int>(whole(die, "dies", 0, kMostRanks - 1));
        if (std::ranges::find(program_.dies, number) != program_.dies.end())
          file_.refuse(die, "dies", fmt::format("die {} stands there twice", number));
        program_.dies.push_back(number);
      }
      return;
    }
    program_.dies.resize(static_cast<std::size_t>(whole(required(root, "ranks"), "ranks", 1, kMostRanks)));
    std::iota(program_.dies.begin(), program_.dies.end(), 0);
  }

  // A new name, used by nothing else.
  std::string fresh_name(const toml::table& table) const {
    std::string name = file_.text(table, "name");
    if (buffer_named(name) || struct_named(name))
      file_.refuse(*table.get("name"), "name", fmt::format("\"{}\" is taken", name));
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
  [[noreturn]] void no_such(const toml::node& node, std::string_view key, const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& buffer : program_.buffers) names.push_back(buffer.name);
    for (const auto& each : program_.structs) names.push_back(each.name);
    file_.refuse(node, key, fmt::format("\"{}\" is no buffer{}", name, hw::suggestion(name, names)));
  }
  std::size_t buffer(const toml::table& table, std::string_view key) const {
    const std::string name = file_.text(table, key);
    const auto number = buffer_named(name);
    if (!number) no_such(*table.get(key), key, name);
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

  void take_buffer(const toml::table& table) {
    file_.check_keys(table, {"name", "type", "shape", "fill", "payload"});
    ProgramBuffer buffer;
    buffer.name = fresh_name(table);
    buffer.type = type(required(table, "type"), "type");
    const toml::node& shape = required(table, "shape");
    constexpr std::int64_t kMost = std::int64_t{1} << 36;
    if (shape.is_array()) {
      for (const toml::node& n : *shape.as_array())
        buffer.shape.push_back(static_cast<std::uint64_t>(whole(n, "shape", 1, kMost)));
    } else {
      buffer.shape = {static_cast<std::uint64_t>(whole(shape, "shape", 1, kMost))};
    }
    double size = static_cast<double>(bytes_of(buffer.type));
    for (const std::uint64_t n : buffer.shape) size *= static_cast<double>(n);
    if (size > static_cast<double>(kMost)) file_.refuse(shape, "shape", "more than a die's 64 GiB");
    buffer.payload = file_.boolean(table, "payload", false);
    if (const toml::node* fill = table.get("fill")) {
      buffer.filled = true;
      take_fill(*fill, buffer);
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
  void take_fill(const toml::node& node, ProgramBuffer& buffer) const {
    if (!node.is_table()) {
      buffer.fill = rank_value(node, "fill");
      return;
    }
    const toml::table& table = *node.as_table();
    if (table.get("file") != nullptr) {
      file_.check_keys(table, {"file"});
      buffer.fill = ProgramBuffer::File{file_.text(table, "file")};
    } else if (table.get("range") != nullptr) {
      file_.check_keys(table, {"range"});
      const toml::array* range = table.get("range")->as_array();
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
      file_.check_keys(table, {"random", "low", "high", "seed"});
      if (file_.text(table, "random") != "uniform")
        file_.refuse(*table.get("random"), "random", "allowed: \"uniform\"");
      ProgramBuffer::Random random{real(table, "low", 0), real(table, "high", 1),
                                   static_cast<std::uint64_t>(whole_or(
                                       table, "seed", 0, std::numeric_limits<std::int64_t>::max(), 1))};
      if (!(random.low < random.high)) file_.refuse(node, "low", "allowed: below high");
      buffer.fill = random;
    }
  }
  ElementType type(const toml::node& node, std::string_view key) const {
    const auto name = node.value<std::string>();
    const auto found = name ? element_type(*name) : std::nullopt;
    if (!found) file_.refuse(node, key, "allowed: i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64");
    return *found;
  }

  ProgramPointer pointer(const toml::table& table) const {
    file_.check_keys(table, {"buffer", "offset", "rank"});
    ProgramPointer to;
    to.buffer = buffer(table, "buffer");
    to.offset = static_cast<std::uint64_t>(
        whole_or(table, "offset", 0, static_cast<std::int64_t>(program_.buffers[to.buffer].bytes()), 0));
    if (const toml::node* rank = table.get("rank")) {
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
  void take_struct(const toml::table& table) {
    file_.check_keys(table, {"name", "fields"});
    ProgramStruct made;
    made.name = fresh_name(table);
    const toml::node& fields = required(table, "fields");
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

  void take_context(const toml::table& table) {
    file_.check_keys(table, {"group", "window_in", "window_out", "window_exp"});
    ProgramContext context;
    context.index = static_cast<unsigned>(whole_or(table, "group", 0, CM384_PROGRAM_CONTEXTS - 1, 0));
    for (const auto& other : program_.contexts) {
      if (other.index == context.index)
        file_.refuse(table, "group", fmt::format("group {} has a context already", context.index));
    }
    if (table.get("window_in") != nullptr) context.window_in = buffer(table, "window_in");
    if (table.get("window_out") != nullptr) context.window_out = buffer(table, "window_out");
    if (table.get("window_exp") != nullptr) context.window_exp = buffer(table, "window_exp");
    program_.contexts.push_back(context);
  }

  void take_launch(const toml::table& table) {
    file_.check_keys(table, {"name", "kernel", "blocks", "arguments", "ranks", "tiling_key", "phases"});
    ProgramLaunch launch;
    launch.kernel = file_.text(table, "kernel");
    launch.name = table.get("name") != nullptr ? file_.text(table, "name")
                                               : std::filesystem::path(launch.kernel).stem().string();
    launch.blocks = static_cast<int>(whole(required(table, "blocks"), "blocks", 1, 64));
    launch.tiling_key = static_cast<std::uint64_t>(
        whole_or(table, "tiling_key", 0, std::numeric_limits<std::int64_t>::max(), 0));
    launch.takes_part.assign(program_.dies.size(), table.get("ranks") == nullptr);
    if (const toml::node* ranks = table.get("ranks")) {
      if (!ranks->is_array() || ranks->as_array()->empty())
        file_.refuse(*ranks, "ranks", "allowed: a list of ranks");
      for (const toml::node& rank : *ranks->as_array())
        launch.takes_part[static_cast<std::size_t>(whole(rank, "ranks", 0, program_.ranks() - 1))] = true;
    }
    if (const toml::node* phases = table.get("phases")) {
      if (!phases->is_array() || phases->as_array()->size() > npu::kPhases)
        file_.refuse(*phases, "phases", fmt::format("allowed: a list of at most {} names", npu::kPhases));
      for (const toml::node& phase : *phases->as_array()) {
        if (!phase.is_string()) file_.refuse(phase, "phases", "allowed: names");
        launch.phases.push_back(*phase.value<std::string>());
      }
    }
    if (const toml::node* arguments = table.get("arguments")) {
      if (!arguments->is_array() || arguments->as_array()->size() > CM384_PROGRAM_ARGUMENTS)
        file_.refuse(*arguments, "arguments",
                     fmt::format("allowed: a list of at most {}", CM384_PROGRAM_ARGUMENTS));
      for (const toml::node& argument : *arguments->as_array()) take_argument(argument, launch);
    }
    program_.launches.push_back(std::move(launch));
  }
  void take_argument(const toml::node& node, ProgramLaunch& launch) const {
    const auto name = node.value<std::string>();
    if (node.is_string() && *name != "rank" && *name != "ranks") {
      if (const auto number = buffer_named(*name)) {
        launch.arguments.emplace_back(ProgramPointer{*number, 0, {}});
      } else if (const auto which = struct_named(*name)) {
        launch.arguments.emplace_back(ProgramLaunch::Struct{*which});
      } else {
        no_such(node, "arguments", *name);
      }
    } else if (node.is_table()) {
      const toml::table& table = *node.as_table();
      if (table.get("table") != nullptr) {
        file_.check_keys(table, {"table"});
        launch.arguments.emplace_back(ProgramLaunch::Table{buffer(table, "table")});
      } else {
        launch.arguments.emplace_back(pointer(table));
      }
    } else {
      RankValue value = rank_value(node, "arguments");
      if (!value.is_whole()) file_.refuse(node, "arguments", "allowed: whole numbers and addresses");
      launch.arguments.emplace_back(std::move(value));
    }
  }

  void take_check(const toml::table& table) {
    file_.check_keys(table, {"buffer", "equal", "close", "rtol", "atol", "count"});
    ProgramCheck check;
    check.buffer = buffer(table, "buffer");
    const bool close = table.get("close") != nullptr;
    if (close == (table.get("equal") != nullptr))
      file_.refuse(table, "equal", "allowed: one of equal and close");
    const std::string_view key = close ? "close" : "equal";
    const toml::node& expected = *table.get(key);
    if (expected.is_string() && !expected.value<std::string>()->starts_with("rank")) {
      check.expected = ProgramBuffer::File{*expected.value<std::string>()};
    } else {
      check.expected = rank_value(expected, key);
    }
    if (close) {
      check.relative = file_.real(table, "rtol", 0);
      check.absolute = file_.real(table, "atol", 0);
    } else if (table.get("rtol") != nullptr || table.get("atol") != nullptr) {
      file_.refuse(table, "rtol", "has an effect only with close");
    }
    const auto all = static_cast<std::int64_t>(program_.buffers[check.buffer].count());
    check.count = static_cast<std::uint64_t>(whole_or(table, "count", 1, all, all));
    program_.checks.push_back(std::move(check));
  }

  void take_result(const toml::table& table) {
    file_.check_keys(table, {"buffer", "file"});
    ProgramResult result{buffer(table, "buffer"), file_.text(table, "file")};
    if (program_.ranks() > 1 && result.path.find("{rank}") == std::string::npos)
      file_.refuse(*table.get("file"), "file", "has no {rank}: all ranks would write one file");
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
