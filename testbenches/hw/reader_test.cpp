#include <gmock/gmock.h>

#include "hw/machine.h"
#include "testbenches/hw/refusal.h"

namespace cm384::hw::reader_test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kBase = "base = \"cloudmatrix384\"\n";

Machine derived(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_machine(kBase + text, "mine.toml", overrides);
}
std::string refusal_of(const std::string& text) {
  return refusal([&] { derived(text); });
}

TEST(MachineReader, AUsersFileStandsOnAPresetAndSaysSo) {
  const Machine machine = derived("[hbm]\nt_rc = \"50ns\"\n[die]\naiv = 40\n");
  EXPECT_EQ(machine.memory.hbm.t_rc, 50_ns);
  EXPECT_EQ(machine.die.aiv, 40);
  EXPECT_EQ(machine.die.aic, 24);
  EXPECT_EQ(machine.name, "mine");
  EXPECT_EQ(machine.preset, "cloudmatrix384");
  EXPECT_EQ(machine.provenance.at("hbm.t_rc").from, Origin::user_file);
  EXPECT_EQ(machine.provenance.at("hbm.t_rc").source, "mine.toml:3");
  EXPECT_EQ(machine.provenance.at("die.aic").from, Origin::published);
  const std::map<std::string, std::string> overrides = {{"die.aiv", "40"}, {"hbm.t_rc", "50ns"}};
  EXPECT_EQ(machine.overrides, overrides);
}

// A suggestion for a name of a megabyte costs no memory and no time.
TEST(MachineReader, AVeryLongNameIsRefusedLikeAnyOther) {
  EXPECT_THAT(refusal_of(std::string(std::size_t{1} << 20, 'a') + " = 1\n"),
              EndsWith("aaa: no such parameter"));
}

TEST(MachineReader, KeysOfVeryManyPartsAreRefused) {
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "a.";
  for (const std::string& text : {deep + "a = 1\n", "[" + deep + "a]\n", "a = {" + deep + "a = 1}\n"})
    EXPECT_EQ(refusal_of(text), "mine.toml:2: has more than 64 dots; allowed: keys of a few parts");
}

// toml++ 3.3 by itself asserts on the first two.
TEST(MachineReader, HeadersWithoutAKeyAreRefused) {
  for (const char* text : {"[[[x]]]\n", "[=]\n", "[ ]\n", "[[ ]]\n", "[", "[[", "a.= 1\n", "=1\n"})
    EXPECT_THAT(refusal_of(text), StartsWith("mine.toml:2: not valid TOML: ")) << text;
}

// toml++ 3.3 has undefined behaviour for many of them.
TEST(MachineReader, CharactersOutsideAsciiStandInStringsAndComments) {
  const std::string refused = ": not valid TOML: a character outside ASCII; allowed in strings and comments";
  EXPECT_EQ(refusal_of("[h\u00e9bm]\n"), "mine.toml:2" + refused);
  EXPECT_EQ(refusal_of("[die]\naiv = 40\ufefb\n"), "mine.toml:3" + refused);
  EXPECT_EQ(refusal_of("description = \"\\\"\" \u00e9\n"), "mine.toml:2" + refused);
  EXPECT_EQ(refusal_of("description = \"\"\"a \u00e9\n\" \u00e9\"\"\" # \u00e9\n\u00e9 = 1"),
            "mine.toml:4" + refused);
  EXPECT_EQ(derived("# 2 \u00d7 3\ndescription = '\u00b5s \"' # \u00e9\n[die]\naiv = 40\n").die.aiv, 40);
  EXPECT_EQ(parse_machine("\ufeffbase = \"node8\"\n", "marked.toml").preset, "node8");
}

TEST(MachineReader, AFileThatNeverEndsIsRefused) {
  EXPECT_EQ(refusal([] { load_machine("/dev/zero"); }), "/dev/zero: is a device; allowed: a file");
}

TEST(MachineReader, AUsersFileMayStateProvenance) {
  const Machine machine =
      derived("[die]\naiv = { value = 40, from = \"derived\", source = \"a die shot\" }\n");
  EXPECT_EQ(machine.provenance.at("die.aiv").from, Origin::derived);
  EXPECT_EQ(machine.provenance.at("die.aiv").source, "a die shot");
}

// `{ value = .., from, source, EXTRA }` for hbm.t_rc.
std::string refusal_of_range(const std::string& extra) {
  return refusal_of("[hbm]\nt_rc = { value = \"47ns\", from = \"assumed\", source = \"a guess\", " + extra +
                    " }\n");
}

TEST(MachineReader, ARangeComesWithItsReason) {
  const Machine machine = derived(
      "[die]\naiv = { value = 40, from = \"assumed\", source = \"s\", range = [40, 48], why = \"yield\" }\n"
      "[l2]\nfetch = { value = \"128B\", from = \"assumed\", source = \"s\", values = [\"512B\", \"128B\"], "
      "why = \"a line or a sector\" }\n");
  const Plausible& aiv = machine.provenance.at("die.aiv").plausible;
  EXPECT_EQ(aiv.values, (std::vector<std::string>{"40", "48"}));
  EXPECT_TRUE(aiv.interval);
  EXPECT_EQ(aiv.reason, "yield");
  const Plausible& fetch = machine.provenance.at("l2.fetch").plausible;
  EXPECT_EQ(fetch.values, (std::vector<std::string>{"512B", "128B"}));
  EXPECT_FALSE(fetch.interval);
  EXPECT_EQ(machine.die.aiv, 40);
  EXPECT_EQ(machine.memory.l2.fetch, 128_B);
}

TEST(MachineReader, ARangeHoldsItsOwnValueInclusive) {
  EXPECT_EQ(refusal_of_range("range = [\"47.001ns\", \"50ns\"], why = \"w\""),
            "mine.toml:3: hbm.t_rc: 47ns is outside its `range`, 47001ps to 50ns");
  EXPECT_THAT(refusal_of_range("range = [\"40ns\", \"46.999ns\"], why = \"w\""), HasSubstr("outside"));
  for (const char* good :
       {"range = [\"47ns\", \"50ns\"]", "range = [\"40ns\", \"47ns\"]", "values = [\"1ns\", \"47000ps\"]"}) {
    const std::string text = std::string(
                                 "[hbm]\nt_rc = { value = \"47ns\", from = \"assumed\", source = "
                                 "\"a guess\", why = \"w\", ") +
                             good + " }\n";
    EXPECT_EQ(
        refusal([&] { EXPECT_EQ(derived(text).provenance.at("hbm.t_rc").plausible.values.size(), 2u); }),
        "(accepted)")
        << good;
  }
  EXPECT_THAT(refusal_of_range("values = [\"46ns\", \"48ns\"], why = \"w\""),
              HasSubstr("47ns is not among `values`"));
}

TEST(MachineReader, ARangeIsInTheParametersUnits) {
  EXPECT_THAT(refusal_of_range("range = [40, 50], why = \"w\""), HasSubstr("'40' has no unit"));
  EXPECT_THAT(refusal_of_range("range = [\"40ns\", \"50GB/s\"], why = \"w\""),
              HasSubstr("hbm.t_rc: plausible"));
  EXPECT_THAT(refusal_of_range("range = [\"40ns\", \"1s\"], why = \"w\""), HasSubstr("1s is out of range"));
  EXPECT_THAT(refusal_of_range("range = [\"50ns\", \"40ns\"], why = \"w\""), HasSubstr("[low, high]"));
  EXPECT_THAT(refusal_of_range("range = [\"47ns\", \"47ns\"], why = \"w\""), HasSubstr("[low, high]"));
  EXPECT_THAT(refusal_of_range("range = [\"47ns\"], why = \"w\""), HasSubstr("[low, high]"));
  EXPECT_THAT(refusal_of_range("range = \"40ns\", why = \"w\""), HasSubstr("hbm.t_rc.range: is not a list"));
  EXPECT_THAT(refusal_of_range("range = [\"40ns\", \"50ns\"]"), HasSubstr("without a reason"));
  EXPECT_THAT(refusal_of_range("why = \"w\""), HasSubstr("without a reason"));
  EXPECT_THAT(refusal_of_range("range = [\"40ns\", \"50ns\"], values = [\"47ns\"], why = \"w\""),
              HasSubstr("allowed: one of them"));
  EXPECT_THAT(
      refusal_of("[ub.switch]\nrouting = { value = \"flow\", from = \"assumed\", source = \"s\", range = "
                 "[\"flow\", \"spray\"], why = \"w\" }\n"),
      HasSubstr("of a number or quantity"));
}

// A value of the user's own is no guess any more.
TEST(MachineReader, AnOverrideHasNoRange) {
  EXPECT_FALSE(load_machine("cloudmatrix384").provenance.at("l2.hit_latency").plausible.values.empty());
  EXPECT_TRUE(
      derived("[l2]\nhit_latency = \"20ns\"\n").provenance.at("l2.hit_latency").plausible.values.empty());
  EXPECT_TRUE(load_machine("cloudmatrix384", {"l2.hit_latency=20ns"})
                  .provenance.at("l2.hit_latency")
                  .plausible.values.empty());
}

TEST(MachineReader, OverridesComeLast) {
  const Machine machine =
      derived("[die]\naiv = 40\n", {"die.aiv=41", "die.aiv=42", "scheduler.kernel_setup=1us"});
  EXPECT_EQ(machine.die.aiv, 42);
  EXPECT_EQ(machine.scheduler.kernel_setup, 1_us);
  EXPECT_EQ(machine.provenance.at("die.aiv").from, Origin::command_line);
  EXPECT_EQ(machine.overrides.at("die.aiv"), "42");
}

TEST(MachineReader, ATypoIsRefusedWithTheNearestName) {
  EXPECT_EQ(refusal_of("[die]\n\nclokc = \"1GHz\"\n"),
            "mine.toml:4: die.clokc: no such parameter; did you mean die.clock?");
  EXPECT_EQ(refusal_of("[schedluer]\nkernel_setup = \"1us\"\n"),
            "mine.toml:2: schedluer: no such parameter; did you mean scheduler?");
  EXPECT_EQ(refusal([] { load_machine("cloudmatrix384", {"die.avi=3"}); }),
            "--set die.avi: no such parameter; did you mean die.aiv?");
  EXPECT_THAT(
      refusal([] { load_machine("cloudmatrix348"); }),
      AllOf(HasSubstr("'cloudmatrix348' is not a preset; did you mean cloudmatrix384?"), HasSubstr("node8")));
  EXPECT_THAT(refusal([] { parse_machine("base = \"node9\"\n", "mine.toml"); }),
              StartsWith("mine.toml:1: base: 'node9' is not a preset; did you mean node8?"));
}

TEST(MachineReader, ANumberWithoutUnitIsRefused) {
  EXPECT_EQ(
      refusal_of("[scheduler]\nkernel_setup = 8\n"),
      "mine.toml:3: scheduler.kernel_setup: '8' has no unit; allowed: a time with unit from 0ps to 1ms");
  EXPECT_THAT(
      refusal([] { load_machine("node8", {"die.clock=1.85"}); }),
      StartsWith("--set die.clock: '1.85' has no unit; allowed: a frequency with unit from 100MHz to 4GHz"));
}

TEST(MachineReader, OutOfRangeIsRefusedAtBothEnds) {
  EXPECT_EQ(refusal_of("[die]\naiv = 65\n"),
            "mine.toml:3: die.aiv: 65 is out of range; allowed: a whole number from 1 to 64");
  EXPECT_THAT(refusal_of("[die]\naiv = 0\n"), HasSubstr("0 is out of range"));
  EXPECT_THAT(refusal_of("[scheduler]\nkernel_setup = \"1.000001ms\"\n"), HasSubstr("is out of range"));
  EXPECT_EQ(derived("[scheduler]\nkernel_setup = \"1ms\"\n").scheduler.kernel_setup, 1_ms);
}

TEST(MachineReader, TheWrongKindIsRefused) {
  EXPECT_EQ(refusal_of("[die]\naiv = \"40\"\n"),
            "mine.toml:3: die.aiv: \"40\" is a string; allowed: a whole number from 1 to 64");
  EXPECT_THAT(refusal_of("[die]\naiv = 40.0\n"), HasSubstr("40.0 is not a whole number"));
  EXPECT_THAT(refusal_of("[die]\naiv = true\n"), HasSubstr("true is of the wrong kind"));
  EXPECT_THAT(refusal_of("[die]\naiv = [40]\n"), HasSubstr("a list, table or date is of the wrong kind"));
  EXPECT_THAT(refusal_of("[hbm]\nrefresh = 3\n"), HasSubstr("mine.toml:3: hbm.refresh: is not a string"));
  EXPECT_THAT(refusal_of("die = 3\n"), HasSubstr("mine.toml:2: die: is a section"));
  EXPECT_THAT(refusal_of("[die]\naiv = { valeu = 3 }\n"), HasSubstr("die.aiv: has no `value`"));
  EXPECT_THAT(refusal_of("[die]\naiv = { value = 3, form = \"x\" }\n"),
              HasSubstr("die.aiv.form: no such field"));
  EXPECT_THAT(refusal_of("[die]\naiv = { value = 3, from = \"guessed\", source = \"x\" }\n"),
              HasSubstr("'guessed' is unknown; allowed: published, derived, calibrated, assumed"));
  EXPECT_THAT(refusal_of("[die]\naiv = { value = 3, from = \"derived\" }\n"),
              HasSubstr("does not say where it comes from"));
}

TEST(MachineReader, AChoiceIsOneOfItsNames) {
  EXPECT_EQ(derived("[hbm]\nrefresh = \"all-bank\"\n").memory.hbm.refresh, "all-bank");
  EXPECT_EQ(
      refusal_of("[hbm]\nrefresh = \"all-bnak\"\n"),
      "mine.toml:3: hbm.refresh: 'all-bnak' is unknown, did you mean 'all-bank'?; allowed: one of per-bank, "
      "all-bank, off");
}

TEST(MachineReader, BadTomlNamesTheLine) {
  EXPECT_THAT(refusal_of("[die]\naiv = = 3\n"), StartsWith("mine.toml:3: not valid TOML: "));
  EXPECT_THAT(refusal_of("[die]\naiv = 3\naiv = 4\n"), StartsWith("mine.toml:4: not valid TOML: "));
}

TEST(MachineReader, AMissingFileOrKeyIsNamed) {
  EXPECT_EQ(refusal([] { load_machine("nowhere/mine.toml"); }), "nowhere/mine.toml: no such machine file");
  EXPECT_THAT(
      refusal([] { parse_machine("[accelerator]\nkind = \"ascend\"\n[die]\naiv = 3\n", "mine.toml"); }),
      AllOf(StartsWith("mine.toml: die.clock: has no value (core clock"), EndsWith("from 100MHz to 4GHz")));
  EXPECT_THAT(refusal([] { load_machine("node8", {"die.aiv"}); }), HasSubstr("has no '='"));
}

TEST(MachineReader, CrossChecks) {
  EXPECT_THAT(refusal_of("[topology]\ndies_per_node = 15\n"), HasSubstr("an even number"));
  EXPECT_THAT(refusal_of("[topology]\nnodes = 32768\ndies_per_node = 4\n"), HasSubstr("at most 65535"));
  EXPECT_THAT(refusal_of("[hbm]\npseudo_channels = 3\n"),
              HasSubstr("hbm.pseudo_channels: 3 does not fit; allowed: a power of two"));
  EXPECT_THAT(refusal_of("[on_die_network]\ncore_ports = 8\n"), HasSubstr("at least die.aic + die.aiv"));
}

// Clock counts ticks of any rate exactly: none has to be round.
TEST(MachineReader, RatesNeedNotBeRound) {
  const Machine machine =
      load_machine("cloudmatrix384",
                   {"ub.link.bandwidth=56.001GB/s", "die.clock=1850000001Hz", "ub.link.plane_rates=0.3333"});
  EXPECT_EQ(Clock(20_B, machine.ub.link.bandwidth).start(56'001'000'000 / 20), 1_s);
  EXPECT_EQ(Clock(machine.die.clock).start(1'850'000'001), 1_s);
  EXPECT_EQ(machine.ub.link.die_bandwidth(0).bytes_per_second, 18'665'133'300);
}

TEST(MachineReader, ShowReadsBackToTheSameMachine) {
  for (const std::string& preset : preset_names()) {
    const std::string whole = to_toml(load_machine(preset));
    EXPECT_EQ(to_toml(parse_machine(whole, "shown.toml")), whole);
    EXPECT_EQ(parse_machine(whole, "shown.toml").name, preset);
    EXPECT_TRUE(parse_machine(whole, "shown.toml").overrides.empty());
    // A changed one keeps its values, but not the name.
    const std::string shown = to_toml(load_machine(preset, {"ub.switch.pipeline_latency=123ns"}));
    const Machine again = parse_machine(shown, "shown.toml");
    EXPECT_EQ(to_toml(again), to_toml(parse_machine(to_toml(again), "other.toml")));
    EXPECT_EQ(again.name, "shown");
    EXPECT_EQ(again.provenance.at("ub.switch.pipeline_latency").from, Origin::command_line);
    EXPECT_FALSE(again.provenance.at("l2.hit_latency").plausible.values.empty());
    EXPECT_EQ(again.overrides, (std::map<std::string, std::string>{{"ub.switch.pipeline_latency", "123ns"}}));
  }
}

TEST(MachineReader, ValuesByKey) {
  const Machine machine = load_machine("cloudmatrix384");
  EXPECT_EQ(value_of(machine, "die.clock"), "1.85GHz");
  EXPECT_THAT(refusal([&] { value_of(machine, "die.clcok"); }), HasSubstr("did you mean die.clock?"));
}

}  // namespace
}  // namespace cm384::hw::reader_test
