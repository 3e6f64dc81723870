// Generated cases of Ascend C's call forms (forms.h), and what should come out of them in plain C++.
//
//   cases make FOLDER COUNT: cases, the pool of operands, and a program that runs them
//   cases check FOLDER: compares the results, all bytes of every destination, with what they should be
//   cases table: the call forms, as docs/ascend-c.md has them
//
// Nothing is shared with the simulator but the layout of a case: halves are the host compiler's, other
// roundings go by long double.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "testbenches/firmware/ascendc/maker.h"
#include "testbenches/firmware/ascendc/reference.h"

namespace {

using namespace ascendc;

std::vector<std::uint8_t> read(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const std::string& name, const void* from, std::size_t bytes) {
  std::ofstream(name, std::ios::binary)
      .write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
}

int make(const std::string& folder, std::uint32_t count) {
  Maker maker;
  const auto pool = make_pool(maker.draw);
  std::vector<Case> cases;
  for (std::uint32_t n = 0; cases.size() < count; ++n) {
    for (std::uint32_t form = 0; form < kForms; ++form) cases.push_back(maker.make(form, n));
    for (std::uint32_t more = 1; more < 6; ++more) cases.push_back(maker.make(kCast, n + more * 1000));
  }
  write(folder + "/cases.bin", cases.data(), cases.size() * sizeof(Case));
  write(folder + "/pool.bin", pool.data(), pool.size());
  std::FILE* file = std::fopen((folder + "/cases.toml").c_str(), "w");
  if (file == nullptr) return 1;
  std::fprintf(file, "ranks = 1\n");
  const auto buffer = [&](const char* name, std::size_t bytes, bool filled) {
    std::fprintf(file, "[[buffer]]\nname = \"%s\"\ntype = \"u8\"\nshape = %zu\n", name, bytes);
    if (filled) std::fprintf(file, "fill = {file = \"%s.bin\"}\n", name);
  };
  buffer("cases", cases.size() * sizeof(Case), true);
  buffer("pool", pool.size(), true);
  buffer("results", cases.size() * AREA, false);
  buffer("counts", cases.size() * 8, false);
  std::fprintf(file,
               "[[struct]]\nname = \"tiling\"\nfields = [{u32 = %zu}]\n[[launch]]\nkernel = "
               "\"call_forms.elf\"\nblocks = 48\n"
               "arguments = [\"cases\", \"pool\", \"results\", \"counts\", \"tiling\"]\n"
               "[[save]]\nbuffer = \"results\"\nfile = \"results.npy\"\n[[save]]\nbuffer = \"counts\"\nfile "
               "= \"counts.npy\"\n",
               cases.size());
  return std::fclose(file);
}

int check(const std::string& folder) {
  const auto raw = read(folder + "/cases.bin"), pool = read(folder + "/pool.bin");
  auto results = read(folder + "/results.npy"), counts = read(folder + "/counts.npy");
  const std::size_t number = raw.size() / sizeof(Case);
  if (number == 0 || results.size() < number * AREA || counts.size() < number * 8) {
    std::printf("no results\n");
    return 1;
  }
  results.erase(results.begin(), results.end() - static_cast<std::ptrdiff_t>(number * AREA));
  counts.erase(counts.begin(), counts.end() - static_cast<std::ptrdiff_t>(number * 8));
  std::map<std::uint32_t, std::pair<int, int>> tally;  // by form: cases, wrong
  int wrong = 0;
  for (std::size_t n = 0; n < number; ++n) {
    Case c;
    std::memcpy(&c, &raw[n * sizeof c], sizeof c);
    const Expected expected = expect(c, pool.data());
    std::uint64_t kept = 0;
    std::memcpy(&kept, &counts[n * 8], 8);
    const int at = first_difference(expected, &results[n * AREA]);
    auto& [all, bad] = tally[c.form];
    ++all;
    if (at < 0 && kept == expected.kept) continue;
    ++bad;
    if (++wrong > 40) continue;
    std::printf(
        "case %zu, %s: type %u to %u, variant %u, mode %u, count %u, repeat %u, blocks %u %u %u, strides %u "
        "%u %u, "
        "scalar %08x, mask %llx %llx, rows %u %u %u %u, extra %u %u %u %u: ",
        n, kTexts[c.form], c.type, c.type2, c.variant, c.mode, c.count, c.repeat, c.block[0], c.block[1],
        c.block[2], c.stride[0], c.stride[1], c.stride[2], c.scalar,
        static_cast<unsigned long long>(c.mask[0]), static_cast<unsigned long long>(c.mask[1]), c.row[0],
        c.row[1], c.row[2], c.row[3], c.extra[0], c.extra[1], c.extra[2], c.extra[3]);
    if (at >= 0) {
      std::uint32_t is = 0, should = 0;
      std::memcpy(&is, &results[n * AREA + static_cast<std::size_t>(at)], 4);
      std::memcpy(&should, &expected.bytes[static_cast<std::size_t>(at)], 4);
      std::printf("byte %d is %08x, expected %08x\n", at, is, should);
    } else {
      std::printf("%llu kept, expected %llu\n", static_cast<unsigned long long>(kept),
                  static_cast<unsigned long long>(expected.kept));
    }
  }
  for (const auto& [form, numbers] : tally) {
    if (numbers.second != 0) std::printf("%s: %d of %d wrong\n", kTexts[form], numbers.second, numbers.first);
  }
  std::printf("%zu cases of %zu call forms, %d wrong\n", number, tally.size(), wrong);
  return wrong == 0 && tally.size() == kForms ? 0 : 1;
}

// The call forms as docs/ascend-c.md lists them: a row for all calls with the same types and forms.
int table() {
  const char* const names[] = {"float",    "half",       "int32_t", "int16_t", "uint32_t",
                               "uint16_t", "bfloat16_t", "int8_t",  "uint8_t", "int64_t"};
  const auto of = [&](const std::vector<std::uint32_t>& types) {
    std::string text;
    for (const std::uint32_t type : types) text += (text.empty() ? "" : ", ") + std::string(names[type]);
    return text;
  };
  const char* const ways[] = {"count; mask as number or words with repeats; mask set outside; counter mode",
                              "count; mask as number or words with repeats; mask set outside; counter mode",
                              "count; mask as number or words with repeats; mask set outside; counter mode",
                              "count; mask as number or words with repeats; mask set outside; counter mode",
                              "count; mask as number or words with repeats; all roundings",
                              "count; mask as number or words with repeats",
                              "count; mask as number or words with repeats",
                              "count; mask as number or words with repeats",
                              "mask as number or words",
                              "",
                              "",
                              "",
                              "",
                              ""};
  std::vector<std::pair<std::string, std::string>> rows;  // types and forms, calls
  for (std::uint32_t form = 0; form < kForms; ++form) {
    std::string types = of(types_of(form)), forms = ways[kFamilies[form]];
    if (form == kCast) {
      std::map<std::uint32_t, std::vector<std::uint32_t>> to;
      for (const auto& [source, target] : kCasts)
        to[static_cast<std::uint32_t>(source)].push_back(static_cast<std::uint32_t>(target));
      types.clear();
      for (const auto& [source, targets] : to)
        types += (types.empty() ? "" : "; ") + std::string(names[source]) + " to " + of(targets);
    }
    if (form == kRepeatReduceSum) forms = "number of elements";
    if (form == kGather) forms = "count; mask as number or words with repeats";
    if (form == kGatherMask || form == kGatherMaskTensor) forms = "whole repeats; counted ones of any length";
    if (form == kDataCopy || form == kDataCopyOut || form == kDataCopyLocal)
      forms = "count; blocks with gaps";
    if (form == kDataCopyPad) forms = "with and without isPad";
    const std::string call = '`' + std::string(kTexts[form]) + '`', key = types + " | " + forms;
    const auto row = std::ranges::find(rows, key, &std::pair<std::string, std::string>::first);
    if (row == rows.end())
      rows.emplace_back(key, call);
    else
      row->second += ", " + call;
  }
  std::printf("| calls | element types | forms |\n| --- | --- | --- |\n");
  for (const auto& [key, calls] : rows) std::printf("| %s | %s |\n", calls.c_str(), key.c_str());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> given(arguments + 1, arguments + count);
  if (given.size() == 3 && given[0] == "make")
    return make(given[1], static_cast<std::uint32_t>(std::stoul(given[2])));
  if (given.size() == 2 && given[0] == "check") return check(given[1]);
  if (given.size() == 1 && given[0] == "table") return table();
  std::fprintf(stderr, "cases make FOLDER COUNT | cases check FOLDER | cases table\n");
  return 2;
}
