// Results that `cm384 compare` and `cm384 report` read: anything ends in a comparison or an InputError. A
// 0x00 byte parts the input into two results; without one the result is compared with itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hw/error.h"
#include "report/comparison.h"
#include "report/junit.h"
#include "report/published.h"
#include "studies/table.h"

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
    report::published_points(after);
  } catch (const InputError&) {
  }
  return 0;
}
