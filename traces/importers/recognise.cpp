#include "traces/importers/recognise.h"

#include <string_view>

#include "base/text/input_file.h"
#include "traces/import.h"

namespace cm384::traces {

TraceKind recognise(const std::string& path) {
  std::ifstream stream = open_input(path);
  std::string head(4096, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  const std::string_view begin(head);
  if (begin.starts_with("CM384TRC") || begin.starts_with("id,kind,")) return TraceKind::traffic;
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && begin[first] == '{') return TraceKind::routing;
  if (begin.starts_with("taskId,") && is_ns3ub(path)) return TraceKind::ns3ub;
  return TraceKind::other;
}

}  // namespace cm384::traces
