// One run of a study from its command line: what `cm384 run` and `cm384 baseline` share.
#pragma once

#include <span>
#include <string>

#include "cli/commands.h"
#include "studies/options.h"

namespace cm384::cli {

struct FinishedRun {
  studies::StudyResult result;
  Json document;  // as in result.json
};

class StudyRun {
 public:
  // `arguments`: the study's name and its options. Throws InputError.
  StudyRun(std::span<const studies::Study> all, const Arguments& arguments);

  bool wants_help() const;
  std::string help() const;
  std::string format() const;  // of --format

  // Runs it and writes the files it was asked for.
  FinishedRun run() const;

 private:
  const studies::Study& study_;
  boost::program_options::options_description own_, common_;
  boost::program_options::variables_map values_;
};

// 0, 1 where a check failed, 130 where it was interrupted.
int exit_code_of(const studies::StudyResult& result);

}  // namespace cm384::cli
