// Options of studies: values with units, checked while the command line is read, so that a wrong one ends in
// one line that names the option, what was found and what is allowed.
//
//     options.add_options()("bytes", size_option(7680_B), "bytes a message")
//                          ("ranks", integers_option("8,256", 1, 768), "ranks, one a die");
//     const Bytes bytes = context.option<Bytes>("bytes");
//     for (const int ranks : context.option<Integers>("ranks").values) ...
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units.h"
#include "studies/result.h"

namespace cm384::studies {

struct Integers {
  std::vector<int> values;
};
struct Names {
  std::vector<std::string> values;
};
struct Sizes {
  std::vector<Bytes> values;
};

template <class T>
using OptionValue = boost::program_options::typed_value<T>;

// Each takes its default; `required` forms have none.
OptionValue<Bytes>* size_option(Bytes fallback);
OptionValue<Time>* time_option(Time fallback);
OptionValue<Bandwidth>* bandwidth_option(Bandwidth fallback);
OptionValue<int>* integer_option(int fallback, int low, int high);
OptionValue<double>* real_option(double fallback, double low, double high);
OptionValue<std::string>* text_option(const std::string& fallback, const std::string& value_name);
OptionValue<std::string>* required_text_option(const std::string& value_name);
// One of `choices`.
OptionValue<std::string>* choice_option(const std::string& fallback, std::vector<std::string> choices);
// Lists separated by commas: sizes, also as a range FROM..TO, where each is twice the one before; whole
// numbers of [low, high]; names out of `choices`.
OptionValue<Sizes>* sizes_option(const std::string& fallback);
OptionValue<Integers>* integers_option(const std::string& fallback, int low, int high);
OptionValue<Names>* choices_option(const std::string& fallback, std::vector<std::string> choices);
// Any text, checked by `check`, which throws InputError.
OptionValue<std::string>* checked_text_option(const std::string& fallback, const std::string& value_name,
                                              std::function<void(std::string_view)> check);

// The effective values as JSON, in the order of declaration; quantities as text with unit. Options without a
// value are left out.
Json effective_options(const boost::program_options::options_description& options,
                       const boost::program_options::variables_map& values);

// Reads `arguments` (without program and command). Options may not be abbreviated. `positional` names the
// option that bare arguments fill, at most `positional_count` (-1: any number). Throws InputError: one line.
boost::program_options::variables_map parse_options(
    const boost::program_options::options_description& options, const std::vector<std::string>& arguments,
    const char* positional = nullptr, int positional_count = 1);

}  // namespace cm384::studies
