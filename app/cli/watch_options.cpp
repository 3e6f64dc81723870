#include "app/cli/watch_options.h"

#include "base/text/error.h"

namespace cm384::cli {

void check_parts(std::string_view text) {
  supernode::parse_link_selection(text);
}

std::vector<supernode::LinkSelection> WatchOptions::parts() const {
  std::vector<supernode::LinkSelection> chosen;
  for (const std::string& text : stats_parts) chosen.push_back(supernode::parse_link_selection(text));
  return chosen;
}

observe::TimelineOptions WatchOptions::shown() const {
  observe::TimelineOptions shown;
  shown.dies = {timeline_dies.begin(), timeline_dies.end()};
  shown.cores = {timeline_cores.begin(), timeline_cores.end()};
  shown.from = timeline_from;
  if (timeline_to == Time{}) return shown;
  if (timeline_to <= timeline_from)
    throw InputError("--timeline-to: is not after --timeline-from: nothing would be shown");
  shown.to = timeline_to;
  return shown;
}

}  // namespace cm384::cli
