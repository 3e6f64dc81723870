#include "cli/gdb_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hw/error.h"
#include "hw/number.h"

namespace cm384::cli {

GdbPlace parse_gdb_place(std::string_view text) {
  GdbPlace place;
  if (text == "fault") return {.at_fault = true};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const auto value =
        equals == std::string_view::npos ? std::nullopt : hw::number_of<int>(part.substr(equals + 1));
    if ((name != "die" && name != "core") || !value || *value < 0)
      throw InputError(fmt::format("'{}'; allowed: die=D,core=C, or fault", text));
    (name == "die" ? place.die : place.core) = *value;
    at = end + 1;
  }
  return place;
}

}  // namespace cm384::cli
