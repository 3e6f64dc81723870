#include "studies/options.h"

#include <gmock/gmock.h>

#include "testbenches/machine/refusal.h"

namespace cm384::studies {
namespace {

namespace po = boost::program_options;
using ::testing::HasSubstr;

po::options_description sample() {
  po::options_description options("sample");
  options.add_options()("bytes", size_option(7680_B), "bytes a message");
  options.add_options()("skew", time_option(0_ns), "delay of a rank's start");
  options.add_options()("rate", bandwidth_option(28_GBps), "offered");
  options.add_options()("batch", integer_option(128, 1, 4096), "tokens a rank");
  options.add_options()("load", real_option(0.5, 0, 1), "offered");
  options.add_options()("ranks", integers_option("8,256", 1, 768), "ranks");
  options.add_options()("payload", choice_option("full", {"full", "control"}), "mode");
  options.add_options()("ops", choices_option("read,write", {"read", "write", "atomic"}), "operations");
  options.add_options()("elf", required_text_option("FILE"), "program");
  options.add_options()("verbose", po::bool_switch(), "more");
  return options;
}

std::string refusal_of(const std::vector<std::string>& arguments) {
  return refusal([&] { parse_options(sample(), arguments); });
}

TEST(Options, Defaults) {
  const po::options_description options = sample();
  EXPECT_EQ(effective_options(options, parse_options(options, {})).dump(),
            R"({"bytes":"7.5KiB","skew":"0ps","rate":"28GB/s","batch":128,"load":0.5,"ranks":[8,256],)"
            R"("payload":"full","ops":["read","write"],"verbose":false})");
}

TEST(Options, Values) {
  const po::options_description options = sample();
  const auto values = parse_options(
      options, {"--bytes", "1MiB", "--ranks=8,16,32", "--load", "0.9", "k.elf", "--verbose"}, "elf");
  EXPECT_EQ(values["bytes"].as<Bytes>(), 1_MiB);
  EXPECT_EQ(values["ranks"].as<Integers>().values, (std::vector<int>{8, 16, 32}));
  EXPECT_EQ(values["load"].as<double>(), 0.9);
  EXPECT_EQ(values["elf"].as<std::string>(), "k.elf");
  EXPECT_TRUE(values["verbose"].as<bool>());
}

TEST(Options, RangesOfSizesDouble) {
  po::options_description options("sizes");
  options.add_options()("bytes", sizes_option("512B"), "bytes a message");
  const auto sizes = [&options](const char* text) {
    std::vector<std::int64_t> counts;
    const auto values = parse_options(options, {"--bytes", text});
    for (const Bytes bytes : values["bytes"].as<Sizes>().values) counts.push_back(bytes.count);
    return counts;
  };
  EXPECT_EQ(sizes("64B..512B"), (std::vector<std::int64_t>{64, 128, 256, 512}));
  EXPECT_EQ(sizes("64B..300B,1KiB"), (std::vector<std::int64_t>{64, 128, 256, 300, 1024}));
  EXPECT_EQ(sizes("64B..65B"), (std::vector<std::int64_t>{64, 65}));
  EXPECT_EQ(sizes("64B..64B"), (std::vector<std::int64_t>{64}));
  EXPECT_EQ(sizes("64B..64MiB").size(), 21u);
  for (const char* wrong : {"0B..64B", "64B..32B"}) {
    EXPECT_THAT(refusal([&] {
                  parse_options(options, {"--bytes", wrong});
                }),
                HasSubstr(std::string("--bytes: '") + wrong + "' is no range"));
  }
  EXPECT_THAT(refusal([&] { parse_options(options, {"--bytes", "64B.."}); }), HasSubstr("--bytes: "));
}

TEST(Options, RefusalsNameOptionFoundAndAllowed) {
  EXPECT_THAT(refusal_of({"--bytes", "7680"}),
              HasSubstr("--bytes: '7680' has no unit; allowed: a size such as"));
  EXPECT_EQ(refusal_of({"--batch", "0"}),
            "--batch: 0 is out of range; allowed: a whole number from 1 to 4096");
  EXPECT_EQ(refusal_of({"--batch", "4097"}),
            "--batch: 4097 is out of range; allowed: a whole number from 1 to 4096");
  EXPECT_EQ(refusal_of({"--batch", "many"}),
            "--batch: 'many' is not a whole number; allowed: a whole number such as 16");
  EXPECT_EQ(refusal_of({"--load", "1.5"}), "--load: 1.5 is out of range; allowed: a number from 0 to 1");
  EXPECT_EQ(refusal_of({"--ranks", "8,,16"}),
            "--ranks: '' is not a whole number; allowed: a whole number such as 16");
  EXPECT_EQ(refusal_of({"--ranks", "8,769"}),
            "--ranks: 769 is out of range; allowed: a whole number from 1 to 768");
  EXPECT_EQ(refusal_of({"--payload", "contrl"}),
            "--payload: 'contrl' is unknown; did you mean control?; allowed: full, control");
  EXPECT_THAT(refusal_of({"--ops", "read,swap"}), HasSubstr("--ops: 'swap' is unknown"));
  EXPECT_EQ(refusal_of({"--ops", "read", "--ops", "write"}), "--ops: is given more than once");
  EXPECT_EQ(refusal_of({"--bytse", "1MiB"}), "--bytse: no such option; did you mean --bytes?");
  EXPECT_EQ(refusal_of({"--byte", "1MiB"}), "--byte: no such option; did you mean --bytes?");
  EXPECT_THAT(refusal_of({"--bytes"}), HasSubstr("--bytes"));
  EXPECT_EQ(refusal_of({"stray"}), "'stray': unexpected argument; allowed: options, which begin with --");
}

TEST(Options, HelpShowsUnitAndDefault) {
  std::ostringstream text;
  text << sample();
  EXPECT_THAT(text.str(), HasSubstr("--bytes SIZE (=7.5KiB)"));
  EXPECT_THAT(text.str(), HasSubstr("--batch N 1..4096 (=128)"));
  EXPECT_THAT(text.str(), HasSubstr("--payload full|control (=full)"));
}

}  // namespace
}  // namespace cm384::studies
