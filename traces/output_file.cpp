#include "traces/output_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "sim/error.h"

namespace cm384::traces {

OutputFile::OutputFile(const std::string& path)
    : path_(path), temporary_(path + ".partial"), stream_(temporary_, std::ios::binary | std::ios::trunc) {
  if (!stream_) throw InputError(fmt::format("{}: cannot be written", path));
}

OutputFile::~OutputFile() {
  if (finished_) return;
  stream_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void OutputFile::write(std::string_view bytes) {
  stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  written_ += bytes.size();
}

void OutputFile::finish() {
  stream_.close();
  std::error_code error;
  if (stream_) std::filesystem::rename(temporary_, path_, error);
  if (!stream_ || error) throw InputError(fmt::format("{}: cannot be written", path_));
  finished_ = true;
}

}  // namespace cm384::traces
