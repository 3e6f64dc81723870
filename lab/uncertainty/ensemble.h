// An ensemble: machines that differ in what nobody knows and that all give the calibration figures. Shipped
// as data, with the command that made it (docs/uncertainty.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "hw/machine.h"
#include "lab/runs/runs.h"
#include "lab/uncertainty/discrepancy.h"
#include "lab/uncertainty/interval.h"

namespace cm384::uncertainty {

struct Member {
  std::string name;
  runs::Settings overrides;               // parameters that are not as in the machine
  std::map<std::string, double> figures;  // what it gave of the calibration figures, by id
};

struct Ensemble {
  std::string machine;  // the preset that the members stand on
  std::string command;  // that made it
  std::string build;    // that ran it: version and commit
  std::string model;    // fingerprint of that build's golden results
  std::string ranges;   // ranges_fingerprint() of the machine then
  bool checked = true;  // false: of an earlier version, without a checksum
  // What the model may be off by whatever its parameters, as a share of a value: intervals are wider by it,
  // unless `families` says more.
  double discrepancy = 0;
  std::vector<FamilyDiscrepancy> families;  // learnt; empty: not yet
  std::vector<Member> members;              // the machine itself first
};

// A hash of the unknowns: keys, own values, plausible values.
std::string ranges_fingerprint(const hw::Machine& machine);

// Throws InputError: one line with file, member and what no longer fits the machine as it is now.
Ensemble read_ensemble(const std::string& path);
// The file's text: equal for equal ensembles; ends with a newline.
std::string to_text(const Ensemble& ensemble);
// What has changed since it was made, though all members can still be built; empty: nothing.
std::vector<std::string> doubts_of(const Ensemble& ensemble);

// 90 % of the values lie inside, as far as there are enough of them; then wider by what is learnt of the
// family, or by the ensemble's one share of both ends. At least one value.
Interval interval_of(std::vector<double> values, const Ensemble& ensemble, std::string_view family);
Interval interval_of(std::vector<double> values, const Ensemble& ensemble, double discrepancy);
// That share.
double discrepancy_of(const Ensemble& ensemble, std::string_view family);

// A row that lists kernels is off by what these are off by together. Adds to each row of `document` what the
// same runs of members say: `interval` beside each `mean`, `intervals` of the row's plain numbers but for
// those that several members give to the bit, `ensemble`, the number of members. Gives what the intervals
// were made from: by row, field to values in the order of the members. Throws InputError if a member has
// other rows.
Json add_intervals(Json& rows, const std::vector<Json>& rows_of_members, const Ensemble& ensemble,
                   std::string_view family);

}  // namespace cm384::uncertainty
