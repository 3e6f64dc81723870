#include "base/text/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/text/error.h"
#include "base/text/run_files.h"

namespace cm384 {
namespace {

bool is_terminal(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return false;
  const bool terminal = isatty(fd) != 0;
  close(fd);
  return terminal;
}

}  // namespace

std::ifstream open_input(const std::string& path) {
  const auto refuse = [&path](int error) {
    return InputError(fmt::format("{}: cannot be read: {}", path, std::generic_category().message(error)));
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw refuse(errno);
  // The system opens a folder as well, and fails at the first byte; a device may never end.
  if (S_ISDIR(status.st_mode)) throw InputError(fmt::format("{}: is a folder; allowed: a file", path));
  if (S_ISBLK(status.st_mode) || (S_ISCHR(status.st_mode) && !is_terminal(path)))
    throw InputError(fmt::format("{}: is a device; allowed: a file", path));
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw refuse(errno != 0 ? errno : EIO);
  if (RunFiles* files = RunFiles::current()) files->add_input(path);
  return stream;
}

std::string read_input(const std::string& path, std::size_t most) {
  std::ifstream stream = open_input(path);
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  std::string text;
  std::size_t got = 0;
  while (stream && got <= most) {
    text.resize(got + std::min(kPiece, most + 1 - got));
    stream.read(text.data() + got, static_cast<std::streamsize>(text.size() - got));
    got += static_cast<std::size_t>(stream.gcount());
  }
  if (got > most)
    throw InputError(fmt::format("{}: is larger than {} MiB; is it a file of this kind?", path, most >> 20));
  if (!stream.eof()) throw InputError(fmt::format("{}: cannot be read to its end", path));
  text.resize(got);
  return text;
}

}  // namespace cm384
