// JSON documents of ours that numbers are taken from later: a checksum over all of the rest stands in them,
// so that what was damaged or changed by hand is not taken for what was measured.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/text/content_hash.h"
#include "base/text/error.h"
#include "base/text/json.h"

namespace cm384 {

inline constexpr const char* kChecksum = "checksum";

// Of everything but the checksum, spaces and line ends apart.
inline std::string checksum_of(Json document) {
  document.erase(kChecksum);
  return hash_of(document.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// False: it has none, as those of earlier versions. Throws InputError where it does not fit.
inline bool has_good_checksum(const Json& document, const std::string& name) {
  const auto stated = document.find(kChecksum);
  if (stated == document.end()) return false;
  if (*stated != checksum_of(document))
    throw InputError(fmt::format(
        "{}: its checksum does not match: it was damaged or changed; allowed: as it was written", name));
  return true;
}

}  // namespace cm384
