#include "system/observe/profile.h"

namespace cm384::observe {

Json Profile::to_document(const std::string& study, const hw::Machine& machine) const {
  Json described = Json::parse(hw::to_json(machine));
  // What was changed, beside what the preset says.
  if (!machine.preset.empty() && !machine.overrides.empty()) {
    const Json preset = Json::parse(hw::to_json(hw::load_machine(machine.preset)));
    for (const auto& [key, value] : machine.overrides) {
      Json was = preset["parameters"][key];
      was.erase("allowed");
      was.erase("what");
      described["parameters"][key]["preset"] = std::move(was);
    }
  }
  return {{"schema", 2}, {"study", study}, {"machine", std::move(described)}, {"runs", runs_}};
}

}  // namespace cm384::observe
