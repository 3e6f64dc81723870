#include "app/cli/import_answer.h"

#include <fmt/format.h>

#include "base/text/json.h"
#include "base/text/standard_error.h"
#include "traces/importers/node_placement.h"

namespace cm384::cli {

void print_import(const traces::ImportResult& result, const std::string& output, bool json) {
  for (const std::string& note : result.notes) print_error("cm384: {}\n", note);
  for (const std::string& line : result.not_taken) print_error("cm384: not imported exactly: {}\n", line);
  if (!json) {
    fmt::print("{}: {} records\nplaced {}: {}\n", output, result.records, result.placement,
               traces::text_of(result.mapping));
    return;
  }
  Json answer{{"file", output}, {"records", result.records}, {"placement", result.placement}};
  answer["mapping"] = Json::array();
  for (const auto& [node, die] : result.mapping) answer["mapping"].push_back({{"node", node}, {"die", die}});
  answer["notes"] = result.notes;
  answer["not_taken"] = result.not_taken;
  fmt::print("{}\n", answer.dump(2));
}

}  // namespace cm384::cli
