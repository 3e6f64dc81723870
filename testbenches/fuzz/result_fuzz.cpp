// Results that `cm384 compare` and `cm384 report` read: anything ends in a comparison or an InputError. A
// 0x00 byte parts the input into two results; without one the result is compared with itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text/error.h"
#include "lab/report/comparison.h"
#include "lab/report/junit.h"
#include "lab/report/published.h"
#include "workloads/frame/table.h"

namespace {

// A study with the options that the published figure of `run gemm` is about: all of them would need the
// models.
struct Gemm {
  int groups = 4, m = 7168, n = 4096, k = 4096, cores = 24;
  std::string dtype = "int8", layout = "nz", tile = "auto", measure = "task";
  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("groups", self.groups, "");
    visit("m", self.m, "");
    visit("n", self.n, "");
    visit("k", self.k, "");
    visit("cores", self.cores, "");
    visit("dtype", self.dtype, "");
    visit("b-layout", self.layout, "");
    visit("tile", self.tile, "");
    visit("measure", self.measure, "");
  }
};
cm384::studies::StudyResult run(const cm384::studies::StudyContext&, const Gemm&) {
  return {};
}
const cm384::studies::Study kStudies[] = {{"gemm", "", {}, cm384::studies::options_of<Gemm, run>}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cm384;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t middle = text.find('\0');
  try {
    const Json before = report::parse_result(text.substr(0, middle), "before.json");
    const Json after = middle == std::string_view::npos
                           ? before
                           : report::parse_result(text.substr(middle + 1), "after.json");
    const report::ResultComparison comparison = report::compare_results(before, after, {});
    if (middle == std::string_view::npos && (!comparison.within() || comparison.moved() != 0)) std::abort();
    studies::to_table(report::change_rows(comparison));
    studies::to_csv(report::change_rows(comparison));
    report::to_junit({{"fuzz", comparison, true}});
    report::summary_line(comparison);
    report::published_points(after, kStudies);
  } catch (const InputError&) {
  }
  return 0;
}
