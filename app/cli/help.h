// What `--help` prints: commands in groups, studies, one command with its options and examples.
#pragma once

#include <string>
#include <string_view>

#include "app/cli/command.h"

namespace cm384::cli {

// `cm384 --help`: a group of commands fits a screen of 24 lines and 100 columns.
std::string usage_of(const Program& program);
// Of all its commands whose name begins with `prefix`, "trace ".
std::string usage_of_prefix(const Program& program, std::string_view prefix);
// The first lines of a command's or a study's help.
std::string help_head(std::string_view usage, std::string_view summary);
// What `cm384 run` prints without a study.
std::string list_of_studies(const Program& program);

// A line of a list: `left`, blanks up to column `at`, `right`. Where `left` has no room before `at`, `right`
// begins on the next line; it goes on there as well where a line would be longer than 100 columns.
std::string list_line(std::string_view left, std::string_view right, std::size_t at);

}  // namespace cm384::cli
