#include "lab/runs/limited_runs.h"

#include <fmt/format.h>

#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "base/text/error.h"
#include "lab/runs/host.h"
#include "lab/runs/run_process.h"

namespace cm384::runs {
namespace {

namespace fs = std::filesystem;

// How long a run that is asked to end may take for writing what it knows.
constexpr double kGrace_s = 10;

// What an earlier list left there is no part of this one. Anything else is not ours to remove: throws
// OutputError.
void clear_folder(const fs::path& folder) {
  std::error_code failure;
  if (!fs::exists(folder, failure)) return;
  if (!fs::exists(folder / "errors", failure) || !fs::exists(folder / "output", failure))
    throw OutputError(fmt::format("{}: exists already, and is not the output of a run", folder.string()));
  fs::remove_all(folder, failure);
}

class LimitedProcess {
 public:
  LimitedProcess(std::size_t index, const LimitedRun& run, fs::path folder)
      : index_(index), limit_s_(run.wall_limit_s), folder_(std::move(folder)) {
    clear_folder(folder_);
    process_ = std::make_unique<RunProcess>(kThisProgram, folder_, run.arguments, std::vector<std::string>{},
                                            RunProcess::Leaves::folder);
  }
  std::size_t index() const { return index_; }

  // Nothing: it has not ended. Past its limit it is asked to, then made to.
  std::optional<EndedRun> poll() {
    std::optional<Outcome> outcome = process_->poll();
    if (!outcome) {
      hold_to_limit();
      return std::nullopt;
    }
    EndedRun ended{std::move(*outcome), {}, asked_to_end_, folder_, process_->age_s()};
    ended.document = Json::parse(ended.outcome.document, nullptr, false);
    if (ended.document.is_discarded()) ended.document = nullptr;
    return ended;
  }

 private:
  void hold_to_limit() {
    const double age = process_->age_s();
    if (age > limit_s_ && !asked_to_end_) {
      asked_to_end_ = true;
      process_->interrupt();
    } else if (age > limit_s_ + kGrace_s && !killed_) {
      killed_ = true;
      process_->kill_now();
    }
  }

  std::size_t index_;
  double limit_s_;
  fs::path folder_;
  std::unique_ptr<RunProcess> process_;
  bool asked_to_end_ = false, killed_ = false;
};

}  // namespace

void run_limited(const std::vector<LimitedRun>& runs, const fs::path& folder, int jobs,
                 const volatile std::sig_atomic_t& interrupted,
                 const std::function<void(std::size_t, EndedRun)>& ended) {
  std::list<LimitedProcess> running;
  for (std::size_t next = 0; (next < runs.size() || !running.empty()) && interrupted == 0;) {
    while (next < runs.size() && static_cast<int>(running.size()) < jobs) {
      const std::size_t index = next++;
      try {
        running.emplace_back(index, runs[index], folder / runs[index].name);
      } catch (const OutputError& error) {
        ended(index, {{kNoOutput, error.what(), "", "", 0, 0}, nullptr, false, {}, 0});
      }
    }
    bool any = false;
    for (auto run = running.begin(); run != running.end();) {
      if (auto end = run->poll()) {
        ended(run->index(), std::move(*end));
        run = running.erase(run);
        any = true;
      } else {
        ++run;
      }
    }
    if (!any) std::this_thread::sleep_for(kLimitedTick);
  }
}

}  // namespace cm384::runs
