// Examples that `--help` and the manual page show beside the options.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace cm384::cli {

struct Example {
  std::string_view command;  // as typed in a shell
  std::string_view what;     // it does, in a few words
};

struct Examples {
  std::string_view of;  // a command, or a study as "run dispatch"
  std::array<Example, 2> list;
  std::string_view file_name = {}, file = {};  // an input file, whole; empty: none
};

// Of every command and every study; testbenches/house/helps holds that each is there and that its options
// exist.
std::span<const Examples> all_examples();

// The part of a help text that shows them, from an empty line on; empty: there are none of `name`.
std::string examples_text(std::string_view name);

}  // namespace cm384::cli
