// Published figures stand beside a run only where all of their conditions hold.
#include "workloads/frame/published.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/text/error.h"
#include "workloads/frame/model_option.h"
#include "workloads/frame/result_json.h"

namespace cm384::studies::published_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const Study& study_named(std::string_view name) {
  return *std::ranges::find(registry(), name, &Study::name);
}

// Ids of the figures that a row predicts, after `cm384 run STUDY ARGUMENTS`.
std::vector<std::string> shown(std::string_view study, const std::vector<std::string>& arguments,
                               const Row& row, std::string_view unchanged_machine = "cloudmatrix384") {
  StudySettings settings(study_named(study), arguments);
  settings.settle(hw::load_machine(std::string(hw::kDefaultMachine)));
  std::vector<std::string> ids;
  for (const Prediction& p :
       PublishedFigures(study_named(study), to_json(settings.effective()), unchanged_machine).of(row))
    ids.push_back(p.figure->id);
  return ids;
}

Row dispatch_row(int ranks) {
  return {{"ranks", ranks}, {"batch", 128}, {"latency_us", Row{{"mean", 114.9}}}};
}

Row p2p_row(const char* path, const char* operation) {
  return {{"op", operation}, {"path", path},       {"target", "npu"},      {"distance", "intra-node"},
          {"bytes", 512},    {"latency_us", 1.25}, {"startup_us", 0.0337}, {"bandwidth_GBps", 137.0}};
}

TEST(Published, TableSevenBesideTheRunsItIsOf) {
  EXPECT_THAT(shown("dispatch", {}, dispatch_row(8)), ElementsAre("t7-dispatch-8"));
  EXPECT_THAT(shown("dispatch", {"--ranks", "8..256"}, dispatch_row(256)), ElementsAre("t7-dispatch-256"));
  EXPECT_THAT(shown("dispatch", {"--ranks", "8..256"}, dispatch_row(64)), IsEmpty());
  EXPECT_THAT(shown("combine", {"--iterations", "20"}, dispatch_row(8)), ElementsAre("t7-combine-8"));
  EXPECT_THAT(shown("dispatch", {"--payload", "full"}, dispatch_row(8)), ElementsAre("t7-dispatch-8"));
  EXPECT_THAT(shown("dispatch", {"--warmup", "3"}, dispatch_row(8)), ElementsAre("t7-dispatch-8"));
}

TEST(Published, NothingBesideRunsUnderOtherConditions) {
  for (const std::vector<std::string>& other :
       std::vector<std::vector<std::string>>{{"--routing", "zipf:1.1"},
                                             {"--fault", "plane=0,node=0,l2=0,rate=1e-3"},
                                             {"--rtl", "l1:0.0"},
                                             {"--cores", "24"},
                                             {"--placement", "random"},
                                             {"--variant", "full-mesh"},
                                             {"--measure", "kernel"},
                                             {"--start-skew", "10us"},
                                             {"--warmup", "0"},
                                             {"--top-k", "4"},
                                             {"--hidden", "4096"}}) {
    EXPECT_THAT(shown("dispatch", other, dispatch_row(8)), IsEmpty()) << other.front();
    EXPECT_THAT(shown("combine", other, dispatch_row(8)), IsEmpty()) << other.front();
  }
  // A changed link, or another machine.
  EXPECT_THAT(shown("dispatch", {}, dispatch_row(8), ""), IsEmpty());
  EXPECT_THAT(shown("dispatch", {}, dispatch_row(8), "node8"), IsEmpty());
}

// DeepEP's figures are another machine's.
TEST(Published, AMachineOfOthersHasFiguresOfItsOwn) {
  EXPECT_THAT(shown("dispatch", {}, dispatch_row(8), "dgx-h800"), ElementsAre("de-ll-dispatch-8"));
  EXPECT_THAT(shown("combine", {"--ranks", "8..256"}, dispatch_row(64), "dgx-h800"),
              ElementsAre("de-ll-combine-64"));
  EXPECT_THAT(shown("dispatch", {}, dispatch_row(8), "dgx-h100"), IsEmpty());
  EXPECT_EQ(machine_of_figures(hw::load_machine("dgx-h800")), "dgx-h800");
  EXPECT_EQ(machine_of_figures(hw::load_machine("dgx-h100")), "dgx-h100");
  EXPECT_EQ(machine_of_figures(hw::load_machine("atlas-800i-a2")), hw::kDefaultMachine);
}

TEST(Published, TableOneRowByRow) {
  EXPECT_THAT(shown("p2p", {}, p2p_row("aiv-direct", "write")),
              UnorderedElementsAre("t1-nn-write-lat-intra", "t1-nn-write-bw-intra", "s-aiv-startup"));
  EXPECT_THAT(shown("p2p", {"--path", "aiv-direct,sdma"}, p2p_row("sdma", "write")),
              ElementsAre("s-sdma-startup"));
  // With several sizes the cores share the bytes: another measurement.
  EXPECT_THAT(shown("p2p", {"--bytes", "512B,1KiB"}, p2p_row("aiv-direct", "write")), IsEmpty());
  EXPECT_THAT(shown("p2p", {"--cores", "1"}, p2p_row("aiv-direct", "read")),
              ElementsAre("t1-nn-read-lat-intra"));
  EXPECT_THAT(shown("p2p", {"--volume", "1MiB"}, p2p_row("aiv-direct", "read")),
              ElementsAre("t1-nn-read-lat-intra"));
}

// Whatever an option is moved to, a figure that does not say that it may be is gone.
TEST(Published, EveryOptionOfEveryStudyIsACondition) {
  int moved = 0;
  for (const Figure& figure : published_figures()) {
    if (!figure.conditions) continue;
    const Conditions& conditions = *figure.conditions;
    const Study& study = study_named(conditions.study);
    Row row = conditions.row;
    for (const auto& [name, value] : conditions.chosen.entries()) row.set(name, value);
    const std::string_view field = conditions.field;
    const std::string name(field.substr(0, field.find('.')));
    row.set(name, field == name ? Value(1.0) : Value(Row{{field.substr(name.size() + 1).data(), 1.0}}));
    StudySettings settings(study, conditions.arguments());
    settings.settle(hw::load_machine(conditions.machine));
    const auto predicts = [&] {
      const auto all = PublishedFigures(study, to_json(settings.effective()), conditions.machine).of(row);
      return std::ranges::any_of(all, [&](const Prediction& p) { return p.figure->id == figure.id; });
    };
    EXPECT_TRUE(predicts()) << figure.id << " under its own conditions";
    for (const hw::Parameter& option : settings.list()) {
      const bool given = std::ranges::any_of(
          conditions.options, [&](const auto& setting) { return setting.first == option.key; });
      const bool free = std::ranges::count(conditions.any, option.key) != 0 ||
                        (!given && conditions.row.contains(option.key)) ||
                        option.key == kModelOption;  // what follows from a model are conditions
      const std::string was = hw::value_text(option);
      for (const char* value :
           {"1", "0", "3", "64", "7", "1us", "1KiB", "true", "false", "random", "zipf:2", "x"}) {
        try {
          hw::assign(option, value);
        } catch (const InputError&) {
          continue;
        }
        if (hw::value_text(option) == was) continue;
        const bool more = std::ranges::any_of(
            conditions.at_least, [&](const auto& setting) { return setting.first == option.key; });
        if (!more) {
          EXPECT_EQ(predicts(), free) << figure.id << ": --" << option.key << ' ' << value;
        }
        ++moved;
        break;
      }
      for (const std::string_view other : option.names) {
        if (other == was) continue;
        hw::assign(option, other);
        EXPECT_EQ(predicts(), free) << figure.id << ": --" << option.key << ' ' << other;
        ++moved;
      }
      if (was.empty()) {
        std::visit(
            [](auto* p) {
              if constexpr (requires { p->clear(); }) p->clear();
            },
            option.value);
      } else {
        hw::assign(option, was);
      }
      EXPECT_TRUE(predicts()) << figure.id << ": --" << option.key << " as it was";
    }
  }
  EXPECT_GT(moved, 300);
}

TEST(Published, ConditionsNameWhatThereIs) {
  for (const Figure& figure : published_figures()) {
    if (!figure.conditions) continue;
    const Conditions& conditions = *figure.conditions;
    const auto study = std::ranges::find(registry(), conditions.study, &Study::name);
    ASSERT_NE(study, registry().end()) << figure.id;
    EXPECT_NE(find_field(study->fields, conditions.field), nullptr) << figure.id << ": " << conditions.field;
    StudySettings settings(*study, conditions.arguments());  // throws for an option that is not there
    std::vector<std::string> options;
    for (const hw::Parameter& option : settings.list()) options.push_back(option.key);
    for (const std::string& name : conditions.any) EXPECT_THAT(options, Contains(name)) << figure.id;
    for (const auto& [name, value] : conditions.row.entries()) {
      EXPECT_NE(find_field(study->fields, name), nullptr) << figure.id << ": " << name;
      EXPECT_THAT(options, Contains(name)) << figure.id;
    }
  }
}

// The figures of the literature stand beside the project, or where CM384_SHARED says.
std::filesystem::path literature() {
  const char* named = std::getenv("CM384_SHARED");
  for (const std::filesystem::path& folder : {std::filesystem::path(named == nullptr ? "" : named),
                                              std::filesystem::path(CM384_SOURCE_DIR) / "../shared"}) {
    if (!folder.empty() && std::filesystem::exists(folder / "reference/published.csv"))
      return folder / "reference/published.csv";
  }
  return {};
}

TEST(Published, EveryFigureOfTheLiteratureIsThere) {
  const std::filesystem::path path = literature();
  if (path.empty()) GTEST_SKIP() << "no ../shared/reference beside the project and no CM384_SHARED";
  std::map<std::string, double> ours;
  for (const Figure& figure : published_figures()) {
    EXPECT_NE(figure.conditions.has_value(), !figure.missing.empty()) << figure.id;
    // Those of ascend-facts, comparison machines, serving and training are in no published.csv.
    const bool elsewhere = std::ranges::any_of(std::array{"a6-", "de-", "ai-", "t4-eff-", "v3-"},
                                               [&](const char* of) { return figure.id.starts_with(of); });
    if (!elsewhere) ours[figure.id] = figure.value;
  }
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::size_t figures = 0;
  for (; std::getline(file, line); ++figures)
    EXPECT_TRUE(ours.contains(line.substr(0, line.find(',')))) << line;
  EXPECT_EQ(figures, ours.size());
}

}  // namespace
}  // namespace cm384::studies::published_test
