// Options of commands and studies: structs that describe themselves as a part of the machine does
// (base/text/describe.h). The values in the struct are the defaults.
//
//     struct StreamOptions {
//       Texts shape{"1x128", "64x2048"};
//       int cores = 48;
//       template <class Self, class Visitor>
//       static void describe(Self& self, Visitor&& visit) {
//         visit("shape", self.shape, OneOf{{"1x128", "64x2048"}}, "how the matrix is cut into instructions");
//         visit("cores", self.cores, Range{1, 64}, "AIVs that read");
//       }
//     };
//
// A bool is a flag (`--wait`, `--wait=false`), or with Either one of two names. Lists are separated by
// commas. What is wrong ends in one line that names the option, what was found and what is allowed.
#pragma once

#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/parameter_list.h"
#include "workloads/frame/row.h"

namespace cm384::studies {

using hw::Alias;
using hw::Either;
using hw::Form;
using hw::Integers;
using hw::Needs;
using hw::OneOf;
using hw::Range;
using hw::Reals;
using hw::Sizes;
using hw::Texts;

// Dies that a machine has at most, and so ranks that take part: as many as packets can name. How many a
// machine and an operator take is checked where they are placed.
inline constexpr int kMostRanks = 65'535;

// Options under one heading of the help.
struct OptionGroup {
  std::string title;
  std::vector<hw::Parameter> options;
};

// Of settle(): an option of 0 stands for all that the machine has.
inline void all_if_zero(int& option, int all) {
  if (option == 0) option = all;
}

// Which options the command line named.
using Given = std::set<std::string, std::less<>>;

// What an option may be, its own value first.
struct Alternatives {
  std::string option;
  std::vector<std::string> values;
};

// Reads `arguments` (without program and command) into the structs behind the groups. Options may not be
// abbreviated. `positional` names the option that bare arguments fill, at most `positional_count` (-1: any
// number). Throws InputError: one line; also for an option that has no effect beside the others (Needs).
Given parse_options(std::span<const OptionGroup> groups, const std::vector<std::string>& arguments,
                    std::string_view positional = "", int positional_count = 1);

// Throws InputError for the first of `options` that is given: `before` it, that it has no effect, and `why`.
void refuse_given(const Given& given, std::string_view before, std::initializer_list<const char*> options,
                  std::string_view why);

// The options as --help prints them, under their titles.
std::string help_of(std::span<const OptionGroup> groups);

// The effective values, in the order of declaration; quantities as text with unit. Texts and lists that
// are empty are left out.
Row effective_options(std::span<const hw::Parameter> options);

// What stands behind an option in its help: "N 1..4096", "SIZE", "full|control"; empty: a flag.
std::string value_name(const hw::Parameter& option);

}  // namespace cm384::studies
