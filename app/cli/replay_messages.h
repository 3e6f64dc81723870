// `trace replay --messages`: each message of a replay as a line, and a summary.
#pragma once

#include <cstdint>
#include <string>

#include "base/text/output_file.h"
#include "system/host/replay.h"
#include "system/observe/messages/message_summary.h"
#include "system/observe/messages/message_times.h"
#include "system/observe/messages/unloaded.h"

namespace cm384::cli {

class ReplayMessages {
 public:
  // The file is open from here on. Throws OutputError.
  explicit ReplayMessages(const std::string& path);
  // Before the machine runs, which must outlive this object. `how`: options of the replay whose messages
  // add() gets.
  void attach(supernode::Supernode& machine, const host::ReplayOptions& how);
  // Adds a transfer that has ended. Times are written relative to `origin`.
  void add(const host::ReplayedMessage& message, Time origin);
  // Skips a message: it is counted nowhere.
  void leave_out(const host::ReplayedMessage& message);
  Json summary() const { return summary_.to_json(); }
  void finish();

 private:
  void write_line(const observe::Message& message);

  OutputFile file_;
  std::string text_;
  std::unique_ptr<observe::MessageTimes> times_;
  std::unique_ptr<observe::UnloadedTime> unloaded_;
  observe::MessageSummary summary_;
  host::ReplayOptions::Path path_{};
  int cores_ = 1;
  std::uint64_t piece_bytes_ = 1;
};

// A few lines of what summary() gives, for people.
std::string text_of_messages(const Json& summary);

}  // namespace cm384::cli
