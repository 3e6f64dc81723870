// Options of runs of kernels that somebody has compiled: by which rules they run (npu::KernelRules), and what
// came of that, line by line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/text/units.h"
#include "npu_core/scalar/program.h"
#include "workloads/frame/options.h"
#include "workloads/frame/result.h"

namespace cm384::studies {

// Sentences of options that several studies have.
inline constexpr std::string_view
    kCheckHazards =
        "list where pipes touch local memory without a flag that orders them; the check fails where there "
        "are "
        "any that the automatic order does not cover",
    kCheckMemory =
        "list copies to global memory that nobody has allocated, and by two cores to the same bytes in one "
        "launch, reads of UBuffer that the launch has not written, unaligned scalar accesses to it, with "
        "their places; the check fails where there are any";

struct RuleOptions {
  std::string auto_sync = "auto", write_back = "auto";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("auto-sync", self.auto_sync, OneOf{{"auto", "on", "off"}},
          "scalar accesses to the UBuffer wait for V, MTE2 and MTE3 where these touch the same bytes, V for "
          "V, as "
          "the vendor's compiler orders them; auto: in images of `kernel build`; waits are listed");
    visit("write-back", self.write_back, OneOf{{"auto", "on", "off"}},
          "write dirty lines of the scalar data cache back when a kernel ends; auto: in images of `kernel "
          "build`; "
          "whether the part does is not known");
  }
};

// Before the program's first launch. Where hazards are looked for, `list_hazards` lists them all.
void apply_rules(const RuleOptions& options, bool list_hazards, npu::Program& program);
// After the run: notes on what the rules have done, and hazards, which it has not passed then.
void report_rules(npu::Program& program, const Clock& clock, StudyResult& into);

}  // namespace cm384::studies
