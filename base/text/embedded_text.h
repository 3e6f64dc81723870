// Text files compiled into the program (cmake/Cm384Embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace cm384::hw {

struct EmbeddedText {
  std::string_view name;  // of the file, without folder and ending
  std::string_view text;
};

std::span<const EmbeddedText> embedded_presets();           // hw/presets/*.toml
std::span<const EmbeddedText> embedded_published();         // hw/published/*
std::span<const EmbeddedText> embedded_library();           // hw/library/*.json
std::span<const EmbeddedText> embedded_grids();             // hw/library/*.toml
std::span<const EmbeddedText> embedded_models();            // hw/models/*.toml
std::span<const EmbeddedText> embedded_energy();            // hw/energy/*.toml
std::span<const EmbeddedText> embedded_prices();            // hw/prices/default.toml
std::span<const EmbeddedText> embedded_reliability();       // hw/reliability/supernode.toml
std::span<const EmbeddedText> embedded_deployments();       // workloads/service/deployments/*.toml
std::span<const EmbeddedText> embedded_night_page();        // lab/report/page/night/*
std::span<const EmbeddedText> embedded_step_deployments();  // workloads/layer/deployments/*.toml

}  // namespace cm384::hw
