#include "ub_fabric/fst_file.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "sim/error.h"

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

// What a writer that could not finish leaves; a folder in its way stays.
void remove_files(const std::string& temporary) {
  for (const std::string& file : {temporary, temporary + ".hier"}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) std::filesystem::remove(file, ignored);
  }
}

}  // namespace

void FstFile::open() {
  waves_.open(temporary_.c_str());
  if (waves_.isOpen()) return;
  remove_files(temporary_);
  throw InputError(fmt::format("{}: cannot be written", path_));
}

FstFile::~FstFile() {
  if (!waves_.isOpen()) return;
  waves_.close();
  remove_files(temporary_);
}

void FstFile::finish() {
  waves_.close();
  std::error_code error;
  const bool whole = ends_with_a_block(temporary_);
  if (whole) std::filesystem::rename(temporary_, path_, error);
  if (whole && !error) return;
  remove_files(temporary_);
  throw InputError(fmt::format("{}: cannot be written", path_));
}

}  // namespace cm384::ub
