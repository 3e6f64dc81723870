// Predicted against measured in regimes that each bind elsewhere: what docs/explain.md says of gains.
#include <fmt/format.h>

#include <iostream>

#include "testbenches/system/observe/explain/predictions.h"

namespace cm384::observe::regimes_test {
namespace {

constexpr int kOfOneNode = 16;  // dies

struct Regime {
  std::string name;
  std::vector<std::string> set;
  bool of_trunks = false;
};

// Where as few as that would take no trunk.
std::string over_two_nodes(int ranks) {
  std::string dies;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool second = rank >= ranks / 2;
    dies += fmt::format("{}{}", rank == 0 ? "" : ",", second ? kOfOneNode + rank - ranks / 2 : rank);
  }
  return dies;
}

const std::vector<Regime>& regimes() {
  static const std::vector<Regime> all{
      {"published machine", {}},
      {"trunks at 1:4", {"ub.link.trunk_rate=0.25"}, true},
      {"trunks at 1:8", {"ub.link.trunk_rate=0.125"}, true},
      {"links at 14 GB/s", {"ub.link.bandwidth=14GB/s"}},
      {"links at 7 GB/s", {"ub.link.bandwidth=7GB/s"}},
      {"links at 3.5 GB/s", {"ub.link.bandwidth=3.5GB/s"}},
      {"16 buffer cells", {"ub.link.buffer_cells=16"}},
      {"32 buffer cells", {"ub.link.buffer_cells=32"}},
      {"write interval doubled", {"ub.controller.write_interval=7464ps"}},
      {"HBM halved", {"hbm.pseudo_channels=8"}},
  };
  return all;
}

class Regimes : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(Regimes, PredictionsHold) {
  const auto [study, ranks] = GetParam();
  const int batch = ranks <= 8 ? 64 : ranks <= 16 ? 32 : 16;
  // Each regime as soon as it is measured: at 64 ranks the whole takes an hour.
  std::cout << fmt::format("{} --ranks {} --batch {} --warmup 0\n", study, ranks, batch)
            << "| regime | span, us | resource | predicted | measured |\n";
  for (const Regime& regime : regimes()) {
    const bool two_nodes = regime.of_trunks && ranks <= kOfOneNode;
    std::string lines;
    check_predictions(operator_run(study, ranks, batch, two_nodes ? over_two_nodes(ranks) : "linear"),
                      regime.set, regime.name + (two_nodes ? ", over two nodes" : ""), &lines);
    std::cout << lines << std::flush;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Regimes,
                         ::testing::Combine(::testing::Values("dispatch", "combine"),
                                            ::testing::Values(8, 16, 32, 64)),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

}  // namespace
}  // namespace cm384::observe::regimes_test
