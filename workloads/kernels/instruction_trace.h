// The file of --trace: one line an instruction of one core.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace cm384::studies {

class InstructionTrace {
 public:
  // No file where `path` is empty. It is written in place: what a kernel that hangs did is what one wants to
  // see. Throws OutputError.
  explicit InstructionTrace(std::string path);
  // Null: no file.
  std::FILE* file() const { return file_.get(); }
  // Throws OutputError if not all of it could be written.
  void close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace cm384::studies
