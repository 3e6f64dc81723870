// A file that appears under its name only when it is whole.
#pragma once

#include <fstream>
#include <string>
#include <string_view>

namespace cm384::traces {

class OutputFile {
 public:
  // Writes under a temporary name beside `path`. Throws InputError where that fails.
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // removes what was not finished
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  std::uint64_t written() const { return written_; }
  // Renames; throws InputError where anything went wrong.
  void finish();

 private:
  std::string path_, temporary_;
  std::ofstream stream_;
  std::uint64_t written_ = 0;
  bool finished_ = false;
};

}  // namespace cm384::traces
