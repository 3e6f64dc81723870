// A file of signals over time, which GTKWave reads: FST where the name ends in .fst, otherwise a value change
// dump (VCD, IEEE 1364), compressed where the name ends in .gz.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/text/units.h"

namespace cm384::observe {

class WaveFile {
 public:
  // Throws OutputError where it cannot be written, and InputError for .fst where the build had no Verilator,
  // whose writer it is.
  static std::unique_ptr<WaveFile> create(const std::string& path);
  virtual ~WaveFile() = default;

  virtual void begin_scope(const std::string& name) = 0;
  virtual void end_scope() = 0;
  // Number of the new signal: 0, 1, ...; of 1 to 64 bits.
  virtual std::size_t add_signal(const std::string& name, unsigned bits) = 0;
  virtual void end_declarations() = 0;
  // Times do not run backwards.
  virtual void change(Time at, std::size_t signal, std::uint64_t value) = 0;
  virtual void finish() = 0;  // throws OutputError
};

}  // namespace cm384::observe
