// Function, file and line of addresses, against addr2line of the cross-compiler's binutils.
#include "npu_core/scalar/debug_info.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include "npu_core/scalar/elf_image.h"
#include "traces/random.h"

namespace cm384::npu::debug_info_test {
namespace {

std::vector<std::byte> file_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// Every second byte of the code: RISC-V instructions begin there.
std::vector<std::uint64_t> addresses_of(const ElfImage& image) {
  std::vector<std::uint64_t> addresses;
  for (const ElfImage::Segment& s : image.segments()) {
    if (!s.executable) continue;
    for (std::uint64_t at = 0; at < s.content.size(); at += 2) addresses.push_back(s.address + at);
  }
  return addresses;
}

// What addr2line says: for each address the frames, innermost first.
using Frames = std::vector<std::pair<std::string, std::string>>;  // function, path:line
std::vector<Frames> addr2line(const std::vector<std::uint64_t>& addresses) {
  const std::string asked = ::testing::TempDir() + "cm384_debug_info_addresses";
  std::ofstream list(asked);
  for (const std::uint64_t address : addresses) list << std::hex << "0x" << address << "\n";
  list.close();
  FILE* pipe = popen((CM384_ADDR2LINE " -a -i -f -e " CM384_HELLO " <" + asked).c_str(), "r");
  std::string text;
  std::array<char, 4096> block{};
  while (const std::size_t n = fread(block.data(), 1, block.size(), pipe)) text.append(block.data(), n);
  EXPECT_EQ(pclose(pipe), 0);
  std::vector<Frames> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      all.emplace_back();
      continue;
    }
    std::string place;
    std::getline(lines, place);
    all.back().emplace_back(line, place.substr(0, place.find(' ')));  // " (discriminator 3)"
  }
  return all;
}

TEST(DebugInfo, SaysWhatAddr2lineDoes) {
  const auto image = ElfImage::read(CM384_HELLO);
  const std::vector<std::uint64_t> addresses = addresses_of(*image);
  const std::vector<Frames> expected = addr2line(addresses);
  ASSERT_EQ(expected.size(), addresses.size());
  std::size_t of_the_kernel = 0, other = 0;
  for (std::size_t n = 0; n < addresses.size(); ++n) {
    const auto place = image->place_of(addresses[n]);
    // Of other functions binutils 2.40 gives some lines of print.h as lines of hello.cpp.
    const auto own = std::find_if(expected[n].begin(), expected[n].end(), [](const auto& frame) {
      return frame.first == "FillInput" || frame.first == "Compute" || frame.first == "Sum";
    });
    if (own == expected[n].end()) continue;
    ++of_the_kernel;
    const std::string told =
        place ? place->function + " " + place->file + ":" + std::to_string(place->line) : "";
    if (told != own->first + " hello.cpp:" + own->second.substr(own->second.rfind(':') + 1)) {
      ++other;
      ADD_FAILURE() << std::hex << addresses[n] << ": " << told << ", addr2line " << own->first << " "
                    << own->second;
    }
    if (other > 10) break;
  }
  EXPECT_GT(of_the_kernel, 200u);
}

TEST(DebugInfo, AnAddressOutsideTheCodeHasNoPlace) {
  const auto image = ElfImage::read(CM384_HELLO);
  EXPECT_EQ(image->place_of(0x1000), std::nullopt);
  EXPECT_EQ(image->describe(0x1000), "pc 0x1000");
}

// Whatever its sections hold: a place or none, and the symbols all the same.
TEST(DebugInfo, DamageIsBorne) {
  const std::vector<std::byte> whole = file_of(CM384_HELLO);
  const auto image = ElfImage::read(CM384_HELLO);
  std::uint64_t loaded = 0;  // the segments stand first in the file
  for (const ElfImage::Segment& s : image->segments()) loaded += s.content.size();
  traces::Random random(5, 0);
  for (int n = 0; n < 200; ++n) {
    std::vector<std::byte> damaged = whole;
    const std::uint64_t at = 0x1000 + loaded + random.below(whole.size() - 0x2000 - loaded);
    for (std::uint64_t i = at; i < std::min<std::uint64_t>(at + 64, whole.size()); ++i)
      damaged[i] = static_cast<std::byte>(random.below(256));
    const DebugInfo info(damaged);
    for (const std::uint64_t address : {0x80000010u, 0x80000124u, 0x80000252u}) info.place_of(address);
  }
}

}  // namespace
}  // namespace cm384::npu::debug_info_test
