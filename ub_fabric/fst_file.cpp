#include "ub_fabric/fst_file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/text/error.h"

namespace cm384::ub {
namespace {

// Verilator's writer says nothing of a disk that is full: the file is a row of blocks, each with its length,
// and the last one must end where the file does.
bool ends_with_a_block(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size == 0) return false;
  std::uintmax_t at = 0;
  while (at < size) {
    std::array<unsigned char, 9> head{};  // type, length of all but the type, most significant byte first
    file.seekg(static_cast<std::streamoff>(at));
    if (!file.read(reinterpret_cast<char*>(head.data()), head.size())) return false;
    std::uintmax_t length = 0;
    for (std::size_t k = 1; k < head.size(); ++k) length = length << 8 | head[k];
    if (length < head.size() - 1 || length > size) return false;
    at += 1 + length;
  }
  return at == size;
}

}  // namespace

void FstFile::open() {
  waves_.open(file_.name().c_str());
  if (!waves_.isOpen()) throw OutputError(fmt::format("{}: cannot be written", file_.path()));
}

FstFile::~FstFile() {
  if (waves_.isOpen()) waves_.close();
  remove_parts();
}

void FstFile::finish() {
  waves_.close();
  remove_parts();
  if (!ends_with_a_block(file_.name()))
    throw OutputError(
        fmt::format("{}: cannot be written: {}", file_.path(), std::generic_category().message(ENOSPC)));
  file_.commit();
}

// What the writer leaves where it could not finish.
void FstFile::remove_parts() const {
  std::error_code ignored;
  std::filesystem::remove(file_.name() + ".hier", ignored);
}

}  // namespace cm384::ub
