// Files that come with the program: of an installed tree (PREFIX/bin, lib, share), or of a build folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cm384 {

// The path of a file such as `share/cm384/page/page.html`: in $CM384_HOME if that is set, otherwise in the
// nearest folder above the running program that has it, three levels up at most.
std::optional<std::string> find_installed(std::string_view relative);

}  // namespace cm384
