#include "ub_fabric/parameters.h"

#include <fmt/format.h>

#include <bit>

#include "base/text/error.h"

namespace cm384::ub {

void check(const Parameters& p) {
  if (p.ub.link.lanes % 2 != 0) {
    throw InputError(fmt::format(
        "ub.link.lanes: {} is odd; allowed: an even number, requests and their responses in pairs",
        p.ub.link.lanes));
  }
  const hw::UbTranslation& tr = p.ub.translation;
  if (!std::has_single_bit(static_cast<std::uint64_t>(tr.page.count))) {
    throw InputError(
        fmt::format("ub.translation.page: {} B is no power of two; allowed: a power of two", tr.page.count));
  }
  if (tr.entries % tr.ways != 0) {
    throw InputError(fmt::format(
        "ub.translation.entries: {} is no multiple of ways ({}); allowed: a multiple", tr.entries, tr.ways));
  }
}

}  // namespace cm384::ub
