// A knob that does nothing is a defect: every public parameter of the machine moves an output of a run, in
// the direction that its row states.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/text/error.h"
#include "base/text/parameter_list.h"
#include "hw/machine.h"
#include "testbenches/runs/knob_scenarios.h"
#include "testbenches/runs/knob_table.h"

namespace cm384::testing::live_knobs_test {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void expect_moves(const Knob& knob) {
  std::vector<std::string> changes = words_of(knob.given);
  const std::string scenario(knob.scenario), output(knob.output);
  std::vector<std::string> changed = changes;
  changed.push_back(fmt::format("{}={}", knob.key, knob.value));
  const std::string what = fmt::format("{}: {} of {}", changed.back(), output, scenario);
  try {
    const double before = run_scenario(scenario, changes).at(output);
    if (knob.way == Way::refused) {
      EXPECT_THROW(run_scenario(scenario, changed), InputError) << what;
      return;
    }
    const double after = run_scenario(scenario, changed).at(output);
    const bool moved = knob.way == Way::up     ? after > before
                       : knob.way == Way::down ? after < before
                                               : after != before;
    EXPECT_TRUE(moved) << what << ": " << before << " before, " << after << " after";
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}

TEST(LiveKnobs, EveryRowMovesItsOutput) {
  for (const Knob& knob : knobs()) expect_moves(knob);
}

TEST(LiveKnobs, EveryVectorCostMovesItsInstruction) {
  std::size_t number = 0;
  for (const std::string_view row : vector_rows()) {
    const std::string output = fmt::format("vector{}", number++);
    for (const char* field : {"head", "slope", "tail"}) {
      const std::string key = fmt::format("vector_core.{}.{}", row, field);
      expect_moves({key, "123", "core", output, Way::up});
    }
  }
}

TEST(LiveKnobs, EveryParameterHasARowOrAReason) {
  std::set<std::string> covered;
  for (const Knob& knob : knobs()) covered.emplace(knob.key);
  for (const std::string_view row : vector_rows()) {
    for (const char* field : {"head", "slope", "tail"})
      covered.insert(fmt::format("vector_core.{}.{}", row, field));
  }
  for (const Exempt& exempt : exempt_knobs()) {
    EXPECT_TRUE(covered.emplace(exempt.key).second) << exempt.key << " has a row and needs no exemption";
    EXPECT_FALSE(exempt.why.empty());
  }
  hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine));
  for (const hw::Parameter& parameter : hw::list_parameters(machine))
    EXPECT_EQ(covered.erase(parameter.key), 1u) << parameter.key << " is in no row of knob_table.cpp";
  for (const std::string& key : covered) ADD_FAILURE() << key << " is no parameter of the machine";
}

}  // namespace
}  // namespace cm384::testing::live_knobs_test
