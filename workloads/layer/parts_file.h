// Times of a decode step's parts that runs have measured, for others to read: `--measured FILE`.
#pragma once

#include <optional>
#include <string>

#include "base/text/json.h"
#include "base/text/output_file.h"
#include "hw/machine.h"

namespace cm384::studies {

class PartsFile {
 public:
  enum class Section { steps, alone };  // parts of a layer and its step; an operator by itself

  // No name: keeps nothing. Throws InputError for a file of something else.
  explicit PartsFile(std::string path);

  // Null: it is not there.
  const Json* find(Section section, const std::string& key) const;
  // Before something is measured that will be added: throws OutputError where it could not be written.
  void open();
  void add(Section section, const std::string& key, Json value);
  // Writes what has been added; what other runs have added meanwhile stays.
  void write();

 private:
  std::string path_;
  Json all_, added_;
  std::optional<OutputFile> file_;
};

// All parameters of a machine as text, for keys.
std::string machine_text(hw::Machine machine);

}  // namespace cm384::studies
