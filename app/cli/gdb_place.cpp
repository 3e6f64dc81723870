#include "app/cli/gdb_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text/error.h"
#include "base/text/number.h"

namespace cm384::cli {

GdbPlace parse_gdb_place(std::string_view text) {
  GdbPlace place;
  if (text == "fault") return {.at_fault = true};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    // Below 0: no number.
    const int value =
        equals == std::string_view::npos ? -1 : hw::number_of<int>(part.substr(equals + 1)).value_or(-1);
    if ((name != "die" && name != "core") || value < 0)
      throw InputError(fmt::format("'{}'; allowed: die=D,core=C, or fault", text));
    (name == "die" ? place.die : place.core) = value;
    at = end + 1;
  }
  return place;
}

}  // namespace cm384::cli
