// What runs are of: a study with settings, as the command line takes them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cm384::runs {

// A key with its value, as the command line takes them: an option, or with a dot a machine parameter.
using Setting = std::pair<std::string, std::string>;
using Settings = std::vector<Setting>;

// What the study takes. The command knows it; tests have one of their own.
class Subject {
 public:
  virtual ~Subject() = default;
  // The study that the following calls are about. Throws InputError for an unknown one.
  virtual void choose(const std::string& study) = 0;
  // What follows `cm384 run`.
  virtual std::vector<std::string> arguments(const Settings& settings) = 0;
  // Names the run by all that goes into it: options, machine, contents of files, the program. Throws
  // InputError if the run would be refused.
  virtual std::string identity(const Settings& settings) = 0;
};

}  // namespace cm384::runs
