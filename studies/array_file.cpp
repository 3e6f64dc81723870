#include "studies/array_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>

#include "hw/error.h"
#include "npu_core/vector/numeric.h"

namespace cm384::studies {
namespace {

struct Kind {
  std::string_view name;
  std::string_view numpy;
  std::size_t bytes;
};
constexpr std::array<Kind, 12> kKinds{{{"i8", "|i1", 1},
                                       {"u8", "|u1", 1},
                                       {"i16", "<i2", 2},
                                       {"u16", "<u2", 2},
                                       {"i32", "<i4", 4},
                                       {"u32", "<u4", 4},
                                       {"i64", "<i8", 8},
                                       {"u64", "<u8", 8},
                                       {"f16", "<f2", 2},
                                       {"bf16", "<u2", 2},
                                       {"f32", "<f4", 4},
                                       {"f64", "<f8", 8}}};

const Kind& kind(ElementType type) {
  return kKinds[static_cast<std::size_t>(type)];
}

template <class T>
T load(std::span<const std::byte> array, std::size_t index) {
  T value;
  std::memcpy(&value, array.data() + index * sizeof value, sizeof value);
  return value;
}
template <class T>
void store(std::span<std::byte> array, std::size_t index, T value) {
  std::memcpy(array.data() + index * sizeof value, &value, sizeof value);
}

}  // namespace

std::optional<ElementType> element_type(std::string_view name) {
  for (std::size_t n = 0; n < kKinds.size(); ++n) {
    if (kKinds[n].name == name) return static_cast<ElementType>(n);
  }
  return {};
}
std::string_view name_of(ElementType type) {
  return kind(type).name;
}
std::size_t bytes_of(ElementType type) {
  return kind(type).bytes;
}
bool is_float(ElementType type) {
  return type >= ElementType::f16;
}

double number_at(std::span<const std::byte> array, ElementType type, std::size_t index) {
  switch (type) {
    case ElementType::i8:
      return load<std::int8_t>(array, index);
    case ElementType::u8:
      return load<std::uint8_t>(array, index);
    case ElementType::i16:
      return load<std::int16_t>(array, index);
    case ElementType::u16:
      return load<std::uint16_t>(array, index);
    case ElementType::i32:
      return load<std::int32_t>(array, index);
    case ElementType::u32:
      return load<std::uint32_t>(array, index);
    case ElementType::i64:
      return static_cast<double>(load<std::int64_t>(array, index));
    case ElementType::u64:
      return static_cast<double>(load<std::uint64_t>(array, index));
    case ElementType::f16:
      return npu::f16_to_f32(load<std::uint16_t>(array, index));
    case ElementType::bf16:
      return npu::bf16_to_f32(load<std::uint16_t>(array, index));
    case ElementType::f32:
      return load<float>(array, index);
    case ElementType::f64:
      break;
  }
  return load<double>(array, index);
}

void put_number(std::span<std::byte> array, ElementType type, std::size_t index, double value) {
  const auto whole = static_cast<std::int64_t>(value);
  switch (type) {
    case ElementType::i8:
    case ElementType::u8:
      return store(array, index, static_cast<std::uint8_t>(whole));
    case ElementType::i16:
    case ElementType::u16:
      return store(array, index, static_cast<std::uint16_t>(whole));
    case ElementType::i32:
    case ElementType::u32:
      return store(array, index, static_cast<std::uint32_t>(whole));
    case ElementType::i64:
    case ElementType::u64:
      return store(array, index, whole);
    case ElementType::f16:
      return store(array, index, npu::f32_to_f16(static_cast<float>(value)));
    case ElementType::bf16:
      return store(array, index, npu::f32_to_bf16(static_cast<float>(value)));
    case ElementType::f32:
      return store(array, index, static_cast<float>(value));
    case ElementType::f64:
      return store(array, index, value);
  }
}

Array read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be read", path));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto refuse = [&](std::string_view why) { return InputError(fmt::format("{}: {}", path, why)); };
  if (text.size() < 12 || !text.starts_with("\x93NUMPY")) throw refuse("is no .npy file");
  const bool wide = text[6] >= 2;
  std::uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data() + 8, wide ? 4 : 2);
  const std::size_t begin = wide ? 12 : 10;
  if (text[6] < 1 || text[6] > 3 || text.size() - begin < header_bytes)
    throw refuse("the header of its .npy is cut off or of another version");
  const std::string header = text.substr(begin, header_bytes);
  std::smatch found;
  Array array;
  if (!std::regex_search(header, found, std::regex("'descr': *'([<|>=][a-z][0-9]+)'")))
    throw refuse("its .npy has no plain element type");
  const std::string descr = found[1];
  std::size_t n = 0;
  while (n < kKinds.size() && kKinds[n].numpy != descr) ++n;
  if (n == kKinds.size())
    throw refuse(fmt::format("elements of type {}; allowed: little-endian integers and floats", descr));
  array.type = static_cast<ElementType>(n);
  if (!std::regex_search(header, std::regex("'fortran_order': *False")))
    throw refuse("its array is in Fortran order; allowed: C order");
  if (!std::regex_search(header, found, std::regex("'shape': *\\(([0-9, ]*)\\)")))
    throw refuse("its .npy has no shape");
  const std::string shape = found[1];
  const std::regex digits("[0-9]+");
  std::uint64_t count = 1;
  for (std::sregex_iterator it(shape.begin(), shape.end(), digits), end; it != end; ++it) {
    if (it->length() > 15) throw refuse("its shape is too large");
    array.shape.push_back(std::stoull(it->str()));
    if (array.shape.back() != 0 && count > (std::uint64_t{1} << 40) / array.shape.back())
      throw refuse("its shape is too large");
    count *= array.shape.back();
  }
  const std::size_t data = begin + header_bytes;
  if (text.size() - data != count * kKinds[n].bytes)
    throw refuse(
        fmt::format("{} B of data; its shape takes {} B", text.size() - data, count * kKinds[n].bytes));
  const auto* const first = reinterpret_cast<const std::byte*>(text.data() + data);
  array.bytes.assign(first, first + count * kKinds[n].bytes);
  return array;
}

std::string npy_text(ElementType type, std::span<const std::uint64_t> shape,
                     std::span<const std::byte> bytes) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   kind(type).numpy, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t kAlign = 64, kBefore = 10;
  header.append(kAlign - (kBefore + header.size() + 1) % kAlign, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  const auto length = static_cast<std::uint16_t>(header.size());
  text.append(reinterpret_cast<const char*>(&length), sizeof length);
  text += header;
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text;
}

}  // namespace cm384::studies
