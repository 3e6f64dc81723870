#include "cli/common_options.h"

#include <fmt/format.h>

#include <sstream>

#include "hw/error.h"
#include "hw/quantity.h"

namespace cm384::cli {

namespace po = boost::program_options;

void add_machine_options(po::options_description& options) {
  options.add_options()("machine", studies::text_option(std::string(hw::kDefaultMachine), "PRESET|FILE"),
                        "the machine; `cm384 machine list` names the presets");
  options.add_options()("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
                        "change one parameter, such as ub.link.bandwidth=28GB/s; may be repeated");
}

void add_seed_option(po::options_description& options) {
  const auto check = [](std::string_view text) {
    if (hw::parse_integer(text) < 0) throw InputError(fmt::format("'{}' is negative", text));
  };
  options.add_options()("seed", studies::checked_text_option("1", "N", check), "of everything random");
}

void add_help_option(po::options_description& options) {
  options.add_options()("help,h", po::bool_switch(), "this list");
}

hw::Machine machine_of(const po::variables_map& values) {
  const std::vector<std::string> none;
  const bool overridden = values.count("set") != 0;
  return hw::load_machine(values["machine"].as<std::string>(),
                          overridden ? values["set"].as<std::vector<std::string>>() : none);
}

std::uint64_t seed_of(const po::variables_map& values) {
  return static_cast<std::uint64_t>(hw::parse_integer(values["seed"].as<std::string>()));
}

std::string help_of(const po::options_description& options) {
  std::ostringstream text;
  text << options;
  return std::move(text).str();
}

}  // namespace cm384::cli
