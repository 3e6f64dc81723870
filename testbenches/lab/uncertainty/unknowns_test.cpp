#include "lab/uncertainty/unknowns.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/text/parameter_list.h"
#include "testbenches/hw/refusal.h"

namespace cm384::uncertainty::unknowns_test {
namespace {

Unknown unknown_of(const std::string& entry) {
  static hw::Machine machine;
  machine = hw::parse_machine("base = \"node8\"\n" + entry, "mine.toml");
  const auto all = unknowns_of(machine);
  const std::string key = entry.find("fetch") != std::string::npos ? "l2.fetch" : "hbm.t_rc";
  return *std::ranges::find(all, key, &Unknown::key);
}

TEST(Unknowns, AnIntervalIsDrawnEvenly) {
  const Unknown t_rc = unknown_of(
      "[hbm]\nt_rc = { value = \"45ns\", from = \"assumed\", source = \"s\", range = [\"40ns\", \"60ns\"], "
      "why = \"w\" }\n");
  EXPECT_EQ(t_rc.at(0), "40ns");
  EXPECT_EQ(t_rc.at(0.25), "45ns");
  EXPECT_EQ(t_rc.at(1), "60ns");
  EXPECT_DOUBLE_EQ(t_rc.own_place(), 0.25);
  EXPECT_EQ(t_rc.range(), "40ns to 60ns");
}

TEST(Unknowns, AnIntervalOfEightfoldIsDrawnByOrderOfMagnitude) {
  const Unknown wide = unknown_of(
      "[hbm]\nt_rc = { value = \"40ns\", from = \"assumed\", source = \"s\", range = [\"10ns\", \"160ns\"], "
      "why = \"w\" }\n");
  EXPECT_EQ(wide.at(0.25), "20ns");
  EXPECT_EQ(wide.at(0.5), "40ns");
  EXPECT_NEAR(wide.own_place(), 0.5, 1e-12);
  const Unknown just_below = unknown_of(
      "[hbm]\nt_rc = { value = \"40ns\", from = \"assumed\", source = \"s\", range = [\"10ns\", \"79ns\"], "
      "why = \"w\" }\n");
  EXPECT_EQ(just_below.at(0.5), "44.5ns");
}

TEST(Unknowns, AlternativesAreEquallyLikely) {
  const Unknown fetch = unknown_of(
      "[l2]\nfetch = { value = \"128B\", from = \"assumed\", source = \"s\", values = [\"64B\", \"128B\", "
      "\"512B\"], "
      "why = \"w\" }\n");
  EXPECT_EQ(fetch.at(0), "64B");
  EXPECT_EQ(fetch.at(0.33), "64B");
  EXPECT_EQ(fetch.at(0.34), "128B");
  EXPECT_EQ(fetch.at(0.67), "512B");
  EXPECT_EQ(fetch.at(1), "512B");
  EXPECT_EQ(fetch.at(fetch.own_place()), "128B");
}

TEST(Unknowns, WhatTheUserSetIsKnown) {
  const auto has = [](const hw::Machine& machine) {
    return std::ranges::count(unknowns_of(machine), "l2.hit_latency", &Unknown::key) == 1;
  };
  EXPECT_TRUE(has(hw::load_machine("cloudmatrix384")));
  EXPECT_FALSE(has(hw::load_machine("cloudmatrix384", {"l2.hit_latency=45ns"})));
}

// Every unknown of the preset takes its own place and both ends.
TEST(Unknowns, PlacesOfThePresetAreValues) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  for (const Unknown& unknown : unknowns_of(machine)) {
    EXPECT_GE(unknown.own_place(), 0) << unknown.key;
    EXPECT_LE(unknown.own_place(), 1) << unknown.key;
    for (const double place : {0.0, 0.123456, 0.5, 0.987, 1.0}) {
      if (unknown.key.starts_with("transfer_engine.")) continue;
      const std::string assignment = unknown.key + "=" + unknown.at(place);
      EXPECT_EQ(refusal([&] { hw::load_machine("cloudmatrix384", {assignment}); }), "(accepted)")
          << assignment;
    }
  }
}

}  // namespace
}  // namespace cm384::uncertainty::unknowns_test
