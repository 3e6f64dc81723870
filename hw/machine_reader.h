// Layers of a machine: a preset or file, the one it stands on, and so on.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hw/machine.h"

namespace cm384::hw {

// Reads the layers of `preset_or_path`, base first, into a machine: values and provenance of what they give.
// Parameters that no layer gives have no provenance entry. Throws InputError.
Machine read_layers(const std::string& preset_or_path);
// As above, where the topmost layer is `text`, a user's file called `name` in messages.
Machine read_layers_of_text(std::string_view text, const std::string& name);

// What to say behind "no such parameter": which one of the known ones may be meant, or what became of it.
std::string unknown_key(std::string_view key, std::span<const std::string> known);

}  // namespace cm384::hw
