#include "workloads/frame/array_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/lines.h"
#include "base/text/number.h"
#include "npu_core/vector/numeric.h"

namespace cm384::studies {
namespace {

constexpr std::size_t kLargestArray = std::size_t{64} << 30;  // as much as a die has

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

double to_double(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

// Where both are integers, 64 bits of mantissa lose nothing near 0.
double distance(const Number& one, const Number& other) {
  return std::visit(
      [](auto a, auto b) {
        if constexpr (std::is_same_v<decltype(a), double> || std::is_same_v<decltype(b), double>) {
          return std::abs(static_cast<double>(a) - static_cast<double>(b));
        } else {
          return static_cast<double>(std::abs(static_cast<long double>(a) - static_cast<long double>(b)));
        }
      },
      one, other);
}

bool is_equal(const Number& one, const Number& other) {
  return std::visit(
      [](auto a, auto b) {
        constexpr bool kRealA = std::is_same_v<decltype(a), double>,
                       kRealB = std::is_same_v<decltype(b), double>;
        if constexpr (kRealA && kRealB) {
          return a == b;
        } else if constexpr (kRealA || kRealB) {
          // Of the integer no digit is lost: the double is the one that is looked at.
          const double real = kRealA ? static_cast<double>(a) : static_cast<double>(b);
          const Number whole = kRealA ? Number(b) : Number(a);
          if (std::floor(real) != real) return false;
          if (real >= 0x1p63) return real < 0x1p64 && is_equal(static_cast<std::uint64_t>(real), whole);
          return real >= -0x1p63 && is_equal(static_cast<std::int64_t>(real), whole);
        } else {
          return std::cmp_equal(a, b);
        }
      },
      one, other);
}

bool fits(const Number& number, ElementType type) {
  if (is_float(type)) return true;
  const int bits = static_cast<int>(8 * bytes_of(type));
  const bool has_sign = name_of(type).front() == 'i';
  return std::visit(
      [&](auto value) {
        if constexpr (std::is_same_v<decltype(value), double>) {
          return value >= (has_sign ? -std::ldexp(1.0, bits - 1) : 0) &&
                 value < std::ldexp(1.0, has_sign ? bits - 1 : bits);
        } else {
          const int magnitude = has_sign ? bits - 1 : bits;
          const std::uint64_t most = magnitude == 64 ? UINT64_MAX : (std::uint64_t{1} << magnitude) - 1;
          if (std::cmp_greater(value, most)) return false;
          return has_sign ? std::cmp_greater_equal(value, -static_cast<std::int64_t>(most) - 1)
                          : std::cmp_greater_equal(value, 0);
        }
      },
      number);
}

std::string text_of(const Number& number) {
  if (const auto* real = std::get_if<double>(&number)) return fmt::format("{:.9g}", *real);
  return std::visit([](auto value) { return fmt::format("{}", value); }, number);
}

Number number_at(std::span<const std::byte> array, ElementType type, std::size_t index) {
  const auto whole = [](auto value) -> Number { return std::int64_t{value}; };
  switch (type) {
    case ElementType::i8:
      return whole(load<std::int8_t>(array, index));
    case ElementType::u8:
      return whole(load<std::uint8_t>(array, index));
    case ElementType::i16:
      return whole(load<std::int16_t>(array, index));
    case ElementType::u16:
      return whole(load<std::uint16_t>(array, index));
    case ElementType::i32:
      return whole(load<std::int32_t>(array, index));
    case ElementType::u32:
      return whole(load<std::uint32_t>(array, index));
    case ElementType::i64:
      return load<std::int64_t>(array, index);
    case ElementType::u64:
      return load<std::uint64_t>(array, index);
    case ElementType::f16:
      return double{npu::f16_to_f32(load<std::uint16_t>(array, index))};
    case ElementType::bf16:
      return double{npu::bf16_to_f32(load<std::uint16_t>(array, index))};
    case ElementType::f32:
      return double{load<float>(array, index)};
    case ElementType::f64:
      break;
  }
  return load<double>(array, index);
}

namespace {

// The bits of an integer, of a double cut off; what does not fit 64 bits gives 0.
std::uint64_t bits_of(const Number& number) {
  const auto* real = std::get_if<double>(&number);
  if (real == nullptr)
    return std::visit([](auto value) { return static_cast<std::uint64_t>(value); }, number);
  if (*real >= 0x1p63) return *real < 0x1p64 ? static_cast<std::uint64_t>(*real) : 0;
  return *real > -0x1p63 - 1 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(*real)) : 0;
}

}  // namespace

void write_number(std::span<std::byte> array, ElementType type, std::size_t index, const Number& value) {
  switch (type) {
    case ElementType::i8:
    case ElementType::u8:
      return store(array, index, static_cast<std::uint8_t>(bits_of(value)));
    case ElementType::i16:
    case ElementType::u16:
      return store(array, index, static_cast<std::uint16_t>(bits_of(value)));
    case ElementType::i32:
    case ElementType::u32:
      return store(array, index, static_cast<std::uint32_t>(bits_of(value)));
    case ElementType::i64:
    case ElementType::u64:
      return store(array, index, bits_of(value));
    case ElementType::f16:
      return store(array, index, npu::f32_to_f16(static_cast<float>(to_double(value))));
    case ElementType::bf16:
      return store(array, index, npu::f32_to_bf16(static_cast<float>(to_double(value))));
    case ElementType::f32:
      return store(array, index, static_cast<float>(to_double(value)));
    case ElementType::f64:
      return store(array, index, to_double(value));
  }
}

namespace {

// The header of a .npy file: a dict of Python with three entries, of which each comes once.
class NpyHeader {
 public:
  explicit NpyHeader(std::string_view text) : rest_(text) {}

  // Where a value begins behind 'name': and blanks; false: no such entry.
  bool find(std::string_view name) {
    const std::string key = fmt::format("'{}':", name);
    const std::size_t at = rest_.find(key);
    if (at == std::string_view::npos) return false;
    value_ = rest_.substr(at + key.size());
    value_.remove_prefix(std::min(value_.find_first_not_of(' '), value_.size()));
    return true;
  }
  // What stands between a mark and the next `end`; nothing where it does not begin so.
  std::optional<std::string_view> between(char begin, char end) const {
    if (value_.empty() || value_.front() != begin) return {};
    const std::size_t at = value_.find(end, 1);
    if (at == std::string_view::npos) return {};
    return value_.substr(1, at - 1);
  }
  bool starts_with(std::string_view word) const { return value_.starts_with(word); }

 private:
  std::string_view rest_, value_;
};

}  // namespace

Array read_npy(const std::string& path) {
  const std::string text = read_input(path, kLargestArray);
  const auto refuse = [&](std::string_view why) { return InputError(fmt::format("{}: {}", path, why)); };
  if (text.size() < 12 || !text.starts_with("\x93NUMPY")) throw refuse("is not an .npy file");
  const bool wide = text[6] >= 2;
  std::uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data() + 8, wide ? 4 : 2);
  const std::size_t begin = wide ? 12 : 10;
  if (text[6] < 1 || text[6] > 3 || text.size() - begin < header_bytes)
    throw refuse("the header of its .npy is cut off or of another version");
  NpyHeader header(std::string_view(text).substr(begin, header_bytes));
  Array array;
  const auto descr = header.find("descr") ? header.between('\'', '\'') : std::nullopt;
  if (!descr) throw refuse("its .npy has no plain element type");
  std::size_t n = 0;
  while (n < kKinds.size() && kKinds[n].numpy != *descr) ++n;
  if (n == kKinds.size())
    throw refuse(fmt::format("elements of type {}; allowed: little-endian integers and floats", *descr));
  array.type = static_cast<ElementType>(n);
  if (!header.find("fortran_order") || !header.starts_with("False"))
    throw refuse("its array is in Fortran order; allowed: C order");
  const auto shape = header.find("shape") ? header.between('(', ')') : std::nullopt;
  if (!shape) throw refuse("its .npy has no shape");
  std::uint64_t count = 1;
  for (const std::string_view length : split_fields(*shape)) {
    if (length.empty()) continue;  // behind the comma of one dimension
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    const auto number = hw::number_of<std::uint64_t>(length);
    if (!number)
      throw refuse(fmt::format("its shape has '{}'; allowed: whole numbers", length.substr(0, 40)));
    array.shape.push_back(*number);
    if (*number > kMost || (*number != 0 && count > kMost / *number)) throw refuse("its shape is too large");
    count *= *number;
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
