// What `cm384 run` takes, as sweeps see it.
#pragma once

#include <memory>

#include "app/cli/study_run.h"
#include "lab/sweeps/plan.h"

namespace cm384::cli {

class StudySubject final : public sweeps::Subject {
 public:
  // `threads`: of the host for each run, unless the sweep sets them.
  StudySubject(std::span<const studies::Study> all, int threads);
  void set_threads(int threads) { threads_ = threads; }
  ~StudySubject() override;
  // Points are named by this instead of by the program: what another program with it gives is the same.
  void stand_on(std::string basis) { program_ = std::move(basis); }

  void choose(const std::string& study) override;
  std::span<const studies::Field> fields() const override;
  sweeps::Scale scale(const std::string& key) override;
  sweeps::Scale name_scale(const std::string& name) override;
  std::vector<std::string> arguments(const std::vector<runs::Setting>& settings) override;
  std::string value(const std::vector<runs::Setting>& settings, const std::string& key) override;
  std::string identity(const std::vector<runs::Setting>& settings) override;

 private:
  struct Effective;
  const Effective& effective(const std::vector<runs::Setting>& settings);

  std::span<const studies::Study> all_;
  int threads_;
  const studies::Study* study_ = nullptr;
  hw::Machine machine_;
  std::string program_;                   // hash of this program, or what points stand on
  std::unique_ptr<Effective> effective_;  // of the settings that were asked for last
};

}  // namespace cm384::cli
