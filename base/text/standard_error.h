// Messages to people. Where standard error takes no more they are dropped: what a run is for goes on.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace cm384 {

inline void write_standard_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

template <class... Values>
void print_error(fmt::format_string<Values...> format, Values&&... values) {
  write_standard_error(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace cm384
