// Options that several commands have in common.
#pragma once

#include <string>
#include <vector>

#include "hw/machine.h"
#include "studies/options.h"

namespace cm384::cli {

void add_machine_options(boost::program_options::options_description& options);  // --machine, --set
void add_seed_option(boost::program_options::options_description& options);
void add_help_option(boost::program_options::options_description& options);

hw::Machine machine_of(const boost::program_options::variables_map& values);
std::uint64_t seed_of(const boost::program_options::variables_map& values);

// The options as --help prints them.
std::string help_of(const boost::program_options::options_description& options);

}  // namespace cm384::cli
