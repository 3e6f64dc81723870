// What a kernel's source says in forms that are not C++.
#pragma once

#include <string>
#include <string_view>

namespace cm384::cli {

// `[aicore]`, an attribute before a type, becomes spaces: a subscript or a capture of that name stays.
std::string without_aicore(std::string source);

// By `__cube__` and `__mix__(cube, vector)` behind `__global__`: "aic", "mix", "aiv", as --type has them;
// empty where the source says neither. Throws InputError for groups that are not there.
std::string kind_in_source(std::string_view source);

}  // namespace cm384::cli
