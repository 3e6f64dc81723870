#include "testbenches/npu_core/scalar/random_program.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <random>

namespace cm384::npu::testing {
namespace {

using Random = std::mt19937_64;

// One stream. x8 holds the middle of its scratch memory and is never written; every other register is fair
// game.
class Stream {
 public:
  Stream(Random& random, int number, std::string& out) : random_(random), number_(number), out_(out) {}

  void emit(int length) {
    prologue();
    for (int i = 0; i < length; ++i) instruction(true);
    epilogue();
  }

 private:
  template <std::size_t N>
  const char* any(const char* const (&names)[N]) {
    return names[random_() % N];
  }
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  int source() { return between(0, 31); }
  int destination() {
    const int r = between(0, 30);
    return r < 8 ? r : r + 1;  // not x8
  }
  int low_destination() { return between(9, 15); }  // of the compressed forms
  int float_register() { return between(0, 31); }
  const char* rounding() {
    static constexpr const char* kModes[] = {"rne", "rtz", "rdn", "rup", "rmm", "dyn", "dyn", "dyn"};
    return any(kModes);
  }
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    out_ += "  ";
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(values)...);
    out_ += '\n';
  }

  std::uint64_t integer() {
    static constexpr std::uint64_t kSpecial[] = {0,          1,          ~0ull,      2,
                                                 0x7fffffff, 0x80000000, 0xffffffff, 0xffffffff80000000,
                                                 1ull << 63, ~0ull >> 1, 31,         63};
    switch (random_() % 4) {
      case 0:
        return kSpecial[random_() % std::size(kSpecial)];
      case 1:
        return random_() & 0xff;
      default:
        return random_() >> (random_() % 64);
    }
  }
  std::uint32_t single() {
    static constexpr std::uint32_t kSpecial[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                                 0xff800000, 0x7fc00000, 0x7f800001, 1,          0x007fffff,
                                                 0x00800000, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x5f000000};
    if (random_() % 3 == 0) return kSpecial[random_() % std::size(kSpecial)];
    if (random_() % 2 == 0) return 0x3f000000u + static_cast<std::uint32_t>(random_() % 0x02000000u);
    return static_cast<std::uint32_t>(random_());
  }

  void prologue() {
    line(".section .data");
    line(".balign 8");
    out_ += fmt::format("init_{}:\n", number_);
    for (int i = 1; i < 32; ++i) line(".dword {:#x}", integer());
    for (int i = 0; i < 32; ++i) line(".word {:#x}", single());
    line(".text");
    line("la x31, init_{}", number_);
    for (int i = 0; i < 32; ++i) line("flw f{}, {}(x31)", i, 31 * 8 + 4 * i);
    for (int i = 1; i < 32; ++i) {
      if (i != 8) line("ld x{}, {}(x31)", i, 8 * (i - 1));
    }
    line("la x8, scratch + {}", RandomProgram::kScratchBytes * static_cast<std::uint64_t>(number_) +
                                    RandomProgram::kScratchBytes / 2);
    line("csrwi fcsr, 0");
  }
  void epilogue() {
    line("la x8, dump + {}", RandomProgram::kDumpBytes * static_cast<std::uint64_t>(number_));
    for (int i = 1; i < 32; ++i) line("sd x{}, {}(x8)", i == 8 ? 0 : i, 8 * (i - 1));
    for (int i = 0; i < 32; ++i) line("fsw f{}, {}(x8)", i, 31 * 8 + 4 * i);
    line("frflags x9");
    line("sd x9, {}(x8)", 31 * 8 + 32 * 4);
  }

  void instruction(bool may_jump) {
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2:
        return register_operation();
      case 3:
      case 4:
        return immediate_operation();
      case 5:
      case 6:
        return memory();
      case 7:
        return atomic();
      case 8:
        return may_jump ? jump() : immediate_operation();
      case 9:
        return compressed();
      case 10:
        return float_state();
      default:
        return float_operation();
    }
  }

  void register_operation() {
    static constexpr const char* kNames[] = {"add",  "sub",  "sll",  "slt",    "sltu",  "xor",  "srl",
                                             "sra",  "or",   "and",  "addw",   "subw",  "sllw", "srlw",
                                             "sraw", "mul",  "mulh", "mulhsu", "mulhu", "div",  "divu",
                                             "rem",  "remu", "mulw", "divw",   "divuw", "remw", "remuw"};
    line("{} x{}, x{}, x{}", any(kNames), destination(), source(), source());
  }
  void immediate_operation() {
    static constexpr const char* kNames[] = {"addi", "slti", "sltiu", "xori", "ori", "andi", "addiw"};
    static constexpr const char* kShifts[] = {"slli", "srli", "srai"};
    static constexpr const char* kWordShifts[] = {"slliw", "srliw", "sraiw"};
    switch (random_() % 6) {
      case 0:
        return line("{} x{}, x{}, {}", any(kShifts), destination(), source(), between(0, 63));
      case 1:
        return line("{} x{}, x{}, {}", any(kWordShifts), destination(), source(), between(0, 31));
      case 2:
        return line("{} x{}, {:#x}", random_() % 2 == 0 ? "lui" : "auipc", destination(),
                    random_() & 0xfffff);
      default:
        return line("{} x{}, x{}, {}", any(kNames), destination(), source(), between(-2048, 2047));
    }
  }
  void memory() {
    static constexpr const char* kLoads[] = {"lb", "lh", "lw", "ld", "lbu", "lhu", "lwu"};
    static constexpr const char* kStores[] = {"sb", "sh", "sw", "sd"};
    const int reach = static_cast<int>(RandomProgram::kScratchBytes / 2);
    const int offset = between(-reach, reach - 8) & (random_() % 2 == 0 ? ~7 : ~0);
    switch (random_() % 5) {
      case 0:
      case 1:
        return line("{} x{}, {}(x8)", any(kLoads), destination(), offset);
      case 2:
        return line("flw f{}, {}(x8)", float_register(), offset);
      case 3:
        return line("fsw f{}, {}(x8)", float_register(), offset);
      default:
        return line("{} x{}, {}(x8)", any(kStores), source(), offset);
    }
  }
  void atomic() {
    static constexpr const char* kNames[] = {"amoswap", "amoadd", "amoxor",  "amoor",  "amoand",
                                             "amomin",  "amomax", "amominu", "amomaxu"};
    int address = destination();
    if (address == 0) address = 31;
    line("addi x{}, x8, {}", address, between(-31, 31) * 8);
    const char width = random_() % 2 == 0 ? 'w' : 'd';
    if (random_() % 4 == 0) {
      int value = destination();
      if (value == address) value = 0;
      line("lr.{} x{}, (x{})", width, value, address);
      line("sc.{} x{}, x{}, (x{})", width, destination(), source(), address);
    } else {
      line("{}.{} x{}, x{}, (x{})", any(kNames), width, destination(), source(), address);
    }
  }
  void jump() {
    static constexpr const char* kBranches[] = {"beq", "bne", "blt", "bge", "bltu", "bgeu"};
    const int label = labels_++;
    const auto name = [&] { return fmt::format(".Ls{}_{}", number_, label); };
    switch (random_() % 6) {
      case 0:
        line("jal x{}, {}", destination(), name());
        break;
      case 1: {
        int address = destination();
        if (address == 0) address = 1;
        line("la x{}, {}", address, name());
        line("jalr x{}, x{}, {}", destination(), address, between(0, 1));
        break;
      }
      case 2:
        line("{} x{}, {}", random_() % 2 == 0 ? "beqz" : "bnez", between(8, 15), name());
        break;
      default:
        line("{} x{}, x{}, {}", any(kBranches), source(), source(), name());
        break;
    }
    for (int i = between(0, 3); i > 0; --i) instruction(false);
    out_ += name() + ":\n";
  }
  void compressed() {
    static constexpr const char* kPairs[] = {"c.sub", "c.xor", "c.or", "c.and", "c.addw", "c.subw"};
    const int full = destination() == 0 ? 1 : destination();
    const int rd = full == 0 || full == 2 ? 5 : full;
    const int nonzero = between(1, 31);
    switch (random_() % 12) {
      case 0:
        return line("c.addi x{}, {}", rd, between(1, 31));
      case 1:
        return line("c.addiw x{}, {}", rd, between(-32, 31));
      case 2:
        return line("c.li x{}, {}", rd, between(-32, 31));
      case 3:
        return line("c.lui x{}, {}", rd, between(1, 31));
      case 4:
        return line("c.slli x{}, {}", rd, between(1, 63));
      case 5:
        return line("c.{} x{}, {}", random_() % 2 == 0 ? "srli" : "srai", low_destination(), between(1, 63));
      case 6:
        return line("c.andi x{}, {}", low_destination(), between(-32, 31));
      case 7:
        return line("{} x{}, x{}", any(kPairs), low_destination(), between(8, 15));
      case 8:
        return line("c.{} x{}, x{}", random_() % 2 == 0 ? "mv" : "add", rd, nonzero);
      case 9:
        return line("c.{} x{}, {}(x8)", random_() % 2 == 0 ? "lw" : "sw", low_destination(),
                    between(0, 31) * 4);
      case 10:
        return line("c.{} x{}, {}(x8)", random_() % 2 == 0 ? "ld" : "sd", low_destination(),
                    between(0, 30) * 8);
      default:
        return line("c.addi4spn x{}, sp, {}", low_destination(), between(1, 255) * 4);
    }
  }
  void float_state() {
    switch (random_() % 5) {
      case 0:
        return line("frflags x{}", destination());
      case 1:
        return line("csrwi fflags, {}", between(0, 31));
      case 2:
        return line("frcsr x{}", destination());
      case 3:
        return line("csrwi frm, 0");
      default:
        return line("csrwi frm, {}", between(0, 4));
    }
  }
  void float_operation() {
    static constexpr const char* kBinary[] = {"fadd.s", "fsub.s", "fmul.s", "fdiv.s"};
    static constexpr const char* kPlain[] = {"fsgnj.s", "fsgnjn.s", "fsgnjx.s", "fmin.s", "fmax.s"};
    static constexpr const char* kCompare[] = {"feq.s", "flt.s", "fle.s"};
    static constexpr const char* kFused[] = {"fmadd.s", "fmsub.s", "fnmsub.s", "fnmadd.s"};
    static constexpr const char* kTo[] = {"fcvt.w.s", "fcvt.wu.s", "fcvt.l.s", "fcvt.lu.s"};
    static constexpr const char* kFrom[] = {"fcvt.s.w", "fcvt.s.wu", "fcvt.s.l", "fcvt.s.lu"};
    const int d = float_register(), a = float_register(), b = float_register(), c = float_register();
    switch (random_() % 10) {
      case 0:
      case 1:
        return line("{} f{}, f{}, f{}, {}", any(kBinary), d, a, b, rounding());
      case 2:
        return line("fsqrt.s f{}, f{}, {}", d, a, rounding());
      case 3:
      case 4:
        return line("{} f{}, f{}, f{}, f{}, {}", any(kFused), d, a, b, c, rounding());
      case 5:
        return line("{} f{}, f{}, f{}", any(kPlain), d, a, b);
      case 6:
        return line("{} x{}, f{}, f{}", any(kCompare), destination(), a, b);
      case 7:
        return line("{} x{}, f{}, {}", any(kTo), destination(), a, rounding());
      case 8:
        return line("{} f{}, x{}, {}", any(kFrom), d, source(), rounding());
      default:
        if (random_() % 3 == 0) return line("fclass.s x{}, f{}", destination(), a);
        if (random_() % 2 == 0) return line("fmv.x.w x{}, f{}", destination(), a);
        return line("fmv.w.x f{}, x{}", d, source());
    }
  }

  Random& random_;
  int number_;
  std::string& out_;
  int labels_ = 0;
};

}  // namespace

std::string RandomProgram::generate(std::uint64_t seed, int streams, int length) {
  Random random(seed);
  std::string out = "  .text\n  .globl _start\n_start:\n";
  for (int i = 0; i < streams; ++i) Stream(random, i, out).emit(length);
  const std::uint64_t bytes = static_cast<std::uint64_t>(streams) * (kDumpBytes + kScratchBytes);
  out += fmt::format(R"(
  la a0, on_cm384
  lw a0, 0(a0)
  bnez a0, 1f
  li a0, 1
  la a1, dump
  li a2, {0}
  li a7, 64
  ecall
  li a0, 0
  li a7, 93
  ecall
1:
  .insn r 0x0b, 0, 0, x0, x0, x0
  .data
  .balign 64
  .globl on_cm384
on_cm384: .dword 0
  .globl dump
dump: .skip {1}
scratch:
)",
                     bytes, static_cast<std::uint64_t>(streams) * kDumpBytes);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(streams) * kScratchBytes / 8; ++i) {
    fmt::format_to(std::back_inserter(out), "  .dword {:#x}\n", random());
  }
  return out;
}

}  // namespace cm384::npu::testing
