// Arrays in files and what programs fill and check: integers keep all of their 64 bits; .npy as NumPy writes
// it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "testbenches/hw/refusal.h"
#include "workloads/frame/array_file.h"
#include "workloads/kernels/program_data.h"

namespace cm384::studies::array_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kOdd = 9'007'199'254'740'993;  // 2^53 + 1: a double has no such number
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

Number through(ElementType type, const Number& value) {
  std::vector<std::byte> bytes(8);
  write_number(bytes, type, 0, value);
  return number_at(bytes, type, 0);
}

TEST(Numbers, OfSixtyFourBitsKeepThemAll) {
  for (const std::int64_t value : {kOdd, -kOdd, kLeast, kMost, std::int64_t{-1}})
    EXPECT_EQ(std::get<std::int64_t>(through(ElementType::i64, value)), value);
  for (const std::uint64_t value : {std::uint64_t{kOdd}, kAll, kAll - 1, std::uint64_t{1} << 63})
    EXPECT_EQ(std::get<std::uint64_t>(through(ElementType::u64, value)), value);
  EXPECT_EQ(std::get<std::uint64_t>(through(ElementType::u64, 1e19)), 10'000'000'000'000'000'000u);
  EXPECT_EQ(std::get<std::int64_t>(through(ElementType::i8, std::int64_t{-3})), -3);
  EXPECT_EQ(std::get<std::int64_t>(through(ElementType::u32, 4294967295.0)), 4294967295);
  EXPECT_EQ(std::get<double>(through(ElementType::f16, std::int64_t{3})), 3.0);
}

TEST(Numbers, AreEqualWhenTheyAreAndNotWhenTheyAreNear) {
  EXPECT_FALSE(is_equal(kOdd, kOdd - 1));
  EXPECT_FALSE(is_equal(kOdd, 9007199254740992.0)) << "the double that is nearest";
  EXPECT_TRUE(is_equal(kOdd - 1, 9007199254740992.0));
  EXPECT_TRUE(is_equal(std::uint64_t{5}, std::int64_t{5}));
  EXPECT_FALSE(is_equal(kAll, std::int64_t{-1}));
  EXPECT_FALSE(is_equal(kAll, 0x1p64));
  EXPECT_TRUE(is_equal(std::uint64_t{1} << 63, 0x1p63));
  EXPECT_TRUE(is_equal(kLeast, -0x1p63));
  EXPECT_FALSE(is_equal(std::int64_t{2}, 2.5));
  EXPECT_FALSE(is_equal(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(distance(kOdd, kOdd - 1), 1);
  EXPECT_EQ(distance(kOdd, kOdd), 0);
  EXPECT_EQ(text_of(kOdd), "9007199254740993");
}

TEST(Numbers, FitTheirTypesToTheLastOne) {
  EXPECT_TRUE(fits(kMost, ElementType::i64));
  EXPECT_FALSE(fits(std::uint64_t{1} << 63, ElementType::i64));
  EXPECT_TRUE(fits(kLeast, ElementType::i64));
  EXPECT_TRUE(fits(kAll, ElementType::u64));
  EXPECT_FALSE(fits(std::int64_t{-1}, ElementType::u64));
  EXPECT_TRUE(fits(std::int64_t{127}, ElementType::i8));
  EXPECT_FALSE(fits(std::int64_t{128}, ElementType::i8));
  EXPECT_TRUE(fits(std::int64_t{-128}, ElementType::i8));
  EXPECT_FALSE(fits(std::int64_t{-129}, ElementType::i8));
  EXPECT_FALSE(fits(0x1p64, ElementType::u64));
  EXPECT_TRUE(fits(1e19, ElementType::u64));
  EXPECT_FALSE(fits(std::numeric_limits<double>::quiet_NaN(), ElementType::i32));
}

TEST(Ranges, CountInIntegers) {
  const ProgramBuffer::Range range{kOdd, std::int64_t{2}};
  EXPECT_EQ(std::get<std::int64_t>(range.at(1)), kOdd + 2);
  EXPECT_THAT(refusal([&] { range.at(std::uint64_t{1} << 62); }), HasSubstr("beyond 64 bits"));
  const ProgramBuffer::Range real{0.5, 0.25};
  EXPECT_EQ(std::get<double>(real.at(2)), 1.0);
}

class NpyFiles : public ::testing::Test {
 protected:
  ~NpyFiles() override { std::filesystem::remove(path_); }
  Array read(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return read_npy(path_);
  }
  static std::string version_two(const std::string& header, std::size_t data) {
    const auto length = static_cast<std::uint32_t>(header.size());
    std::string text("\x93NUMPY\x02\x00", 8);
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
    return text + header + std::string(data, '\1');
  }
  std::string path_ = ::testing::TempDir() + "cm384_" + std::to_string(getpid()) + ".npy";
};

TEST_F(NpyFiles, ComeBackAsTheyWere) {
  const std::vector<std::uint64_t> shape{2, 3};
  const std::vector<std::byte> bytes(24, std::byte{7});
  const Array back = read(npy_text(ElementType::i32, shape, bytes));
  EXPECT_EQ(back.type, ElementType::i32);
  EXPECT_EQ(back.shape, shape);
  EXPECT_EQ(back.bytes, bytes);
  EXPECT_EQ(
      read(npy_text(ElementType::u8, std::vector<std::uint64_t>{5}, std::vector<std::byte>(5))).shape.size(),
      1u);
  EXPECT_TRUE(read(npy_text(ElementType::f64, {}, std::vector<std::byte>(8))).shape.empty()) << "a scalar";
}

// A search by recursion overflows the stack here.
TEST_F(NpyFiles, OfAHundredThousandDimensionsAreRead) {
  std::string shape;
  for (int k = 0; k < 100'000; ++k) shape += "1, ";
  const Array array =
      read(version_two("{'descr': '|u1', 'fortran_order': False, 'shape': (" + shape + "), }\n", 1));
  EXPECT_EQ(array.shape.size(), 100'000u);
  EXPECT_EQ(array.bytes.size(), 1u);
}

TEST_F(NpyFiles, ThatAreNoneAreRefused) {
  const auto refused = [&](const std::string& header) {
    return refusal([&] { read(version_two(header, 4)); });
  };
  EXPECT_THAT(refused("{'fortran_order': False, 'shape': (4,), }"), HasSubstr("no plain element type"));
  EXPECT_THAT(refused("{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("type >i4; allowed"));
  EXPECT_THAT(refused("{'descr': '<i4', 'fortran_order': True, 'shape': (1,), }"),
              HasSubstr("Fortran order"));
  EXPECT_THAT(refused("{'descr': '<i4', 'fortran_order': False}"), HasSubstr("no shape"));
  EXPECT_THAT(refused("{'descr': '<i4', 'fortran_order': False, 'shape': (x,), }"),
              HasSubstr("its shape has 'x'"));
  EXPECT_THAT(refused("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }"), HasSubstr("4 B of data"));
  EXPECT_THAT(refused("{'descr': '<i4', 'fortran_order': False, 'shape': (1099511627777,), }"),
              HasSubstr("too large"));
  EXPECT_THAT(refused("{'descr': '<i4', 'fortran_order': False, 'shape': (1048576,1048576,2), }"),
              HasSubstr("too large"));
  EXPECT_THAT(refusal([&] { read("\x93NUMPY"); }), HasSubstr("is not an .npy file"));
}

}  // namespace
}  // namespace cm384::studies::array_test
