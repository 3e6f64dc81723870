#include "workloads/frame/options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "testbenches/hw/refusal.h"
#include "workloads/frame/result_json.h"

namespace cm384::studies::options_test {
namespace {

using ::testing::HasSubstr;

void check_even(std::string_view text) {
  if (text.size() % 2 != 0)
    throw InputError(fmt::format("'{}' is odd; allowed: an even number of letters", text));
}

struct Sample {
  Bytes bytes = 7680_B;
  Time skew{};
  Bandwidth rate = 28_GBps;
  int batch = 128;
  int width = 64;
  double load = 0.5;
  Integers ranks{8, 256};
  Sizes sizes{512_B};
  Reals loads{0.5};
  bool full = true;
  std::string mode = "fast";
  Texts ops{"read", "write"};
  std::string elf, even;
  Texts fault;
  bool verbose = false, trace = false;
  int depth = 1, detail = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("bytes", self.bytes, Range{1_B, 1_GiB}, "bytes of a message");
    visit("skew", self.skew, Range{Time{}, 1_s}, "delay of a rank's start");
    visit("rate", self.rate, Range{1_GBps, 1000_GBps}, "offered");
    visit("batch", self.batch, Range{1, 4096}, "tokens per rank");
    visit("width", self.width, Range{64, 4096, 64}, "of a layer");
    visit("load", self.load, Range{0.0, 1.0}, "offered");
    visit("ranks", self.ranks, Range{1, 768}, "ranks");
    visit("sizes", self.sizes, Range{1_B, 1_GiB}, "sizes, one row each");
    visit("loads", self.loads, Range{0.01, 1.0}, "loads, one row each");
    visit("payload", self.full, Either{"control", "full"}, "payload mode");
    visit("mode", self.mode, OneOf{{"fast", "slow"}}, "mode");
    visit("ops", self.ops, OneOf{{"read", "write", "atomic"}}, "operations");
    visit("elf", self.elf, Form{"FILE"}, "program");
    visit("even", self.even, Form{"TEXT", check_even}, "text");
    visit("fault", self.fault, Form{"LINK"}, "may be repeated");
    visit("verbose", self.verbose, "more");
    visit("trace", self.trace, "a trace");
    visit("depth", self.depth, Range{1, 9}, "of the trace", Needs{"trace", {}});
    visit("detail", self.detail, Range{1, 9}, "of slow mode and atomics", Needs{"mode", {"slow"}},
          Needs{"ops", {"atomic"}});
  }
};

Sample parsed(const std::vector<std::string>& arguments, std::string_view positional = "",
              Given* given = nullptr) {
  Sample sample;
  const OptionGroup group{"sample", hw::list_parameters(sample)};
  const Given named = parse_options({&group, 1}, arguments, positional);
  if (given != nullptr) *given = named;
  return sample;
}

std::string refusal_of(const std::vector<std::string>& arguments) {
  return refusal([&] { parsed(arguments); });
}

TEST(Options, Defaults) {
  Sample sample = parsed({});
  EXPECT_EQ(
      to_json(effective_options(hw::list_parameters(sample))).dump(),
      R"({"bytes":"7.5KiB","skew":"0ps","rate":"28GB/s","batch":128,"width":64,"load":0.5,"ranks":[8,256],)"
      R"("sizes":"512B","loads":[0.5],"payload":"full","mode":"fast","ops":["read","write"],"verbose":false,)"
      R"("trace":false,"depth":1,"detail":1})");
}

TEST(Options, Values) {
  Given given;
  const Sample sample = parsed({"--bytes", "1MiB", "--ranks=8,16,32", "--load", "0.9", "k.elf", "--verbose",
                                "--fault", "a,b", "--fault", "c", "--payload", "control", "--skew", "3us"},
                               "elf", &given);
  EXPECT_EQ(sample.bytes, 1_MiB);
  EXPECT_EQ(sample.ranks, (Integers{8, 16, 32}));
  EXPECT_EQ(sample.load, 0.9);
  EXPECT_EQ(sample.elf, "k.elf");
  EXPECT_TRUE(sample.verbose);
  EXPECT_FALSE(sample.full);
  EXPECT_EQ(sample.skew, 3_us);
  EXPECT_EQ(sample.fault, (Texts{"a,b", "c"}));
  EXPECT_EQ(given, (Given{"bytes", "elf", "fault", "load", "payload", "ranks", "skew", "verbose"}));
}

TEST(Options, AFlagMayBeTurnedOff) {
  EXPECT_FALSE(parsed({"--verbose=false"}).verbose);
  EXPECT_TRUE(parsed({"--verbose=true"}).verbose);
  // A word behind it is not its value.
  const Sample sample = parsed({"--verbose", "false"}, "elf");
  EXPECT_TRUE(sample.verbose);
  EXPECT_EQ(sample.elf, "false");
}

TEST(Options, RangesDouble) {
  const auto sizes = [](const char* text) {
    std::vector<std::int64_t> counts;
    for (const Bytes bytes : parsed({"--sizes", text}).sizes) counts.push_back(bytes.count);
    return counts;
  };
  EXPECT_EQ(sizes("64B..512B"), (std::vector<std::int64_t>{64, 128, 256, 512}));
  EXPECT_EQ(sizes("64B..300B,1KiB"), (std::vector<std::int64_t>{64, 128, 256, 300, 1024}));
  EXPECT_EQ(sizes("64B..65B"), (std::vector<std::int64_t>{64, 65}));
  EXPECT_EQ(sizes("64B..64B"), (std::vector<std::int64_t>{64}));
  EXPECT_EQ(sizes("64B..64MiB").size(), 21u);
  EXPECT_EQ(parsed({"--ranks", "8..64,320"}).ranks, (Integers{8, 16, 32, 64, 320}));
  EXPECT_THAT(refusal_of({"--sizes", "64B..32B"}), HasSubstr("--sizes: '64B..32B' is not a range"));
  EXPECT_THAT(refusal_of({"--sizes", "0B..64B"}), HasSubstr("--sizes: 0B is out of range"));
  EXPECT_THAT(refusal_of({"--sizes", "64B.."}), HasSubstr("--sizes: "));
}

TEST(Options, RangesOfRealNumbersGoInTenths) {
  EXPECT_EQ(parsed({"--loads", "0.1..0.5"}).loads, (Reals{0.1, 0.2, 0.3, 0.4, 0.5}));
  EXPECT_EQ(parsed({"--loads", "0.05,0.9"}).loads, (Reals{0.05, 0.9}));
  EXPECT_THAT(refusal_of({"--loads", "0.5..0.1"}), HasSubstr("--loads: '0.5..0.1' is not a range"));
  EXPECT_THAT(refusal_of({"--loads", "0.5..1.1"}), HasSubstr("--loads: 1.1 is out of range"));
}

TEST(Options, RefusalsNameOptionFoundAndAllowed) {
  EXPECT_EQ(refusal_of({"--bytes", "7680"}),
            "--bytes: '7680' has no unit; allowed: a size with unit from 1B to 1GiB");
  EXPECT_EQ(refusal_of({"--bytes", "-1MiB"}),
            "--bytes: -1MiB is out of range; allowed: a size with unit from 1B to 1GiB");
  EXPECT_EQ(refusal_of({"--skew", "-10us"}),
            "--skew: -10us is out of range; allowed: a time with unit from 0ps to 1s");
  EXPECT_EQ(refusal_of({"--batch", "0"}),
            "--batch: 0 is out of range; allowed: a whole number from 1 to 4096");
  EXPECT_EQ(refusal_of({"--batch", "4097"}),
            "--batch: 4097 is out of range; allowed: a whole number from 1 to 4096");
  EXPECT_EQ(refusal_of({"--batch", "many"}),
            "--batch: 'many' is not a whole number; allowed: a whole number from 1 to 4096");
  EXPECT_EQ(refusal_of({"--width", "100"}),
            "--width: 100 does not fit; allowed: a whole number from 64 to 4096, multiples of 64");
  EXPECT_EQ(refusal_of({"--load", "1.5"}), "--load: 1.5 is out of range; allowed: a number from 0 to 1");
  EXPECT_THAT(refusal_of({"--load", "nan"}), HasSubstr("--load: "));
  EXPECT_EQ(refusal_of({"--ranks", "8,,16"}),
            "--ranks: '' is not a whole number; allowed: a whole number from 1 to 768");
  EXPECT_EQ(refusal_of({"--ranks", "8,769"}),
            "--ranks: 769 is out of range; allowed: a whole number from 1 to 768");
  EXPECT_EQ(refusal_of({"--payload", "contrl"}),
            "--payload: 'contrl' is unknown, did you mean 'control'?; allowed: one of control, full");
  EXPECT_THAT(refusal_of({"--ops", "read,swap"}), HasSubstr("--ops: 'swap' is unknown"));
  EXPECT_EQ(refusal_of({"--even", "odd"}), "--even: 'odd' is odd; allowed: an even number of letters");
  EXPECT_EQ(refusal_of({"--ops", "read", "--ops", "write"}), "--ops: is given more than once");
  EXPECT_EQ(refusal_of({"--bytse", "1MiB"}), "--bytse: no such option; did you mean --bytes?");
  EXPECT_EQ(refusal_of({"--bytse=1MiB"}), "--bytse: no such option; did you mean --bytes?");
  EXPECT_EQ(refusal_of({"--byte", "1MiB"}), "--byte: no such option; did you mean --bytes?");
  EXPECT_THAT(refusal_of({"--bytes"}), HasSubstr("--bytes"));
  EXPECT_EQ(refusal_of({"stray"}), "'stray': unexpected argument; allowed: options, which begin with --");
}

TEST(Options, EmptyValuesAreNone) {
  EXPECT_EQ(refusal_of({"--elf", ""}), "--elf: an empty value; allowed: FILE");
  EXPECT_EQ(refusal_of({"--fault", "a", "--fault", ""}), "--fault: an empty value; allowed: LINK");
  EXPECT_EQ(refusal([] { parsed({""}, "elf"); }), "--elf: an empty value; allowed: FILE");
}

TEST(Options, BoundsAreAllowed) {
  EXPECT_EQ(parsed({"--batch", "1"}).batch, 1);
  EXPECT_EQ(parsed({"--batch", "4096"}).batch, 4096);
  EXPECT_EQ(parsed({"--bytes", "1GiB"}).bytes, 1_GiB);
  EXPECT_EQ(parsed({"--skew", "0ps"}).skew, Time{});
  EXPECT_EQ(parsed({"--load", "0"}).load, 0.0);
  EXPECT_EQ(parsed({"--load", "1"}).load, 1.0);
}

TEST(Options, AnOptionWithoutEffectIsRefused) {
  EXPECT_EQ(refusal_of({"--depth", "2"}), "--depth: has an effect only with --trace");
  EXPECT_EQ(parsed({"--depth", "2", "--trace"}).depth, 2);
  EXPECT_EQ(refusal_of({"--detail", "2", "--mode", "slow"}),
            "--detail: has an effect only with --ops atomic");
  EXPECT_EQ(refusal_of({"--detail", "2", "--ops", "atomic"}),
            "--detail: has an effect only with --mode slow");
  EXPECT_EQ(parsed({"--detail", "2", "--mode", "slow", "--ops", "read,atomic"}).detail, 2);
}

TEST(Options, HelpShowsUnitAndDefault) {
  Sample sample;
  const OptionGroup group{"sample", hw::list_parameters(sample)};
  const std::string text = help_of({&group, 1});
  EXPECT_THAT(text, HasSubstr("--bytes SIZE (=7.5KiB)"));
  EXPECT_THAT(text, HasSubstr("--batch N 1..4096 (=128)"));
  EXPECT_THAT(text, HasSubstr("--payload control|full (=full)"));
  EXPECT_THAT(text, HasSubstr("--ranks N,.. 1..768 (=8,256)"));
  EXPECT_THAT(text, HasSubstr("--fault LINK "));
}

}  // namespace
}  // namespace cm384::studies::options_test
