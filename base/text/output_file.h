// Files that a run writes: each appears under its name only when it is whole.
//
// What is written first stands in a file without a name in the same folder (O_TMPFILE), or where the file
// system knows none, under a name of its own; finish() gives it the name asked for. So a run that dies leaves
// nothing behind, and of two runs with one name the last to finish wins, whole. A device or pipe is written
// to directly; of a symbolic link, the file it points to is replaced. `/dev/stdout` and `/dev/stderr` are
// written to behind what was printed there, wherever a shell has them go. Within a run every output is a file
// of its own (base/text/run_files.h). Where several processes simulate one machine the first one alone
// writes; in the others an output goes nowhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/text/run_files.h"

namespace cm384 {

class OutputFile {
 public:
  enum class Compression : std::uint8_t { none, by_name };  // by_name: gzip where the name ends in .gz

  // Opens it; missing folders are made. Throws OutputError with the system's reason, and InputError where the
  // run reads the file or writes it already.
  explicit OutputFile(const std::string& path, Compression compression = Compression::none,
                      RunFiles::Use use = RunFiles::Use::written);
  // Finds out, before the work, whether it could be opened; throws as that would.
  static void try_open(const std::string& path) {
    const OutputFile tried(path, Compression::none, RunFiles::Use::tried);
  }
  ~OutputFile();  // what was not finished is dropped
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Never throws: the first failure is kept for finish(), and nothing more is written.
  void write(std::string_view bytes);
  std::uint64_t written() const { return written_; }  // bytes given to write()
  // Puts the file under its name. Throws OutputError with the system's reason.
  void finish();

 private:
  struct Open;
  std::unique_ptr<Open> open_;  // null: finished
  std::uint64_t written_ = 0;
};

// An output for a library that opens files by name itself: it writes to name(), then commit() renames.
class NamedOutput {
 public:
  // Throws OutputError where no file can be made there, and InputError as OutputFile does.
  explicit NamedOutput(const std::string& path, RunFiles::Use use = RunFiles::Use::written);
  ~NamedOutput();  // removes name() where it was not committed
  NamedOutput(const NamedOutput&) = delete;
  NamedOutput& operator=(const NamedOutput&) = delete;

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  void commit();  // throws OutputError

 private:
  std::string path_, name_;
  bool committed_ = false;
};

// A whole file at once. Throws as OutputFile does.
void write_file(const std::string& path, std::string_view content,
                RunFiles::Use use = RunFiles::Use::written);
// Of several processes that simulate one machine, one writes what all know: the others open nothing and write
// nowhere (engine/peers.h says which is which). A process by itself writes.
void write_outputs_here(bool here);
// Removes what is under its own name for the time being, as a signal ends the program: may be called by a
// signal's handler, and by nothing else.
void remove_unfinished_outputs();

}  // namespace cm384
