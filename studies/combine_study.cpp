// `cm384 run combine`.
#include "studies/combine.h"
#include "studies/moe_options.h"
#include "studies/studies.h"

namespace cm384::studies {
namespace {

void add_options(boost::program_options::options_description& options) {
  add_moe_options(options);
  add_combine_options(options);
}

StudyResult run(const StudyContext& context) {
  CombineCase setting;
  read_moe_options(context, setting);
  read_combine_options(context, setting);
  Json more;
  more["completion"] = setting.completion;
  // What is sent is BF16.
  return run_operator(context, setting, {"combine", 2, {"init", "send", "wait", "sum"}, more},
                      [&](int ranks, SimulatorCounts& counts, double from, double to) {
                        setting.ranks = ranks;
                        return measure_combine(context, setting, counts, from, to).combine;
                      });
}

}  // namespace

const Study kCombineStudy{"combine", "FusedCombine by AIV-Direct over many ranks", add_options, run};

}  // namespace cm384::studies
