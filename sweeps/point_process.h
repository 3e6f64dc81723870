// A point as a process of its own: `cm384 run` with an output folder that lives as long as this object.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/store.h"

namespace cm384::sweeps {

class PointProcess {
 public:
  // `arguments`: what follows `cm384 run`. Makes `folder`. Throws OutputError.
  PointProcess(const std::string& program, std::filesystem::path folder,
               const std::vector<std::string>& arguments);
  ~PointProcess();  // ends it if it is under way
  PointProcess(const PointProcess&) = delete;
  PointProcess& operator=(const PointProcess&) = delete;

  // How it ended; nothing: it has not. Once only.
  std::optional<Outcome> poll();
  double resident_MB() const;
  double age_s() const;

 private:
  Outcome outcome_of(int status) const;

  std::filesystem::path folder_;
  pid_t pid_ = -1;
  double begin_;
};

// This program, also when its file has been replaced since it was started.
inline constexpr const char* kThisProgram = "/proc/self/exe";

}  // namespace cm384::sweeps
