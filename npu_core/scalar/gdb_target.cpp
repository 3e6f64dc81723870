#include "npu_core/scalar/gdb_target.h"

#include <fmt/format.h>

#include <string>

namespace cm384::npu {
namespace {

std::string describe() {
  static constexpr const char* kNames[] = {
      "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0",  "a1",  "a2", "a3", "a4", "a5",
      "a6",   "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
  static constexpr const char* kF[] = {"ft0", "ft1", "ft2",  "ft3",  "ft4", "ft5", "ft6",  "ft7",
                                       "fs0", "fs1", "fa0",  "fa1",  "fa2", "fa3", "fa4",  "fa5",
                                       "fa6", "fa7", "fs2",  "fs3",  "fs4", "fs5", "fs6",  "fs7",
                                       "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11"};
  std::string out =
      "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">"
      "<architecture>riscv:rv64</architecture><feature name=\"org.gnu.gdb.riscv.cpu\">";
  for (const char* name : kNames) {
    out += fmt::format("<reg name=\"{}\" bitsize=\"64\" type=\"int\"/>", name);
  }
  out +=
      "<reg name=\"pc\" bitsize=\"64\" type=\"code_ptr\"/></feature>"
      "<feature name=\"org.gnu.gdb.riscv.fpu\">";
  for (const char* name : kF) {
    out += fmt::format("<reg name=\"{}\" bitsize=\"32\" type=\"ieee_single\"/>", name);
  }
  for (const char* name : {"fflags", "frm", "fcsr"}) {
    out += fmt::format("<reg name=\"{}\" bitsize=\"32\" type=\"int\"/>", name);
  }
  return out + "</feature></target>";
}

}  // namespace

std::string_view gdb_target_description() {
  static const std::string description = describe();
  return description;
}

}  // namespace cm384::npu
