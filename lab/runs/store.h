// Results of runs, by the content of what went into them. One SQLite file that several processes may use at a
// time, also over a shared folder. A process that is killed, or a disk that is full, costs the points that
// were under way, nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cm384::runs {

// Exit code of a point that was never run to its end, or not at all; another run may.
inline constexpr int kNotRun = 255;
// Of one whose output could not be written, as the command has it.
inline constexpr int kNoOutput = 5;

struct Outcome {
  int exit_code = 0;
  std::string reason;    // why it failed; empty: it did not
  std::string document;  // result.json; empty: it wrote none
  std::string profile;   // profile.json, what `cm384 report` draws; empty: none
  double wall_s = 0;
  double peak_MB = 0;  // of the host's memory

  bool failed() const { return !reason.empty(); }
  // Running it again may end otherwise: it was killed, or an output could not be written.
  bool worth_another() const;
};

class Store {
 public:
  // Opens it, or makes it. Throws OutputError with the reason, InputError if the file is no store.
  explicit Store(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::string& path() const;

  // What is known of a point. All of these throw OutputError.
  std::optional<Outcome> find(const std::string& key);

  enum class Claim : std::uint8_t {
    taken,    // by this process, which has to put() or release() it
    busy,     // another process works on it
    finished  // find() has it
  };
  // Of processes that claim a point at the same time one gets it. A claim whose process has died, or on
  // another host has been silent for two minutes, is void. `again`: even if it has a result that is
  // worth_another().
  Claim claim(const std::string& key, bool again);
  // Keeps the claims of this process alive; at least every half minute.
  void beat();
  // The result of a claimed point, at once and whole.
  void put(const std::string& key, const std::string& study, const std::string& arguments,
           const Outcome& outcome);
  void release(const std::string& key);
  // Whether some process works on it now.
  bool busy(const std::string& key);
  // What `work` does with the store takes effect as a whole, and costs one write to the disk.
  void together(const std::function<void()>& work);

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace cm384::runs
