// Arrays in files: NumPy's .npy of versions 1 to 3 in C order, and raw bytes, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cm384::studies {

enum class ElementType : std::uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 };

// "i8" .. "f64"; nothing for another name.
std::optional<ElementType> element_type(std::string_view name);
std::string_view name_of(ElementType type);
std::size_t bytes_of(ElementType type);
bool is_float(ElementType type);
// A number with all of its digits: integers are never rounded to a double.
using Number = std::variant<std::int64_t, std::uint64_t, double>;
double to_double(const Number& number);
double distance(const Number& one, const Number& other);  // 0: equal
bool is_equal(const Number& one, const Number& other);    // as numbers, whatever they are held as
bool fits(const Number& number, ElementType type);        // floats: always
std::string text_of(const Number& number);                // of a double nine digits

// Element `index` of an array.
Number number_at(std::span<const std::byte> array, ElementType type, std::size_t index);
// Writes a number that fits there, rounded to the type (floats to nearest even, integers cut off).
void write_number(std::span<std::byte> array, ElementType type, std::size_t index, const Number& value);

struct Array {
  ElementType type{};
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};

// Throws InputError, one line that names the file: missing, not .npy, Fortran order, another element type,
// shorter or longer than its shape says. NumPy has no bf16: u16 stands for its bits.
Array read_npy(const std::string& path);
std::string npy_text(ElementType type, std::span<const std::uint64_t> shape,
                     std::span<const std::byte> bytes);

}  // namespace cm384::studies
