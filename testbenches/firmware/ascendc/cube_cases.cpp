// Generated cases of the call forms of cube cores (cube_forms.h), and what should come out of them in plain
// C++.
//
//   cube_cases make FOLDER COUNT: cases, the pool of operands, and a program that runs them
//   cube_cases check FOLDER: compares the results, all bytes, with what they should be
//   cube_cases table: the call forms, as docs/ascend-c.md has them
//
// Nothing is shared with the simulator but the layout of a case. Operands are small whole numbers, so that
// sums are exact in any order; halves are the host compiler's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "testbenches/firmware/ascendc/cube_maker.h"

namespace {

using namespace ascendc;
using Bytes = std::vector<std::uint8_t>;

constexpr const char* kTexts[] = {
#define FORM(name, text) text,
    CUBE_FORMS(FORM)
#undef FORM
};
int make(const std::string& folder, std::uint32_t count) {
  CubeMaker maker;
  const Bytes pool = make_pool(maker.draw);
  std::vector<CubeCase> cases;
  for (std::uint32_t n = 0; cases.size() < count; ++n) {
    for (std::uint32_t form = 0; form < kCubeForms; ++form) cases.push_back(maker.make(form, n));
  }
  const auto write = [&](const char* name, const void* from, std::size_t bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary)
        .write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
  };
  write("cube_cases.bin", cases.data(), cases.size() * sizeof(CubeCase));
  write("cube_pool.bin", pool.data(), pool.size());
  std::ofstream file(folder + "/cube_cases.toml");
  const auto buffer = [&](const char* name, std::size_t bytes, bool filled) {
    file << "[[buffer]]\nname = \"" << name << "\"\ntype = \"u8\"\nshape = " << bytes << "\n";
    if (filled) file << "fill = {file = \"" << name << ".bin\"}\n";
  };
  file << "ranks = 1\n";
  buffer("cube_cases", cases.size() * sizeof(CubeCase), true);
  buffer("cube_pool", pool.size(), true);
  buffer("cube_results", cases.size() * CUBE_AREA, false);
  file << "[[struct]]\nname = \"tiling\"\nfields = [{u32 = " << cases.size()
       << "}]\n[[launch]]\nkernel = \"cube_forms.elf\"\nblocks = 24\narguments = [\"cube_cases\", "
          "\"cube_pool\", "
          "\"cube_results\", \"tiling\"]\n[[save]]\nbuffer = \"cube_results\"\nfile = \"cube_results.npy\"\n";
  return file.good() ? 0 : 1;
}

// A case at work: its areas of L1, L0A, L0B as bytes, C as numbers.
struct Work {
  const CubeCase& c;
  const std::uint8_t* pool;
  Bytes result, a2, b2;
  std::vector<float> sums;  // 16 x 16 fractals, column of them after column
  std::uint32_t size, c0;

  Work(const CubeCase& given, const std::uint8_t* rows)
      : c(given),
        pool(rows),
        result(row(0)),
        a2(16 * 512),
        b2(16 * 512),
        size(kSizes[c.type]),
        c0(32 / size) {}
  Bytes row(int area) const {
    const std::uint8_t* at = pool + std::size_t{c.row[area]} * CUBE_AREA;
    return {at, at + CUBE_AREA};
  }
  std::uint32_t p(int n) const { return c.p[n]; }
  void fill(Bytes& l0, int area, std::uint32_t fractals) {
    std::memcpy(l0.data(), row(area).data(), fractals * 512);
  }

  void nd2nz() {
    const Bytes from = row(1);
    for (std::uint32_t i = 0; i < p(0); ++i) {
      for (std::uint32_t j = 0; j < p(1); ++j) {
        for (std::uint32_t k = 0; k * 32 < p(2) * size; ++k) {
          std::uint8_t* to = &result.at(i * p(7) * size + j * p(6) * 32 + k * p(5) * 32);
          std::memset(to, 0, 32);
          const std::size_t at = (i * p(3) + j * p(4)) * size + k * 32;
          std::memcpy(to, &from.at(at), std::min<std::size_t>(32, p(2) * size - k * 32));
        }
      }
    }
  }
  void copy() {
    const Bytes from = row(1);
    if (c.variant == 0) {
      std::memcpy(result.data(), from.data(), p(0) * size);
      return;
    }
    for (std::uint32_t i = 0; i < p(0); ++i)
      std::memcpy(&result.at(i * (p(1) + p(3)) * 32), &from.at(i * (p(1) + p(2)) * 32), p(1) * 32);
  }
  // Fractals to `to`; transposed where the case says so.
  void fractals(Bytes& to) const {
    const Bytes from = row(1);
    for (std::uint32_t i = 0; i < p(1); ++i) {
      const std::uint32_t source = (p(5) == 0 ? p(0) + i * p(2) : p(0) - i * p(2)) * 512;
      std::uint8_t* at = &to.at(i * (p(3) + 1) * 512);
      for (std::uint32_t n = 0; n < 512; ++n) {
        const std::uint32_t r = n / 32, b = n % 32;
        at[n] = from.at(source + (p(4) != 0 ? b / 2 * 32 + r * 2 + b % 2 : n));
      }
    }
  }
  void squares(Bytes& to) const {
    const Bytes from = row(1);
    const std::uint32_t side = size == 1 ? 32 : 16, square = size == 2 ? 512 : 1024;
    for (std::uint32_t i = 0; i < p(1); ++i) {
      for (std::uint32_t r = 0; r < side; ++r) {
        for (std::uint32_t k = 0; k < side; ++k) {
          // Element (r, k) of a square whose fractals are 16 rows of 32 B.
          const auto place = [&](std::uint32_t y, std::uint32_t x) {
            const std::uint32_t fractal = size == 1 ? y / 16 : x / c0;
            return std::pair(fractal, y % 16 * 32 + x % c0 * size);
          };
          const auto [source, source_at] = place(r, k);
          const auto [target, target_at] = place(k, r);
          const std::uint32_t at = i * (p(3) + 1) * 512 + target * (p(4) + 1) * 512 + target_at;
          std::memcpy(&to.at(at), &from.at((p(0) + i * p(2)) * square + source * 512 + source_at), size);
        }
      }
    }
  }
  // C of the whole of L0A and L0B: A's fractals row after row, B's row of k after row of k.
  void multiply(std::uint32_t m, std::uint32_t n, std::uint32_t k, std::uint32_t start) {
    const std::uint32_t mb = (m + 15) / 16, nb = (n + 15) / 16, kb = (k + c0 - 1) / c0;
    sums.assign(mb * nb * 256, 0);
    const Bytes bias = row(3);
    for (std::uint32_t r = 0; r < m; ++r) {
      for (std::uint32_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::uint32_t t = 0; t < k; ++t) {
          const std::size_t in_block = t % c0 * size;
          sum += value(&a2.at((r / 16 * kb + t / c0) * 512 + r % 16 * 32 + in_block), c.type) *
                 value(&b2.at((t / c0 * nb + j / 16) * 512 + j % 16 * 32 + in_block), c.type);
        }
        if (start == kAdds || start == kIsBias) sum *= 2;
        if (start == kBias && c.type == kS8) {
          std::int32_t whole;
          std::memcpy(&whole, &bias.at(j * 4), 4);
          sum += static_cast<float>(whole);
        } else if (start == kBias) {
          sum += value(&bias.at(j * 4), kF32);
        }
        sums.at((j / 16 * mb * 16 + r) * 16 + j % 16) = sum;
      }
    }
  }
  float sum(std::uint32_t r, std::uint32_t j, std::uint32_t height, std::uint32_t first = 0) const {
    return sums.at((j / 16 * height + r + first) * 16 + j % 16);
  }
  void put_sum(std::size_t at, float x) {
    if (c.type != kS8) return put(&result.at(at), kF32, x);
    const auto whole = static_cast<std::int32_t>(x);
    std::memcpy(&result.at(at), &whole, 4);
  }
  void rows(std::uint32_t m, std::uint32_t n) {
    for (std::uint32_t r = 0; r < m; ++r) {
      for (std::uint32_t j = 0; j < n; ++j) put_sum((r * n + j) * 4, sum(r, j, (m + 15) / 16 * 16));
    }
  }
  void see(bool a) {
    if (a) {
      fill(b2, 2, (c0 + 15) / 16);
      multiply(128, c0, c0, kZero);
      rows(128, c0);
    } else {
      fill(a2, 2, (c0 + 15) / 16);
      multiply(c0, 128, c0, kZero);
      rows(c0, 128);
    }
  }

  void fixpipe() {
    const std::uint32_t mode = p(13), to = mode == 0                                             ? 4
                                           : mode == 1 || mode == 16 || mode == 10 || mode == 11 ? 2
                                                                                                 : 1;
    const std::uint32_t row_bytes = p(10) != 0 && to == 4 && p(12) == 0 ? 64 : 32, width = row_bytes / to;
    const Bytes scales = row(3);
    for (std::uint32_t matrix = 0; matrix < p(7); ++matrix) {
      const std::uint32_t columns = p(10) != 0 ? (p(4) + width - 1) / width * width : p(4);
      for (std::uint32_t r = 0; r < p(3); ++r) {
        for (std::uint32_t j = 0; j < columns; ++j) {
          const std::size_t at = p(10) != 0 ? j / width * p(6) * 32 + r * row_bytes + j % width * to
                                            : (matrix * p(9) + r * p(6) + j) * to;
          float x = j < p(4) ? sum(r, j, p(5), matrix * p(8) * 16) : 0;
          if (mode == 8 || mode == 10 || mode == 23) x *= value(&scales.at(j * 8), kF32);
          if (mode == 9 || mode == 11 || mode == 24)
            x *= std::ldexp(1.0f, static_cast<int>(p(14) >> 23) - 127);
          if (p(11) != 0 && !(x > 0)) x = 0;
          store(at, mode, to, x);
        }
      }
    }
  }
  void store(std::size_t at, std::uint32_t mode, std::uint32_t to, float x) {
    const bool adds = c.form == kFixpipeAtomic;
    if (to == 4) {
      std::int32_t whole;
      std::memcpy(&whole, &result.at(at), 4);
      const float before = c.type == kS8 ? static_cast<float>(whole) : value(&result.at(at), kF32);
      put_sum(at, adds ? x + before : x);
    } else if (to == 2) {
      Bytes rounded(2);
      put(rounded.data(), mode == 16 ? kBF16 : kF16, x);
      if (adds) put(rounded.data(), kF16, value(rounded.data(), kF16) + value(&result.at(at), kF16));
      std::memcpy(&result.at(at), rounded.data(), 2);
    } else {
      put(&result.at(at), kS8, std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(x))));
    }
  }

  void run() {
    switch (c.form) {
      case kNd2Nz:
        return nd2nz();
      case kCopyIn:
      case kCopyOut:
        return copy();
      case kLoadGm:
        return fractals(result);
      case kLoadA:
      case kTurnA:
        fill(a2, 0, 8);
        c.form == kLoadA ? fractals(a2) : squares(a2);
        return see(true);
      case kLoadB:
      case kTurnB:
        fill(b2, 0, 8);
        c.form == kLoadB ? fractals(b2) : squares(b2);
        return see(false);
      default:
        fill(a2, 1, 16);
        fill(b2, 2, 16);
        multiply(p(0), p(1), p(2), c.variant);
        c.form == kMmad ? rows(p(0), p(1)) : fixpipe();
    }
  }
};

int check(const std::string& folder) {
  const auto read = [&](const char* name) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    return Bytes{std::istreambuf_iterator<char>(file), {}};
  };
  const Bytes raw = read("cube_cases.bin"), pool = read("cube_pool.bin"), found = read("cube_results.npy");
  const std::size_t number = raw.size() / sizeof(CubeCase);
  if (number == 0 || found.size() < number * CUBE_AREA) {
    std::printf("no results\n");
    return 1;
  }
  const std::uint8_t* results = found.data() + found.size() - number * CUBE_AREA;
  std::map<std::uint32_t, int> tally;
  int wrong = 0;
  for (std::size_t n = 0; n < number; ++n) {
    CubeCase c;
    std::memcpy(&c, &raw[n * sizeof c], sizeof c);
    Work work(c, pool.data());
    work.run();
    ++tally[c.form];
    const auto at = std::mismatch(work.result.begin(), work.result.end(), results + n * CUBE_AREA).first;
    if (at == work.result.end() || ++wrong > 20) continue;
    const auto byte = static_cast<std::size_t>(at - work.result.begin());
    std::printf("case %zu, %s: type %u, variant %u, rows %u %u %u %u,", n, kTexts[c.form], c.type, c.variant,
                c.row[0], c.row[1], c.row[2], c.row[3]);
    for (const std::uint32_t p : c.p) std::printf(" %u", p);
    std::printf(": byte %zu is %02x, expected %02x\n", byte, results[n * CUBE_AREA + byte], *at);
  }
  std::printf("%zu cases of %zu call forms, %d wrong\n", number, tally.size(), wrong);
  return wrong == 0 && tally.size() == kCubeForms ? 0 : 1;
}

int table() {
  const char* const types[] = {
      "int8_t, half, bfloat16_t, float", "int8_t, half, bfloat16_t, float; float and int32_t results",
      "float to float, half, bfloat16_t, int8_t; int32_t to int32_t, half, int8_t",
      "float to int8_t; int32_t to half, int8_t", "float to float, half; int32_t to int32_t, half"};
  std::printf("| calls | element types |\n| --- | --- |\n");
  std::string calls;
  for (std::uint32_t form = 0; form < kCubeForms; ++form) {
    const auto type_of = [](std::uint32_t of) { return of < kMmad ? 0 : static_cast<int>(of - kMmad) + 1; };
    calls += (calls.empty() ? "`" : ", `") + std::string(kTexts[form]) + '`';
    if (form + 1 < kCubeForms && type_of(form) == type_of(form + 1)) continue;
    std::printf("| %s | %s |\n", calls.c_str(), types[type_of(form)]);
    calls.clear();
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> given(arguments + 1, arguments + count);
  if (given.size() == 3 && given[0] == "make")
    return make(given[1], static_cast<std::uint32_t>(std::stoul(given[2])));
  if (given.size() == 2 && given[0] == "check") return check(given[1]);
  if (given.size() == 1 && given[0] == "table") return table();
  std::fprintf(stderr, "cube_cases make FOLDER COUNT | cube_cases check FOLDER | cube_cases table\n");
  return 2;
}
