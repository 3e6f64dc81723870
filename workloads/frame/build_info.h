// What this program was built from.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace cm384::studies {

struct BuildInfo {
  std::string_view version;     // of the project
  std::string_view commit;      // of the source, with "+changes" where the tree differed; empty: not in git
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "Release"
  std::string_view sanitizers;  // empty: none
  std::string_view model;       // fingerprint of the golden results: a commit that changes no result keeps it
  // That one, and those before runs were added to the golden results while nothing else moved, latest first.
  std::span<const std::string_view> models;
};

const BuildInfo& build_info();

// Whether results of a build with this fingerprint hold for this build.
inline bool is_same_model(std::string_view fingerprint) {
  return std::ranges::find(build_info().models, fingerprint) != build_info().models.end();
}

}  // namespace cm384::studies
