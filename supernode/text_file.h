// A text file that may be compressed.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

namespace cm384::supernode {

// Text that appears under its name when it is whole, compressed by gzip where the name ends in .gz.
class TextFile {
 public:
  // Throws InputError where it cannot be written.
  explicit TextFile(const std::string& path);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  void write(std::string_view text);
  void finish();

 private:
  std::string path_, temporary_;
  gzFile file_ = nullptr;
  bool good_ = true;
};

}  // namespace cm384::supernode
