// Results as JSON: the stable result.json.
#pragma once

#include <string>
#include <vector>

#include "base/text/json.h"
#include "hw/machine.h"
#include "workloads/frame/result.h"

namespace cm384::studies {

// Facts of a finished run that the study does not know.
struct RunFacts {
  std::string study{};
  std::uint64_t seed = 1;
  double wall_s = 0;
  std::vector<std::string> arguments{};  // of `cm384`; empty: not known
  std::string date{};                    // as date_now() gives it
};

// The time, as "2026-05-04T12:00:00Z"; what SOURCE_DATE_EPOCH says, if it is set. Throws InputError where
// that is not a number of seconds.
std::string date_now();

// Words as a shell takes them: those with other than plain characters in quotes.
std::string shell_command(const std::vector<std::string>& words);
// The other way.
std::vector<std::string> shell_words(const std::string& command);

// The stable document, see docs/cli.md.
Json to_document(const StudyResult& result, const hw::Machine& machine, const RunFacts& run);

Json to_json(const Row& row);
Json to_json(const Rows& rows);
// The other way; objects keep their order.
Row row_of(const Json& object);
Value value_of(const Json& json);

}  // namespace cm384::studies
