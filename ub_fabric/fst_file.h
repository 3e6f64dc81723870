// Waves of a Verilated model as an FST file, which GTKWave reads; it appears under its name when it is whole.
#pragma once

#include <verilated_fst_c.h>

#include <string>

#include "base/text/output_file.h"

namespace cm384::ub {

class FstFile {
 public:
  // `path` holds all signals of `model` that it was built to show, times in ps. The model must not have been
  // traced before and must outlive the file. Throws OutputError where it cannot be written.
  template <class Model>
  FstFile(Model& model, const std::string& path) : file_(path) {
    model.contextp()->traceEverOn(true);
    model.trace(&waves_, kAllLevels);
    open();
  }
  ~FstFile();
  FstFile(const FstFile&) = delete;
  FstFile& operator=(const FstFile&) = delete;

  // The signals as they are now, at a time later than the one before.
  void dump(std::int64_t ps) { waves_.dump(static_cast<std::uint64_t>(ps)); }
  // Throws OutputError where not all of it could be written.
  void finish();

 private:
  static constexpr int kAllLevels = 99;
  void open();
  void remove_parts() const;

  NamedOutput file_;
  VerilatedFstC waves_;
};

}  // namespace cm384::ub
