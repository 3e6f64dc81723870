// The files that a run reads and writes: no output may be another output or an input, whatever names they are
// given by. A file is known by its device and inode where it is there, and by its name behind symbolic links
// in any case, as an output is not there yet.
//
// One RunFiles stands for one command; while it lives, open_input() and OutputFile tell it what they open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace cm384 {

class RunFiles {
 public:
  enum class Use : std::uint8_t {
    tried,    // found out to be writable before the work; one `written` of the same name may follow
    written,  // opened to be written
    renewed   // read before, by this run as well, and written anew
  };

  RunFiles();   // becomes current(); what standard output and standard error write to counts as outputs
  ~RunFiles();  // the one before becomes current() again
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  static RunFiles* current();  // null: none, and nothing is checked

  // Throws InputError where the run writes the file.
  void add_input(const std::string& path);
  // `target`: the name behind symbolic links. Throws InputError where the run reads the file, or writes it
  // already.
  void add_output(const std::string& path, const std::string& target, Use use);
  // The file has its name: what had that name before is gone, and its inode may become another file's.
  void forget_inode(const std::string& target);
  // From here on files that were tried are written.
  void begin_work();

 private:
  struct State;
  std::unique_ptr<State> state_;
  RunFiles* before_;
};

}  // namespace cm384
