#include "workloads/kernels/program_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "base/text/error.h"
#include "base/text/input_file.h"

namespace cm384::studies {
namespace {

// NumPy has no bf16: its bits come as u16.
bool holds(const Array& array, ElementType type) {
  return array.type == type || (array.type == ElementType::u16 && type == ElementType::bf16);
}
InputError wrong_type(const std::string& path, const Array& array, const ProgramBuffer& buffer) {
  return InputError(fmt::format("{}: elements of type {}, {} has {}", path, name_of(array.type), buffer.name,
                                name_of(buffer.type)));
}

std::vector<std::byte> file_content(const ProgramBuffer& buffer, const std::string& path) {
  std::vector<std::byte> bytes;
  if (path.ends_with(".npy")) {
    Array array = read_npy(path);
    if (!holds(array, buffer.type)) throw wrong_type(path, array, buffer);
    bytes = std::move(array.bytes);
  } else {
    const std::string text = read_input(path, buffer.bytes() + 1);
    const auto* const first = reinterpret_cast<const std::byte*>(text.data());
    bytes.assign(first, first + text.size());
  }
  if (bytes.size() != buffer.bytes())
    throw InputError(fmt::format("{}: its size is not the {} B of {}", path, buffer.bytes(), buffer.name));
  return bytes;
}

}  // namespace

std::vector<std::byte> content_of(const ProgramFile& program, const ProgramBuffer& buffer, int rank) {
  if (const auto* file = std::get_if<ProgramBuffer::File>(&buffer.fill))
    return file_content(buffer, program.input(file->path, rank));
  std::vector<std::byte> bytes(buffer.bytes());
  const std::uint64_t count = buffer.count();
  const auto put = [&](std::uint64_t n, const Number& value) { write_number(bytes, buffer.type, n, value); };
  if (const auto* value = std::get_if<RankValue>(&buffer.fill)) {
    const Number number = value->number(rank, program.ranks());
    for (std::uint64_t n = 0; n < count; ++n) put(n, number);
  } else if (const auto* range = std::get_if<ProgramBuffer::Range>(&buffer.fill)) {
    for (std::uint64_t n = 0; n < count; ++n) put(n, range->at(n));
  } else {
    const auto& random = std::get<ProgramBuffer::Random>(buffer.fill);
    std::seed_seq seed{random.seed & 0xffffffff, random.seed >> 32, static_cast<std::uint64_t>(rank)};
    std::mt19937_64 draw(seed);
    // The library's distributions may differ from one to the next.
    const double span = random.high - random.low + (is_float(buffer.type) ? 0 : 1);
    for (std::uint64_t n = 0; n < count; ++n) {
      const double drawn = random.low + static_cast<double>(draw() >> 11) * 0x1p-53 * span;
      put(n, is_float(buffer.type) ? drawn : std::min(std::floor(drawn), random.high));
    }
  }
  return bytes;
}

Array expected_array(const ProgramFile& program, const std::string& path, int rank,
                     const ProgramCheck& check) {
  const ProgramBuffer& buffer = program.buffers[check.buffer];
  const std::string name = program.input(path, rank);
  Array array = read_npy(name);
  const std::uint64_t count = array.bytes.size() / bytes_of(array.type);
  if (count < check.count)
    throw InputError(
        fmt::format("{}: {} elements; the check of {} looks at {}", name, count, buffer.name, check.count));
  if (holds(array, buffer.type)) array.type = buffer.type;
  if (!check.relative && array.type != buffer.type) throw wrong_type(name, array, buffer);
  return array;
}

Number RankValue::number(int rank, int ranks) const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* list = std::get_if<std::vector<double>>(&value_))
    return (*list)[static_cast<std::size_t>(rank)];
  return whole(rank, ranks);
}
Number ProgramBuffer::Range::at(std::uint64_t n) const {
  const auto* const from = std::get_if<std::int64_t>(&first);
  if (from == nullptr) return to_double(first) + to_double(step) * static_cast<double>(n);
  std::int64_t way = 0, value = 0;
  if (!std::in_range<std::int64_t>(n) ||
      __builtin_mul_overflow(std::get<std::int64_t>(step), static_cast<std::int64_t>(n), &way) ||
      __builtin_add_overflow(*from, way, &value))
    throw InputError(fmt::format("range: element {} is beyond 64 bits", n));
  return value;
}
std::int64_t RankValue::whole(int rank, int ranks) const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  if (const auto* name = std::get_if<Name>(&value_)) return *name == Name::rank ? rank : ranks;
  return std::get<std::vector<std::int64_t>>(value_)[static_cast<std::size_t>(rank)];
}
bool RankValue::is_whole() const {
  return !std::holds_alternative<double>(value_) && !std::holds_alternative<std::vector<double>>(value_);
}

std::uint64_t ProgramBuffer::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::string path_of_rank(std::string_view path, int rank) {
  constexpr std::string_view kRank = "{rank}";
  std::string text(path);
  for (std::size_t at = text.find(kRank); at != std::string::npos; at = text.find(kRank))
    text.replace(at, kRank.size(), std::to_string(rank));
  return text;
}
std::string ProgramFile::input(std::string_view path, int rank) const {
  return (std::filesystem::path(folder) / path_of_rank(path, rank)).string();
}

std::vector<std::string> ProgramFile::inputs() const {
  std::vector<std::string> paths;
  const auto take = [&](std::string_view path) {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (std::string name = input(path, rank); std::ranges::find(paths, name) == paths.end())
        paths.push_back(std::move(name));
    }
  };
  for (const ProgramLaunch& launch : launches) take(launch.kernel);
  for (const ProgramBuffer& buffer : buffers) {
    if (const auto* file = std::get_if<ProgramBuffer::File>(&buffer.fill)) take(file->path);
  }
  for (const ProgramCheck& check : checks) {
    if (const auto* file = std::get_if<ProgramBuffer::File>(&check.expected)) take(file->path);
  }
  return paths;
}

std::shared_ptr<const npu::ElfImage> read_kernel(const std::string& path, const ProgramLaunch& launch) {
  auto image = npu::ElfImage::read(path);
  if (!image->takes_arguments())
    throw InputError(fmt::format("{}: has no function marked __global__; `cm384 run kernel` runs it", path));
  const auto parameters = image->kernel_parameters();
  if (parameters && parameters->size() != launch.arguments.size())
    throw InputError(fmt::format("{}: takes {} arguments ({}); launch {} gives {}", path, parameters->size(),
                                 fmt::join(*parameters, ", "), launch.name, launch.arguments.size()));
  const std::uint64_t floats = image->symbol("cm384_float_arguments").value_or(0);
  for (std::size_t n = 0; n < launch.arguments.size(); ++n) {
    const auto* const value = std::get_if<RankValue>(&launch.arguments[n]);
    const bool wants = (floats >> n & 1) != 0, is = value != nullptr && !value->is_whole();
    if (wants == is) continue;
    throw InputError(fmt::format("{}: argument {}{} of launch {} is {}", path, n,
                                 parameters ? " (" + (*parameters)[n] + ")" : "", launch.name,
                                 wants ? "a float: write it with a point, as 3.0" : "not a float"));
  }
  return image;
}

}  // namespace cm384::studies
