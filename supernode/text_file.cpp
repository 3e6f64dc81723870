#include "supernode/text_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "sim/error.h"

namespace cm384::supernode {

TextFile::TextFile(const std::string& path) : path_(path), temporary_(path + ".partial") {
  // Level 1: the simulation waits for it. "T" writes as it is.
  file_ = gzopen(temporary_.c_str(), path.ends_with(".gz") ? "wb1" : "wbT");
  if (file_ == nullptr) throw InputError(fmt::format("{}: cannot be written", path));
}

TextFile::~TextFile() {
  if (file_ == nullptr) return;
  gzclose(file_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void TextFile::write(std::string_view text) {
  if (!text.empty() && gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) == 0) good_ = false;
}

void TextFile::finish() {
  if (gzclose(file_) != Z_OK) good_ = false;
  file_ = nullptr;
  std::error_code error;
  if (good_) std::filesystem::rename(temporary_, path_, error);
  if (!good_ || error) throw InputError(fmt::format("{}: cannot be written", path_));
}

}  // namespace cm384::supernode
