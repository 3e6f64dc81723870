// What the rows of a result are of: their conditions, which rows of two results are matched by.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/text/json.h"

namespace cm384::report {

// The names that a result says are conditions of its rows (`conditions`); nothing: it does not say, being of
// an older build. Then a row's conditions are the texts and numbers that it begins with, up to the first
// field with a unit at the end of its name.
using Conditions = std::optional<std::set<std::string>>;
Conditions declared_conditions(const Json& document);
// What the rows of two results are matched by. One of before conditions were declared has those of the other,
// as far as its rows have such fields.
Conditions shared_conditions(const Json& before, const Json& after);

Json conditions_of(const Json& row, const Conditions& declared);
// What each row is matched by: "ranks=8 path=aiv-direct", with a number behind it where it is not the first
// of these.
std::vector<std::string> keys_of(const Json& document, const Conditions& declared);

// The conditions of each row: { "ranks": 8, "path": "aiv-direct" }.
std::vector<Json> row_conditions(const Json& document);
// keys_of() by what the document itself declares.
std::vector<std::string> row_keys(const Json& document);

// A text as it is, any other value as JSON has it.
std::string plain_text(const Json& value);

}  // namespace cm384::report
