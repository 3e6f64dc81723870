// What this program was built from.
#pragma once

#include <string_view>

namespace cm384::studies {

struct BuildInfo {
  std::string_view version;     // of the project
  std::string_view commit;      // of the source, with "+changes" where the tree differed; empty: not in git
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "Release"
  std::string_view sanitizers;  // empty: none
  std::string_view model;       // fingerprint of the golden results: a commit that changes no result keeps it
};

const BuildInfo& build_info();

}  // namespace cm384::studies
