// Every option of every command and study, by its declaration: values out of range are refused in one line
// that names the option, and an option that has an effect only beside another is refused without it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/cli/commands.h"
#include "app/cli/study_run.h"
#include "testbenches/hw/refusal.h"
#include "workloads/frame/study.h"

namespace cm384::cli::declared_options_test {
namespace {

using ::testing::HasSubstr;

struct Options {
  std::string of;
  std::vector<studies::OptionGroup> groups;
};

// Fresh values each time.
std::vector<Options> all_options() {
  std::vector<Options> all;
  for (const Command* command : commands_of({all_commands(), studies::registry()}))
    all.push_back({std::string(command->name), {{"", command->options()}}});
  static std::vector<std::unique_ptr<StudyCommandLine>> lines;
  for (const studies::Study& study : studies::registry()) {
    lines.push_back(std::make_unique<StudyCommandLine>(study));
    all.push_back({"run " + std::string(study.name), lines.back()->groups});
  }
  return all;
}

std::string refused(const Options& options, const std::vector<std::string>& arguments) {
  return refusal([&] { studies::parse_options(options.groups, arguments); });
}

bool is_real(const hw::Parameter& option) {
  return std::holds_alternative<double*>(option.value) ||
         std::holds_alternative<studies::Reals*>(option.value);
}

std::string unit_of(const hw::Parameter& option) {
  if (std::holds_alternative<Time*>(option.value)) return "ps";
  if (std::holds_alternative<Bytes*>(option.value) || std::holds_alternative<studies::Sizes*>(option.value))
    return "B";
  if (std::holds_alternative<Bandwidth*>(option.value)) return "B/s";
  return "";
}

// Just outside the range, and negative.
std::vector<std::string> out_of_range(const hw::Parameter& option) {
  if (is_real(option))
    return {fmt::format("{}", option.low - 1e-6), fmt::format("{}", option.high + 1e-6), "-1e9"};
  const std::string unit = unit_of(option);
  std::vector<std::string> values;
  if (option.whole_low > std::numeric_limits<std::int64_t>::min())
    values.push_back(fmt::format("{}{}", option.whole_low - 1, unit));
  if (option.whole_high < std::numeric_limits<std::int64_t>::max())
    values.push_back(fmt::format("{}{}", option.whole_high + 1, unit));
  values.push_back(fmt::format("-1000000000{}", unit));
  return values;
}

TEST(DeclaredOptions, QuantitiesHaveARange) {
  for (const Options& options : all_options()) {
    for (const studies::OptionGroup& group : options.groups) {
      for (const hw::Parameter& option : group.options) {
        const bool number = is_real(option) || !unit_of(option).empty() ||
                            std::holds_alternative<int*>(option.value) ||
                            std::holds_alternative<std::int64_t*>(option.value) ||
                            std::holds_alternative<studies::Integers*>(option.value);
        EXPECT_TRUE(!number || option.bounded) << options.of << " --" << option.key;
        EXPECT_FALSE(option.sentence.empty()) << options.of << " --" << option.key;
      }
    }
  }
}

TEST(DeclaredOptions, ValuesOutOfRangeAreRefused) {
  int tried = 0;
  for (const Options& options : all_options()) {
    for (const studies::OptionGroup& group : options.groups) {
      for (const hw::Parameter& option : group.options) {
        if (!option.bounded) continue;
        for (const std::string& value : out_of_range(option)) {
          const std::string name = "--" + option.key;
          EXPECT_THAT(refused(options, {name + "=" + value}),
                      HasSubstr(name + ": " + value + " is out of range"))
              << options.of;
          ++tried;
        }
      }
    }
  }
  EXPECT_GT(tried, 200);
}

TEST(DeclaredOptions, UnknownNamesAreRefused) {
  for (const Options& options : all_options()) {
    for (const studies::OptionGroup& group : options.groups) {
      for (const hw::Parameter& option : group.options) {
        if (option.names.empty()) continue;
        EXPECT_THAT(refused(options, {"--" + option.key, "nonsense"}), HasSubstr("'nonsense' is unknown"))
            << options.of << " --" << option.key;
      }
    }
  }
}

TEST(DeclaredOptions, AnOptionWithoutEffectIsRefused) {
  int tried = 0;
  for (const Options& options : all_options()) {
    for (const studies::OptionGroup& group : options.groups) {
      for (const hw::Parameter& option : group.options) {
        // A form that is checked wants a value that only a person knows.
        if (option.needs.empty() || option.check != nullptr) continue;
        const std::string name = "--" + option.key, value = hw::value_text(option);
        // With the defaults of the others, unless these are what it needs.
        const std::string said = refused(options, {value.empty() ? name + "=1" : name + "=" + value});
        EXPECT_TRUE(said == "(accepted)" || said.find(name + ": has an effect only with --") == 0)
            << options.of << ' ' << said;
        tried += said != "(accepted)";
      }
    }
  }
  EXPECT_GT(tried, 20);
}

}  // namespace
}  // namespace cm384::cli::declared_options_test
